"""Mixtures of many components compared with scikit-learn: likelihood on all rows and CPU time.

    python3 bench/peers/many_components.py [--data FOLDER] [--command target/release/nysketch] [--components 50 200] [--only PATTERN]

Has the requirements of bench/peers, and uses its environment. Prints a Markdown table. `--only`
selects by a pattern for TABLE/K/METHOD, such as `flights|sketch`.
"""

import argparse
import os
import re
import resource
import tempfile
import time
from pathlib import Path
from statistics import median

from command import run
from environment import FOLDER, ROOT, enter
from mixtures import FLOORS, read

TABLES = {"esc50_mfcc20.npy": 100_000, "flights_3m.parquet": 60_000}  # With the number of rows to use.
WITNESSES = 20_000  # Number of retained rows of a sketch.


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("NYSKETCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, help="default: $NYSKETCH_DATA")
    parser.add_argument("--command", default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--components", type=int, nargs="+", default=[50])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="what matches this: TABLE/K/METHOD")
    args = parser.parse_args()
    if not args.data:
        parser.error("--data: a folder of tables is needed")
    return args


def by_sketch(command: Path, folder: Path, X, k: int, seed: int) -> tuple[float, float]:
    """Returns the negative log-likelihood of a mixture learned from a sketch, and CPU seconds."""
    import numpy as np
    import pyarrow.parquet as pq

    names = ("rows.npy", "sketch.nys", "model.json", "rows.parquet")
    rows, sketch, model, predicted = (folder / name for name in names)
    np.save(rows, X)
    run(command, "sketch", rows, "--clusters", k, "--seed", seed, "--force", "-o", sketch)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["-k", k, "--covariance", "diag", "--seed", seed]
    run(command, "fit", "gmm", sketch, *options, "--force", "-o", model)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, "predict", model, rows, "--force", "-o", predicted)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return -pq.read_table(predicted)["log_density"].to_numpy().mean(), cpu


def by_em(X, few: int, k: int, seed: int) -> tuple[float, float]:
    """Returns the negative log-likelihood and CPU seconds of GaussianMixture on the first rows."""
    from sklearn.mixture import GaussianMixture

    options = {"covariance_type": "diag", "reg_covar": FLOORS[0], "tol": 1e-4, "max_iter": 200}
    start = time.process_time()
    found = GaussianMixture(k, random_state=seed, **options).fit(X[:few])
    return -found.score(X), time.process_time() - start


def main() -> None:
    args = arguments()
    enter(Path(__file__))
    import numpy as np

    print("| table | k | learned from | −log-likelihood: median | least | most | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, count in TABLES.items():
        X, _ = read(args.data / name)
        X = X[np.random.default_rng(0).permutation(len(X))[:count]]
        for k in args.components:
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                methods = {
                    "the sketch": lambda seed: by_sketch(args.command, Path(folder), X, k, seed),
                    f"{WITNESSES:,} rows (EM)": lambda seed: by_em(X, WITNESSES, k, seed),
                    "all rows (EM)": lambda seed: by_em(X, len(X), k, seed),
                }
                for method, learn in methods.items():
                    if not re.search(args.only, f"{name}/{k}/{method}"):
                        continue
                    found, cpu = zip(*(learn(seed) for seed in range(args.seeds)), strict=True)
                    spread = f"{median(found):.3f} | {min(found):.3f} | {max(found):.3f}"
                    print(f"| {name} | {k} | {method} | {spread} | {median(cpu):.1f} |", flush=True)


if __name__ == "__main__":
    main()
