"""k-means with many clusters: nysketch compared with Lloyd's algorithm, faiss and MiniBatchKMeans.

    python3 bench/peers/clusters.py risks [--data FOLDER] [--only PATTERN] [--seeds 3] [--rows N] [--runs 5] [--defaults]
    python3 bench/peers/clusters.py peers [--only PATTERN] [--limit SECONDS]
    python3 bench/peers/clusters.py costs [--only PATTERN] [--limit SECONDS]

`risks` prints the risk divided by that of the best of some runs of Lloyd's algorithm on all rows,
for the defaults (`sketch --clusters K`) and, without `--defaults`, for other numbers of landmarks and
retained rows per cluster. It uses real tables with at most 200,000 rows (or `--rows`), standardised
if their columns have different units. On longer tables, Lloyd's iterations are faiss's, from
k-means++ on some of the rows.
`peers` prints CPU seconds, memory and risk of whole jobs from an npy file (a pattern such as
`d768.*/(nysketch|faiss)` selects tables and methods), `costs` the CPU seconds and memory of planning,
of the pass and of `fit` for mixtures made by `generate gmm`. All require the command built for
release, and keep data and results under target/peers/clusters.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import FOLDER, ROOT, enter

ROWS = 200_000
# Longer tables: number of rows for greedy k-means++, and of iterations on all rows.
STARTED_ON, ITERATIONS = 50_000, 60
# File, largest k, standardised.
SETS = [
    ("mnist_spectral.npy", 200, False),
    ("mnist_pca50.npy", 200, False),
    ("cifar10_resnet18_pca50.npy", 200, False),
    ("esc50_mfcc20.npy", 200, False),
    ("shuttle.parquet", 200, True),
    ("covtype.parquet", 1000, True),
    ("flights_3m.parquet", 1000, True),
]
CLUSTERS = (10, 50, 200, 1000)
DEFAULTS = "defaults"
# Landmarks and retained rows per cluster.
OTHERS = {"5, 200": (5, 200), "10, 20": (10, 20), "10, 200": (10, 200), "20, 200": (20, 200)}
# Rows, columns, k, ratio of the spreads of a cluster and of the centres, unit vectors.
JOBS = [
    (10**6, 20, 100, 0.7, False),
    (10**6, 128, 1000, 0.7, False),
    (10**6, 768, 1000, 1.0, True),
]


# Rows, columns, k and landmarks.
COSTS = [
    (10**6, 20, 1000, 10_000),
    (10**6, 64, 1000, 10_000),
    (10**6, 64, 10_000, 50_000),
    (10**7, 20, None, 20_000),
    (10**4, 5000, 20, 400),
]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("clusters.py", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["risks", "peers", "costs"])
    folder = os.environ.get("NYSKETCH_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=folder)
    parser.add_argument("--command", type=Path, default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--only", default="", help="what matches this")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of a table at most")
    parser.add_argument("--runs", type=int, default=5, help="runs of Lloyd's algorithm")
    parser.add_argument("--defaults", action="store_true", help="no other numbers of landmarks")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a run")
    args = parser.parse_args()
    args.command = args.command.resolve()
    return args


# A separate process starts the program, since the peak memory of a process is at least that of its
# parent.
LAUNCH = """
import json, os, sys
used = os.wait4(os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)
cpu, peak = used[2].ru_utime + used[2].ru_stime, used[2].ru_maxrss // 1024
print(json.dumps({"cpu": cpu, "peak": peak, "failed": used[1]}))
"""


def measured(line: list, limit: float) -> dict | None:
    """Returns CPU seconds, peak memory and output of a process; None if it takes too long."""
    start = [sys.executable, "-c", LAUNCH, *map(str, line)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    process = subprocess.Popen(start, **pipes, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    *lines, last = out.splitlines()
    found = json.loads(last)
    if found.pop("failed"):
        sys.exit(f"failed: {line}")
    return found | {"out": "\n".join(lines)}


def ours(args, table: Path, k: int, seed: int, *options: object) -> dict:
    """Returns the costs of the sketch and the fit, and the risk on all rows."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        sketch, model = Path(folder) / "s.nys", Path(folder) / "m.json"
        seeded = ["--seed", seed, "-q"]
        line = [args.command, "sketch", table, "--clusters", k, *options, *seeded, "-o", sketch]
        one = measured(line, args.limit)
        fit = [args.command, "fit", "kmeans", sketch, "-k", k, *seeded, "-o", model]
        two = one and measured(fit, args.limit)
        if not two:
            return {}
        evaluate = [args.command, "evaluate", model, table, "--json"]
        done = subprocess.run(evaluate, capture_output=True, text=True, check=True)
        kept = sketch.stat().st_size
    risk = json.loads(done.stdout)["mse"]
    cpu, peak = one["cpu"] + two["cpu"], max(one["peak"], two["peak"])
    return {"cpu": cpu, "learn": two["cpu"], "peak": peak, "kept": kept, "risk": risk}


