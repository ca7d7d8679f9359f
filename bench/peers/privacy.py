"""Learning from releases compared with diffprivlib and a plain noisy Lloyd's algorithm.

    python3 bench/peers/privacy.py kmeans [--data FOLDER] [--only PATTERN] [--seeds 3]
    python3 bench/peers/privacy.py mixtures [--data FOLDER] [--only PATTERN] [--seeds 3]
    python3 bench/peers/privacy.py pca [--data FOLDER] [--only PATTERN] [--seeds 3]
    python3 bench/peers/privacy.py bounds [--data FOLDER] [--only PATTERN]
    python3 bench/peers/privacy.py sampler

One row in twenty is public and is not used for learning; for every method, the bounds are those of
the public rows, widened by a tenth. δ is 1e-6. `kmeans` prints the risk divided by that of Lloyd's
algorithm without privacy, medians over seeds; diffprivlib's KMeans is private by ε alone, which is a
stronger promise. `bounds` prints the cost of the bounds alone, without any noise. `sampler` compares
our noise with OpenDP's. Requires the command built for release; prints Markdown.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import warnings
from pathlib import Path
from statistics import median

from environment import FOLDER, ROOT, enter

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-6
CLUSTERS = 10
TABLES = ("mnist_spectral.npy", "shuttle.parquet", "covtype.parquet", "flights_3m.parquet")
ROWS = 1_000_000  # Maximum.
# Rows and columns of the generated mixtures.
SYNTHETIC = ((10**5, 5), (10**5, 20), (10**6, 5), (10**6, 20))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kmeans", "bounds", "mixtures", "pca", "sampler"])
    folder = os.environ.get("NYSKETCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, help="default: $NYSKETCH_DATA")
    parser.add_argument("--command", default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--only", default="", help="tables that match this")
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def tables(args):
    """Returns the names of the tables with functions that make them."""
    import numpy as np
    import pyarrow.parquet as pq

    def mixture(n: int, d: int):
        rng = np.random.default_rng(d)
        centres = rng.normal(size=(CLUSTERS, d)) * 2 * CLUSTERS ** (1 / d)
        labels = rng.choice(CLUSTERS, n, p=rng.dirichlet(np.full(CLUSTERS, 3.0)))
        return centres[labels] + rng.normal(size=(n, d))

    def real(path: Path):
        if path.suffix == ".npy":
            X = np.load(path).astype(np.float64)
        else:
            table = pq.read_table(path)
            names = [n for n in table.column_names if n != "label"]
            X = np.column_stack([table[n].to_numpy() for n in names]).astype(np.float64)
            X = X[np.isfinite(X).all(axis=1)]
        X = np.random.default_rng(0).permutation(X)[:ROWS]
        deviation = X[::20].std(axis=0)  # Deviation of the public rows.
        return X[:, deviation > 0] / deviation[deviation > 0]

    found = {f"{n:,} × {d}": (lambda n=n, d=d: mixture(n, d)) for n, d in SYNTHETIC}
    if args.data:
        found |= {Path(t).stem: (lambda t=t: real(args.data / t)) for t in TABLES}
    return {name: make for name, make in found.items() if re.search(args.only, name)}


class Nysketch:
    """Runs the command in a folder with private and public rows."""

    def __init__(self, args, folder: Path, rows, public, bounds) -> None:
        import numpy as np

        self.command, self.folder = args.command, folder
        np.save(folder / "rows.npy", rows)
        np.save(folder / "public.npy", public)
        pairs = zip(*bounds, strict=True)
        lines = [f"c{i} = [{low!r}, {high!r}]" for i, (low, high) in enumerate(pairs)]
        text = "\n".join(lines).replace("np.float64(", "").replace(")", "")
        (folder / "bounds.toml").write_text(text)

    def run(self, *line):
        line = [str(part) for part in (self.command, *line, "-q", "--force")]
        done = subprocess.run(line, capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")

    def plan(self, seed: int, *options) -> None:
        bounds = ["--bounds-from", "bounds.toml", "--seed", seed]
        self.run("plan", "--private", *bounds, *options, "-o", "plan.nys")
        self.run("sketch", "rows.npy", "--plan", "plan.nys", "-o", "sketch.nys")

    def release(self, epsilon: float, *options) -> None:
        budget = ["--epsilon", epsilon, "--delta", DELTA]
        self.run("privatize", "sketch.nys", "-o", "release.nys", *budget, *options)

    def rounds(self, epsilon: float, seed: int) -> None:
        """Runs three rounds, starting from few points spread over the bounds; each ε is cumulative."""
        self.plan(seed, "--landmarks", 20)
        for share in (0.4, 0.65):
            self.release(share * epsilon)
            (self.folder / "release.nys").rename(self.folder / "before.nys")
            self.plan(seed, "--release", "before.nys")
        self.release(epsilon)

    def fit(self, *task):
        self.run("fit", *task, "release.nys", "-o", "model.json")
        return json.loads((self.folder / "model.json").read_text())


def lloyd(X, k: int, seed: int):
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=3, random_state=seed).fit(X).cluster_centers_


def largest_rho(epsilon: float) -> float:
    """Computes ρ of (ε, δ) by proposition 12 of Canonne, Kamath and Steinke, as nysketch does."""
    import numpy as np

    over = np.exp(np.linspace(-7, 17, 20_001))

    def log_delta(rho: float) -> float:
        return (over * ((1 + over) * rho - epsilon) - np.log(over) - (1 + over) * np.log1p(1 / over)).min()

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= np.log(DELTA) else (low, middle)
    return low


def noisy_lloyd(X, k: int, epsilon: float, bounds, start, rng, steps: int = 5):
    """Lloyd's algorithm with Gaussian noise on counts and sums in each step, from public centres.
    Rows are clipped to the bounds; half of ρ is for counts and half for sums."""
    import numpy as np

    low, high = bounds
    X = np.clip(X, low, high)
    middle, reach = (low + high) / 2, np.linalg.norm((high - low) / 2)
    rho = largest_rho(epsilon) / steps / 2
    noise = 1 / np.sqrt(2 * rho)
    centres = start
    for _ in range(steps):
        near = nearest(X, centres)[0]
        counts = np.bincount(near, minlength=k) + rng.normal(size=k) * noise
        sums = np.stack([np.bincount(near, X[:, j] - middle[j], k) for j in range(X.shape[1])], 1)
        sums += rng.normal(size=sums.shape) * noise * reach
        seen = counts > 2 * noise
        centres = np.where(
            seen[:, None], middle + sums / np.maximum(counts, 1)[:, None], centres
        )
        centres = np.clip(centres, low, high)
    return centres


def nearest(X, centres):
    import numpy as np

    labels, total = np.empty(len(X), np.int64), 0.0
    for at in range(0, len(X), 50_000):
        some = X[at : at + 50_000]
        squares = (centres**2).sum(1) - 2 * some @ centres.T
        labels[at : at + 50_000] = squares.argmin(1)
        total += squares.min(1).sum() + (some**2).sum()
    return labels, total / len(X)


def split(X):
    import numpy as np

    public, rows = X[::20], np.delete(X, np.s_[::20], axis=0)
    low, high = public.min(0), public.max(0)
    wider = 0.05 * (high - low) + 1e-9
    return rows, public, (low - wider, high + wider)


def kmeans(args) -> None:
    import numpy as np
    from diffprivlib.models import KMeans as PrivateKMeans

    print("| rows | ε | public landmarks | three rounds | noisy Lloyd | diffprivlib |\n" + "|---" * 6 + "|")
    for name, make in tables(args).items():
        rows, public, bounds = split(make())
        best = min(nearest(rows, lloyd(rows, CLUSTERS, s))[1] for s in range(2))
        with tempfile.TemporaryDirectory(dir=FOLDER) as where:
            ours = Nysketch(args, Path(where), rows, public, bounds)
            risks = {e: {m: [] for m in ("public", "rounds", "lloyd", "peer")} for e in EPSILONS}
            for seed in range(args.seeds):
                rng = np.random.default_rng(seed)
                start = lloyd(public, CLUSTERS, seed)
                ours.plan(seed, "--public", "public.npy")
                for e in EPSILONS:
                    ours.release(e)
                    model = ours.fit("kmeans", "-k", CLUSTERS, "--seed", seed)
                    risks[e]["public"].append(nearest(rows, np.array(model["centres"]))[1])
                    found = noisy_lloyd(rows, CLUSTERS, e, bounds, start, rng)
                    risks[e]["lloyd"].append(nearest(rows, found)[1])
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        options = {"epsilon": e, "bounds": bounds, "random_state": seed}
                        found = PrivateKMeans(CLUSTERS, **options).fit(rows)
                    risks[e]["peer"].append(nearest(rows, found.cluster_centers_)[1])
                for e in EPSILONS:
                    ours.rounds(e, seed)
                    model = ours.fit("kmeans", "-k", CLUSTERS, "--seed", seed)
                    risks[e]["rounds"].append(nearest(rows, np.array(model["centres"]))[1])
        for e, found in risks.items():
            line = " | ".join(f"{median(r) / best:.4f}" for r in found.values())
            print(f"| {name} | {e:g} | {line} |", flush=True)


def bounds(args) -> None:
    """Prints the risk of Lloyd's algorithm, without noise, on rows clipped to the bounds."""
    import numpy as np

    print("| rows | beyond the bounds | risk within them over that of all rows |\n|---|---|---|")
    for name, make in tables(args).items():
        rows, _, (low, high) = split(make())
        beyond = ((rows < low) | (rows > high)).any(1).sum()
        risk = lambda X: min(nearest(rows, lloyd(X, CLUSTERS, s))[1] for s in range(2))
        ratio = risk(np.clip(rows, low, high)) / risk(rows)
        print(f"| {name} | {beyond:,} of {len(rows):,} | {ratio:.4f} |", flush=True)


