"""k-means on tables with missing values compared with imputation: risk on the complete table.

    python3 bench/peers/missing.py [--data FOLDER] [--command target/release/nysketch] [--jobs N]

Values of public tables are removed completely at random, and every method learns from the table with
missing values. The reported value is the mean squared distance of the original rows to its centres,
divided by that of Lloyd's algorithm on the original rows: the median of five draws of the missing
values (one draw for the imputers, which take minutes). Has the requirements of bench/peers, and uses
its environment. Prints a Markdown table, and fails if the sketch is not better than mean imputation
and than complete rows alone.
"""

import sys
import tempfile
import warnings
from multiprocessing import Pool
from pathlib import Path
from statistics import median

from command import centres, kmeans
from environment import FOLDER, enter
from mixtures import arguments, read

K = 10
ROWS = 30_000
RATES = (0.05, 0.2, 0.4)
SEEDS = 5
STARTS = 10
FIRST = 5_000  # Lower draws were used to choose between variants of the method.
FITTED = 2_000  # Number of rows from which an imputer learns.
LEAST = 50  # Minimum number of complete rows for clustering them alone.
PARTIAL = ("--missing", "partial", "--scale", "none")
TABLES = (
    "mnist_spectral.npy",
    "esc50_mfcc20.npy",
    "fma2000_mfcc.parquet",
    "shuttle.parquet",
    "covtype.parquet",
    "cifar10_resnet18_pca50.npy",
)
SKETCH, MEAN, COMPLETE = "nysketch", "mean imputation", "complete rows"  # The last two must be worse.
COLUMNS = (SKETCH, MEAN, COMPLETE, "KNNImputer", "IterativeImputer", "k-POD")


def lloyd(X, seed: int):
    from sklearn.cluster import KMeans

    return KMeans(K, n_init=STARTS, random_state=seed).fit(X).cluster_centers_


def risk(X, C) -> float:
    return float(((C**2).sum(axis=1) - 2 * X @ C.T).min(axis=1).mean() + (X**2).sum(axis=1).mean())


def by_sketch(H, seed: int, command: Path, folder: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"c{j}": pa.array(H[:, j], from_pandas=True) for j in range(H.shape[1])}
    table = folder / "rows.parquet"
    pq.write_table(pa.table(columns), table)
    return centres(kmeans(command, table, K, seed, *PARTIAL))


def k_pod(H, seed: int):
    """Lloyd's algorithm with missing values taken from the row's centre (Chi, Chi and Baraniuk)."""
    import numpy as np
    from sklearn.cluster import kmeans_plusplus

    there = ~np.isnan(H)
    values, filled = np.where(there, H, 0), np.where(there, H, np.nanmean(H, axis=0))
    there = there.astype(float)
    best = np.inf, None
    for start in range(STARTS):
        C, _ = kmeans_plusplus(filled, K, random_state=seed * STARTS + start)
        last = np.inf
        for _ in range(300):
            distances = there @ (C**2).T - 2 * values @ C.T
            member = np.eye(K)[distances.argmin(axis=1)].T
            total, count, sums = distances.min(axis=1).sum(), member @ there, member @ values
            C = np.where(count > 0, sums / np.maximum(count, 1), C)
            if last - total <= 1e-5 * abs(total):
                break
            last = total
        best = min(best, (total, C), key=lambda each: each[0])
    return best[1]


def methods(H, seed: int, command: Path, folder: Path) -> dict:
    """Returns the centres of each method for a table with missing values; `None` if unusable."""
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    warnings.simplefilter("ignore", ConvergenceWarning)  # Imputers keep their defaults.
    holes = np.isnan(H)
    complete = H[~holes.any(axis=1)]
    found = {
        SKETCH: by_sketch(H, seed, command, folder),
        MEAN: lloyd(np.where(holes, np.nanmean(H, axis=0), H), seed),
        COMPLETE: lloyd(complete, seed) if len(complete) >= LEAST else None,
        "k-POD": k_pod(H, seed),
    }
    if seed == 0:
        sample = H[np.random.default_rng(seed).permutation(len(H))[:FITTED]]
        for imputer in (KNNImputer(), IterativeImputer(random_state=seed)):
            filled = imputer.fit(sample).transform(H)
            found[type(imputer).__name__] = lloyd(filled, seed)
    return found


def table(path: Path):
    import numpy as np

    X, _ = read(path)
    return X[np.random.default_rng(0).permutation(len(X))[:ROWS]]


def risks(job: tuple[Path, float, int, Path]) -> dict:
    """Returns the risk of each method on the original rows, for one draw of the missing values."""
    import numpy as np

    path, rate, seed, command = job
    X = table(path)
    H = X.copy()
    H[np.random.default_rng(FIRST + seed).random(X.shape) < rate] = np.nan
    # Drop rows without any value.
    H = H[~np.isnan(H).all(axis=1)]
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        found = methods(H, seed, command, Path(folder))
    best = risk(X, lloyd(X, seed))
    return {None: best} | {name: risk(X, C) for name, C in found.items() if C is not None}


def main() -> None:
    args = arguments()
    enter(Path(__file__))
    FOLDER.mkdir(parents=True, exist_ok=True)
    jobs = [
        (args.data / name, rate, seed, args.command)
        for name in TABLES
        for rate in RATES
        for seed in range(SEEDS)
    ]
    with Pool(args.jobs) as pool:
        results = iter(pool.map(risks, jobs, chunksize=1))
    print(f"| table | missing | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    lost = []
    for name in TABLES:
        draws = {rate: [next(results) for _ in range(SEEDS)] for rate in RATES}
        least = min(draw[None] for each in draws.values() for draw in each)
        for rate in RATES:
            found = {c: [d[c] / least for d in draws[rate] if c in d] for c in COLUMNS}
            found = {c: values for c, values in found.items() if values}
            shown = " | ".join(f"{median(found[c]):.3f}" if c in found else "–" for c in COLUMNS)
            print(f"| {name} | {rate:.0%} | {shown} |", flush=True)
            for other in (MEAN, COMPLETE):
                ours, theirs = found[SKETCH], found.get(other, [])
                if len(theirs) == SEEDS and median(theirs) <= median(ours):
                    won = sum(x < y for x, y in zip(ours, theirs, strict=True))
                    lost.append(f"{name}, {rate:.0%}, {other}: better in {won} of {SEEDS}")
    if lost:
        sys.exit("\n".join(["Not better in the median of all draws:", *lost]))


if __name__ == "__main__":
    main()