def prepare(args, name: str, scaled: bool, to: Path) -> None:
    """Writes the rows in random order as float32."""
    import numpy as np

    rng = np.random.default_rng(0)
    if name.endswith(".npy"):
        X = np.load(args.data / name)
    else:
        import pyarrow.parquet as pq

        table = pq.read_table(args.data / name)
        columns = [c for c in table.column_names if c != "label"]
        X = np.column_stack([table[c].to_numpy().astype(np.float64) for c in columns])
    if scaled:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    np.save(to, np.ascontiguousarray(X[rng.permutation(len(X))[: args.rows]], np.float32))


def lloyd(table: Path, k: int, runs: int) -> list[float]:
    """Returns the risks of some runs of Lloyd's algorithm on all rows."""
    import numpy as np
    from sklearn.cluster import KMeans

    X = np.load(table)
    if len(X) > ROWS:
        return [risk_of(table, long_lloyd(X, k, seed)) for seed in range(runs)]
    # Its own inertia is a sum in single precision, with an error of 1e-4 for millions of rows.
    fitted = (KMeans(k, n_init=1, random_state=seed).fit(X) for seed in range(runs))
    return [risk_of(table, found.cluster_centers_) for found in fitted]


def long_lloyd(X, k: int, seed: int):
    """Returns the centres of a run on a long table, for which KMeans would take 15 minutes or more."""
    import numpy as np
    from faiss import Kmeans
    from sklearn.cluster import kmeans_plusplus

    some = X[np.random.default_rng(seed).permutation(len(X))[:STARTED_ON]]
    centres, _ = kmeans_plusplus(some, k, random_state=seed)
    found = Kmeans(X.shape[1], k, niter=ITERATIONS, max_points_per_centroid=10**9)
    found.train(X, init_centroids=centres)
    return found.centroids


def risks(args, folder: Path, kept: dict, keep) -> None:
    methods = {DEFAULTS: None} | ({} if args.defaults else OTHERS)
    head = ["table", "k", f"Lloyd, worst of {args.runs}", *methods, "CPU s to learn"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name, most, scaled in SETS:
        short = name.split(".")[0].removesuffix("_3m")
        short += f"-{args.rows}" if args.rows != ROWS else ""
        table = folder / f"{short}.npy"
        if not table.exists():
            if not (args.data / name).exists():
                print(f"{name} is missing: skipped", file=sys.stderr)
                continue
            prepare(args, name, scaled, table)
        for k in (k for k in CLUSTERS if k <= most):
            if not re.search(args.only, f"{short}/{k}"):
                continue
            base = f"{short}/{k}/lloyd"
            if base not in kept:
                keep(base, lloyd(table, k, args.runs))
            best, cells, learn = min(kept[base]), [], []
            for method, per in methods.items():
                found = []
                for seed in range(args.seeds):
                    key = f"{short}/{k}/{method}/{seed}"
                    if key not in kept:
                        options = ["--collect", "cells"] if per else []
                        if per:
                            options += ["--landmarks", per[0] * k, "--witnesses", per[1] * k]
                        keep(key, ours(args, table, k, seed, *options))
                    found.append(kept[key]["risk"] / best)
                    learn += [kept[key]["learn"]] if not per else []
                found.sort()
                cells.append(f"{found[len(found) // 2]:.4f}")
            worst = f"{max(kept[base]) / best:.4f}"
            cpu = f"{sorted(learn)[len(learn) // 2]:.2f}"
            print(f"| {short} | {k} | {worst} | {' | '.join(cells)} | {cpu} |", flush=True)


PEER = """
import json, sys, time
import numpy as np
kind, path, k, risk = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
X = np.load(path)
start = time.process_time()
if kind == "faiss, 25 iterations on all rows":
    from faiss import Kmeans
    found = Kmeans(X.shape[1], k, niter=25, max_points_per_centroid=10**9, seed=1)
    found.train(X)
    centres = found.centroids
else:
    from sklearn import cluster
    options = {"n_init": 1} if kind == "KMeans" else {}
    centres = getattr(cluster, kind)(k, random_state=0, **options).fit(X).cluster_centers_
learn = time.process_time() - start
np.save(risk, centres)
print(json.dumps({"learn": learn}))
"""
PEERS = ["faiss, 25 iterations on all rows", "KMeans", "MiniBatchKMeans"]


def make(table: Path, n: int, d: int, k: int, spread: float, unit: bool) -> None:
    """A mixture of k Gaussians of different weights."""
    import numpy as np

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(k, d)).astype(np.float32)
    weights = rng.gamma(2.0, size=k)
    half = table.with_suffix(".part.npy")
    X = np.lib.format.open_memmap(half, "w+", np.float32, (n, d))
    for at in range(0, n, 50_000):
        some = X[at : at + 50_000]
        labels = rng.choice(k, len(some), p=weights / weights.sum())
        some[:] = centres[labels] + spread * rng.normal(size=some.shape).astype(np.float32)
        if unit:
            some /= np.linalg.norm(some, axis=1, keepdims=True)
    X.flush()
    half.rename(table)


