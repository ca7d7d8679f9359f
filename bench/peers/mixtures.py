"""Mixtures compared with scikit-learn: EM on the same rows, and outliers of a labelled table.

    python3 bench/peers/mixtures.py [--data FOLDER] [--command target/release/nysketch]

Has the requirements of bench/peers, and uses its environment. Prints Markdown tables.
"""

import argparse
import os
import tempfile
from pathlib import Path
from statistics import median

from command import run
from environment import FOLDER, ROOT, enter

COMPONENTS = 10
FLOORS = (1e-4, 1e-2)  # The default of the command, and a coarse one.
EM_TABLES = ("esc50_mfcc20.npy", "flights_3m.parquet")
EM_ROWS, EM_STARTS = 30_000, 3
SEEDS = 5
IDS = ("track_id",)  # Columns with row numbers.


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("NYSKETCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, help="default: $NYSKETCH_DATA")
    parser.add_argument("--command", default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--jobs", type=int, default=1, help="tables at the same time")
    args = parser.parse_args()
    if not args.data:
        parser.error("--data: a folder of tables is needed")
    return args


def read(path: Path):
    """Returns the standardised rows of a table, and its labels if it has any."""
    import numpy as np
    import pyarrow.parquet as pq

    labels = None
    if path.suffix == ".npy":
        X = np.load(path).astype(np.float64)
    else:
        table = pq.read_table(path)
        if "label" in table.column_names:
            labels = table["label"].to_numpy()
            table = table.drop_columns("label")
        table = table.drop_columns([name for name in IDS if name in table.column_names])
        X = np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), labels


class Command:
    """Runs the command on an array in a separate folder."""

    def __init__(self, command: Path, folder: Path, X) -> None:
        import numpy as np

        self.command, self.folder, self.rows = command, folder, folder / "rows.npy"
        np.save(self.rows, X)

    def log_density(self, seed: int, covariance: str, plan=(), fit=()):
        """Returns the log densities of the rows under a mixture learned from their sketch."""
        import pyarrow.parquet as pq

        names = ("sketch.nys", "model.json", "rows.parquet")
        sketch, model, predicted = (self.folder / name for name in names)
        run(self.command, "sketch", self.rows, *plan, "--seed", seed, "-o", sketch)
        options = ["-k", COMPONENTS, "--covariance", covariance, "--seed", seed, *fit]
        run(self.command, "fit", "gmm", sketch, *options, "-o", model)
        run(self.command, "predict", model, self.rows, "--force", "-o", predicted)
        return pq.read_table(predicted)["log_density"].to_numpy()


def em(args: argparse.Namespace) -> None:
    """Compares EM by the command, with all rows retained, with scikit-learn's; equal starts."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    print("| table | covariance | nysketch, every row a witness | scikit-learn GaussianMixture |")
    print("|---|---|---|---|")
    every = ("--sample-rows", "all", "--witnesses", EM_ROWS)
    one = ("--restarts", 1, "--min-variance", FLOORS[0])
    for name in EM_TABLES:
        X, _ = read(args.data / name)
        X = X[np.random.default_rng(0).permutation(len(X))[:EM_ROWS]]
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            ours = Command(args.command, Path(folder), X)
            for covariance in ("diag", "full"):
                options = {"covariance_type": covariance, "reg_covar": FLOORS[0]}
                options |= {"tol": 1e-4, "max_iter": 200}  # As in the command.
                found = [
                    ours.log_density(seed, covariance, every, one).mean()
                    for seed in range(EM_STARTS)
                ]
                theirs = [
                    GaussianMixture(COMPONENTS, random_state=seed, **options).fit(X).score(X)
                    for seed in range(EM_STARTS)
                ]
                shown = " | ".join(
                    f"{max(each):.3f} ({', '.join(f'{x:.3f}' for x in each)})"
                    for each in (found, theirs)
                )
                print(f"| {name} | {covariance} | {shown} |", flush=True)


def outliers(args: argparse.Namespace) -> None:
    """Prints how well scores separate the rare class of shuttle, which no method is given."""
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import roc_auc_score
    from sklearn.mixture import GaussianMixture

    X, labels = read(args.data / "shuttle.parquet")
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        ours = Command(args.command, Path(folder), X)

        def sketch(covariance, floor):
            return lambda seed: ours.log_density(seed, covariance, fit=("--min-variance", floor))

        def mixture(covariance, floor):
            options = {"covariance_type": covariance, "reg_covar": floor}
            return lambda seed: (
                GaussianMixture(COMPONENTS, random_state=seed, **options).fit(X).score_samples(X)
            )

        def forest(seed):
            return IsolationForest(random_state=seed).fit(X).score_samples(X)

        kinds = [(covariance, floor) for covariance in ("full", "diag") for floor in FLOORS]
        methods = {f"sketch | {c} | {f:g}": sketch(c, f) for c, f in kinds}
        methods |= {"GaussianMixture | full | 1e-06 (its default)": mixture("full", 1e-6)}
        methods |= {f"GaussianMixture | {c} | {f:g}": mixture(c, f) for c, f in kinds}
        methods |= {"IsolationForest | – | –": forest}
        print("\n| method | covariance | least variance | AUC: median | least | most |")
        print("|---|---|---|---|---|---|")
        for name, score in methods.items():
            found = [roc_auc_score(labels, -score(seed)) for seed in range(SEEDS)]
            shown = f"{median(found):.3f} | {min(found):.3f} | {max(found):.3f}"
            print(f"| {name} | {shown} |", flush=True)


def main() -> None:
    args = arguments()
    enter(Path(__file__))
    em(args)
    outliers(args)


if __name__ == "__main__":
    main()
