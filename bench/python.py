"""Costs of Python compared with the command line: time, memory, tables larger than memory.

    python bench/python.py [--rows 1000000] [--table-gb 5] [--command target/release/nysketch]

Requires the package, pyarrow and polars, and the command built for release. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# Run in a separate process, so that the peak memory is that of this work alone.
PEAK = """
def peak():  # In MB. Not ru_maxrss, which starts at that of the process before.
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
"""

FIT = (
    PEAK
    + """
import sys, time, numpy as np
from nysketch import CompressiveKMeans
X = np.load(sys.argv[1])
CompressiveKMeans(2).fit(X[:2000])  # imports
before, times = peak(), []
for _ in range(5):
    start = time.perf_counter()
    CompressiveKMeans(10, random_state=0, {options}).fit(X)
    times.append(time.perf_counter() - start)
print(min(times), peak() - before)
"""
)

STREAM = (
    PEAK
    + """
import sys, time
import nysketch
{source}
start = time.perf_counter()
plan = nysketch.Plan.from_data(X, landmarks=200)
sketch = plan.sketch(X)
print(time.perf_counter() - start, peak(), sketch.rows)
"""
)

SOURCES = {
    "pyarrow dataset": "import pyarrow.dataset as ds; X = ds.dataset(sys.argv[1])",
    "polars lazy frame": "import polars as pl; X = pl.scan_parquet(sys.argv[1] + '/*.parquet')",
}


def python(script: str, *arguments: object) -> list[float]:
    line = [sys.executable, "-c", script, *(str(a) for a in arguments)]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    return [float(x) for x in done.stdout.split()]


def by_command(command: str, file: Path, folder: Path) -> float:
    """Returns the wall-clock time of sketching and fitting, best of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for line in (
            ["sketch", file, "-o", folder / "s.nys"],
            ["fit", "kmeans", folder / "s.nys", "-k", "10", "-o", folder / "m.json"],
        ):
            subprocess.run([command, *map(str, line), "-q"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def write_table(folder: Path, gigabytes: float) -> float:
    """Writes Parquet files of 20 columns of doubles; returns their size in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, rows = np.random.default_rng(0), 1_000_000
    count = max(1, round(gigabytes * 1e9 / (rows * 20 * 8)))
    for i in range(count):
        X = (
            rng.normal(size=(rows, 20))
            + rng.normal(scale=5, size=(10, 20))[rng.integers(10, size=rows)]
        )
        table = pa.table({f"x{j}": X[:, j] for j in range(20)})
        pq.write_table(
            table, folder / f"{i:03}.parquet", row_group_size=100_000, use_dictionary=False
        )
    return count * rows * 20 * 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--table-gb", type=float, default=5)
    parser.add_argument("--command", default="target/release/nysketch")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate = ["generate", "gmm", "--rows", args.rows, "--dims", 20, "--clusters", 10]
        line = [args.command, *map(str, generate), "-o", str(folder / "x.npy"), "-q"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        np.save(folder / "x.npy", np.load(folder / "x.npy").astype(np.float32))
        command = by_command(args.command, folder / "x.npy", folder)
        print(f"{args.rows:,} rows × 20 columns of float32, k = 10, best of five\n")
        print("| | seconds | over the command | memory beside X |")
        print("|---|---|---|---|")
        print(f"| command: sketch x.npy, fit kmeans | {command:.2f} | 1.00 | |")
        same = "collect=['kernel', 'cells', 'moments'], compute_labels=False"
        for what, options in [
            ("CompressiveKMeans(10).fit(X)", ""),
            ("… without labels", "compute_labels=False"),
            ("… with the sums of the command", same),
        ]:
            seconds, memory = python(FIT.format(options=options), folder / "x.npy")
            print(f"| {what} | {seconds:.2f} | {seconds / command:.2f} | {memory:.0f} MB |")
        (folder / "table").mkdir()
        size = write_table(folder / "table", args.table_gb)
        print(f"\nA table of {size / 1e9:.1f} GB, planned and sketched at 200 landmarks\n")
        print("| X | seconds | peak memory of the process |")
        print("|---|---|---|")
        for what, source in SOURCES.items():
            seconds, memory, _ = python(STREAM.format(source=source), folder / "table")
            print(f"| {what} | {seconds:.1f} | {memory:.0f} MB |")


if __name__ == "__main__":
    main()
