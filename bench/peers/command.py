"""Running the command in benchmarks."""

import json
import subprocess
from pathlib import Path


def run(command: Path, *line: object) -> None:
    """Runs the command; its messages are shown only if it fails."""
    line = [str(part) for part in (command, *line, "-q")]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")


def kmeans(command: Path, table: Path, k: int, seed: int, *plan: object) -> Path:
    """Returns the file of a k-means model from a sketch; both are written next to the table."""
    sketch, model = table.with_suffix(".nys"), table.with_suffix(".json")
    options = ["--clusters", k, "--seed", seed, *plan]
    run(command, "sketch", table, *options, "-o", sketch, "--force")
    run(command, "fit", "kmeans", sketch, "-k", k, "--seed", seed, "-o", model, "--force")
    return model


def centres(model: Path):
    """Returns the centres of a model, in units of the table."""
    import numpy as np

    return np.array(json.loads(model.read_text())["centres"])


def labels(command: Path, model: Path, table: Path):
    """Returns the cluster of each row."""
    import pyarrow.csv as csv

    found = table.with_suffix(".labels.csv")
    run(command, "predict", model, table, "-o", found, "--force")
    return csv.read_csv(found)["label"].to_numpy()