def risk_of(table: Path, centres) -> float:
    import numpy as np

    X, total = np.load(table, mmap_mode="r"), 0.0
    centres = centres.astype(np.float64)
    for at in range(0, len(X), 10_000):
        some = X[at : at + 10_000].astype(np.float64)
        near = (centres**2).sum(axis=1) - 2 * some @ centres.T
        total += near.min(axis=1).sum() + (some**2).sum()
    return total / len(X)


def peers(args, folder: Path, kept: dict, keep) -> None:
    import numpy as np

    for n, d, k, spread, unit in JOBS:
        name = f"n{n}-d{d}-k{k}"
        methods = [m for m in ["nysketch", *PEERS] if re.search(args.only, f"{name}/{m}")]
        if not methods:
            continue
        table = folder / f"{name}.npy"
        if not table.exists():
            make(table, n, d, k, spread, unit)
        for method in methods:
            key = f"{name}/{method}"
            if key in kept:
                continue
            if method == "nysketch":
                keep(key, ours(args, table, k, 0))
                continue
            with tempfile.TemporaryDirectory(dir=FOLDER) as where:
                found = Path(where) / "centres.npy"
                done = measured([sys.executable, "-c", PEER, method, table, k, found], args.limit)
                if not done:
                    keep(key, {})
                    continue
                learn = json.loads(done.pop("out").splitlines()[-1])["learn"]
                risk = risk_of(table, np.load(found))
            keep(key, done | {"learn": learn, "kept": 4 * n * d, "risk": risk})
        sphere = ", rows of length one" if unit else ""
        print(f"\n{n:,} × {d}, k = {k:,}{sphere}\n")
        print("| method | CPU s | to learn | peak memory | to keep | risk over the least |")
        print("|---|---|---|---|---|---|")
        found = {m: kept[f"{name}/{m}"] for m in methods}
        least = min(f["risk"] for f in found.values() if f)
        for method, f in sorted(found.items(), key=lambda x: x[1].get("cpu", 1e9)):
            if not f:
                print(f"| {method} | over {args.limit:g} s | | | | |")
                continue
            line = f"| {method} | {f['cpu']:.1f} | {f['learn']:.1f} | {f['peak']:,} MB "
            print(line + f"| {f['kept'] / 1e6:,.0f} MB | ×{f['risk'] / least:.4f} |")


STEPS = ["plan", "sketch", "fit"]


def costs(args, folder: Path, kept: dict, keep) -> None:
    print(
        "| rows | columns | k | landmarks | plan | pass | fit | sketch "
        "| peak memory: plan | pass | fit |\n|" + "---|" * 11
    )
    for n, d, k, m in COSTS:
        key = f"n{n}-d{d}-k{k}-m{m}"
        if not re.search(args.only, key):
            continue
        if key not in kept:
            with tempfile.TemporaryDirectory(dir=FOLDER) as where:
                keep(key, cost(args, Path(where), n, d, k, m))
        f = kept[key]
        cpu = [f"{f[step]['cpu']:.1f}" if step in f else "" for step in STEPS]
        peak = [f"{f[step]['peak']:,} MB" if step in f else "" for step in STEPS]
        size = f"{f['size'] / 1e6:,.1f} MB"
        line = [f"{n:,}", f"{d:,}", f"{k:,}" if k else "", f"{m:,}", *cpu, size, *peak]
        print(f"| {' | '.join(line)} |", flush=True)


def cost(args, folder: Path, n: int, d: int, k: int | None, m: int) -> dict:
    """Returns CPU seconds and peak memory of each step, up to one that takes too long, and sizes."""
    table, plan, sketch = folder / "x.npy", folder / "p.nys", folder / "s.nys"
    shape = ["--rows", n, "--dims", d, "--clusters", k or 1000]
    make = [args.command, "generate", "gmm", *shape, "-q", "-o", table]
    subprocess.run(list(map(str, make)), check=True, stdout=subprocess.DEVNULL)
    clusters = ["--clusters", k] if k else []
    steps = {
        "plan": ["plan", table, "--landmarks", m, *clusters, "--collect", "cells", "-o", plan],
        "sketch": ["sketch", table, "--plan", plan, "--embed-witnesses", "-o", sketch],
        "fit": ["fit", "kmeans", sketch, "-k", k, "-o", folder / "m.json"],
    }
    found = {}
    for step in STEPS if k else STEPS[:2]:
        done = measured([args.command, *steps[step], "-q"], args.limit)
        if not done:
            break
        found[step] = {name: done[name] for name in ("cpu", "peak")}
    return found | {"size": sketch.stat().st_size if sketch.exists() else 0}


def main() -> None:
    args = arguments()
    enter(Path(__file__).resolve())
    folder = FOLDER / "clusters"
    folder.mkdir(exist_ok=True)
    store = folder / f"{args.what}.json"
    kept = json.loads(store.read_text()) if store.exists() else {}

    def keep(key: str, result) -> None:
        kept[key] = result
        store.write_text(json.dumps(kept, indent=1))
        print(key, json.dumps(result), file=sys.stderr)

    {"risks": risks, "peers": peers, "costs": costs}[args.what](args, folder, kept, keep)


if __name__ == "__main__":
    main()
