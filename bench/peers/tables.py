"""The tables of the benchmark, and the risk of a model on all their rows."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DIMS = 20
# Rows, k, separation.
SYNTHETIC = [(10**6, 10, 2), (10**6, 10, 0.5), (10**6, 100, 2), (10**7, 10, 2), (10**7, 100, 2)]
QUICK = [(10**5, 10, 2), (10**5, 10, 0.5)]
# Name, k, column to leave out.
REAL = [("covtype", 10, "label"), ("flights_3m", 10, "")]


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    path: Path
    rows: int
    k: int
    tasks: tuple[str, ...] = ("kmeans",)
    separation: float | None = None
    exclude: str = ""
    scaled: bool = False


def synthetic(folder: Path, n: int, k: int, s: float) -> Table:
    """Describes a mixture of k Gaussians, without generating it."""
    title = f"Gaussian mixture, {n:,} rows × {DIMS} columns, k = {k}, separation {s}"
    tasks = ("kmeans",) + ("gmm",) * (k == 10) + ("pass",) * (k == 10 and n <= 10**6)
    name = f"n{n}-k{k}-s{s}"
    return Table(name, title, folder / f"{name}.parquet", n, k, tasks, s)


def real(folder: Path, name: str, k: int, exclude: str) -> Table:
    """Describes a table in a file whose columns are to be standardised."""
    path = folder / f"{name}.parquet"
    shape = pq.read_metadata(path)
    columns = shape.num_columns - bool(exclude)
    title = f"{name}, {shape.num_rows:,} rows × {columns} columns, standardised, k = {k}"
    return Table(name, title, path, shape.num_rows, k, exclude=exclude, scaled=True)


def make(table: Table, command: str) -> None:
    """Generates a mixture if it does not exist; up to 10⁶ rows also as npy."""
    if table.path.exists():
        return
    array, half = table.path.with_suffix(".npy"), table.path.with_suffix(".part")
    line = ["generate", "gmm", "--rows", table.rows, "--dims", DIMS, "--clusters", table.k]
    line += ["--separation", table.separation, "-o", array, "-q"]
    subprocess.run([command, *map(str, line)], check=True, stdout=subprocess.DEVNULL)
    X = np.load(array, mmap_mode="r")
    columns = {f"c{j}": np.ascontiguousarray(X[:, j], np.float32) for j in range(DIMS)}
    pq.write_table(pa.table(columns), half)
    half.rename(table.path)
    if table.rows > 10**6:
        array.unlink()


def blocks(table: Table) -> Iterator[np.ndarray]:
    """Yields the rows in doubles."""
    file = pq.ParquetFile(table.path)
    columns = [c for c in file.schema_arrow.names if c != table.exclude]
    for batch in file.iter_batches(2**16, columns=columns):
        yield np.column_stack(batch.columns).astype(np.float64)


@lru_cache
def deviations(table: Table) -> np.ndarray:
    """Returns the standard deviations of the columns, 1 for constant ones."""
    mean = sum(X.sum(axis=0) for X in blocks(table)) / table.rows
    squares = sum(((X - mean) ** 2).sum(axis=0) for X in blocks(table))
    return np.where(squares > 0, np.sqrt(squares / table.rows), 1)


def risk(table: Table, model: dict) -> float:
    """Returns the mean squared distance to the nearest centre, or the negative log-likelihood."""
    total = 0.0
    if "centres" in model:
        scale = deviations(table) if table.scaled else 1
        centres = np.array(model["centres"]) / scale
        for X in blocks(table):
            X /= scale
            near = (centres**2).sum(axis=1) - 2 * X @ centres.T
            total += near.min(axis=1).sum() + (X**2).sum()
    else:
        weights, means, variances = (np.array(model[x]) for x in ("weights", "means", "variances"))
        norms = (means**2 / variances + np.log(2 * np.pi * variances)).sum(axis=1)
        for X in blocks(table):
            logs = X @ (means / variances).T - 0.5 * X**2 @ (1 / variances).T
            logs += np.log(weights) - 0.5 * norms
            most = logs.max(axis=1)
            total -= (most + np.log(np.exp(logs - most[:, None]).sum(axis=1))).sum()
    return total / table.rows