def mixtures(args) -> None:
    import numpy as np
    from sklearn.mixture import GaussianMixture

    print("Nats a row above EM on all rows, without privacy (diagonal covariances):\n")
    print("| rows | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " | sketch, no noise |")
    print("|---" * (len(EPSILONS) + 2) + "|")
    for name, make in tables(args).items():
        rows, public, bounds = split(make())
        rows = rows[:200_000] if "×" not in name else rows
        em = GaussianMixture(CLUSTERS, covariance_type="diag", reg_covar=1e-4, random_state=0)
        best = -em.fit(rows).score(rows)
        with tempfile.TemporaryDirectory(dir=FOLDER) as where:
            ours = Nysketch(args, Path(where), rows, public, bounds)
            found = {e: [] for e in (*EPSILONS, None)}
            for seed in range(args.seeds):
                ours.plan(seed, "--public", "public.npy")
                for e in found:
                    if e:
                        ours.release(e)
                    else:
                        (ours.folder / "sketch.nys").rename(ours.folder / "release.nys")
                    fitted = ours.fit("gmm", "-k", CLUSTERS, "--covariance", "diag", "--seed", seed)
                    em.weights_ = np.array(fitted["weights"])
                    em.means_ = np.array(fitted["means"])
                    em.covariances_ = np.array(fitted["variances"])
                    em.precisions_cholesky_ = 1 / np.sqrt(em.covariances_)
                    found[e].append(-em.score(rows) - best)
        print(f"| {name} | " + " | ".join(f"{median(f):+.3f}" for f in found.values()) + " |", flush=True)


def pca(args) -> None:
    import numpy as np
    from diffprivlib.models import PCA as PrivatePCA

    print("Share of the variance that 3 components lose, over what the best 3 lose:\n")
    print("| rows | ε | release | diffprivlib |\n|---|---|---|---|")
    for name, make in tables(args).items():
        rows, public, bounds = split(make())
        if rows.shape[1] < 4:
            continue
        centred = rows - rows.mean(0)
        covariance = centred.T @ centred / len(rows)
        values = np.linalg.eigvalsh(covariance)[::-1]
        lost = lambda V: (values.sum() - np.trace(V @ covariance @ V.T)) / values[3:].sum()
        norm = np.linalg.norm(np.maximum(abs(bounds[0]), abs(bounds[1])))
        with tempfile.TemporaryDirectory(dir=FOLDER) as where:
            ours = Nysketch(args, Path(where), rows, public, bounds)
            ours.plan(0, "--public", "public.npy", "--collect", "moments")
            for e in EPSILONS:
                found = {"ours": [], "peer": []}
                for seed in range(args.seeds):
                    ours.release(e)
                    model = ours.fit("pca", "-k", 3)
                    V = np.linalg.qr(np.array(model["components"]).T)[0].T
                    found["ours"].append(lost(V))
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        options = {"epsilon": e, "bounds": bounds, "data_norm": norm}
                        peer = PrivatePCA(3, random_state=seed, **options).fit(rows)
                    found["peer"].append(lost(np.linalg.qr(peer.components_.T)[0].T))
                line = " | ".join(f"{median(f):.4f}" for f in found.values())
                print(f"| {name} | {e:g} | {line} |", flush=True)


def sampler(args) -> None:
    """Compares the noise of releases of an empty table with OpenDP's, by chi-square tests."""
    import numpy as np
    import opendp.prelude as dp
    from scipy.stats import chi2_contingency

    dp.enable_features("contrib")
    print("| σ² | numbers of each | chi-square | degrees | p |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=FOLDER) as where:
        none, box = np.zeros((0, 1)), (np.array([0.0]), np.array([1.0]))
        ours = Nysketch(args, Path(where), none, none, box)
        (ours.folder / "none.csv").write_text("c0\n")
        many = ["--landmarks", 15000, "--sampling", "uniform"]
        ours.run("plan", "--private", "--bounds", "c0=0..1", *many, "-o", "plan.nys")
        ours.run("sketch", "none.csv", "--plan", "plan.nys", "--allow-empty", "-o", "sketch.nys")
        for epsilon in (20.0, 10.0, 4.0, 1.0):
            ours.release(epsilon, "--spend", "counts=0.9,sums=0.05,squares=0.05")
            said = [args.command, "inspect", "release.nys", "--json"]
            said = json.loads(subprocess.run(said, capture_output=True, cwd=where).stdout)
            deviation = said["release"]["mechanisms"][0]["deviation"]
            data = (ours.folder / "release.nys").read_bytes()
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            start = header["noisy.counts"]["data_offsets"][0]
            start += 8 + int.from_bytes(data[:8], "little")
            count = header["noisy.counts"]["shape"][0]
            words = np.frombuffer(data, "<i8", 2 * count, start)
            noise = words[::2]
            space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
            theirs = (space >> dp.m.then_gaussian(scale=deviation))([0] * count)
            both = np.concatenate([noise, theirs])
            edges = np.unique(np.quantile(both, np.linspace(0, 1, 41)))
            if len(edges) < 42 and np.ptp(both) < 60:
                edges = np.arange(both.min(), both.max() + 2)
            seen = np.array([np.histogram(x, edges)[0] for x in (noise, theirs)])
            seen = seen[:, seen.sum(0) >= 20]
            result = chi2_contingency(seen)
            line = f"{deviation**2:.3f} | {count:,} | {result.statistic:.1f} | {result.dof}"
            print(f"| {line} | {result.pvalue:.3f} |", flush=True)


def main() -> None:
    args = arguments()
    enter(Path(__file__), "privacy")
    tasks = {"kmeans": kmeans, "bounds": bounds, "mixtures": mixtures, "pca": pca, "sampler": sampler}
    tasks[args.what](args)


if __name__ == "__main__":
    main()
