"""The document: a table for each data set, and summary ratios."""

import importlib.metadata
import math
import os
import platform
import re
import subprocess
from pathlib import Path

import methods
from tables import Table

PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "faiss-cpu", "pycle")

HOW = """\
# Lab notebook: benchmarks

How nysketch compares with other ways to get from a Parquet file to a model. To measure again:

```console
$ cargo build --release
$ python3 bench/peers
```

Measured on {machine}.
Other programs shared the machine, so ratios are more reliable than seconds.

- Every run is a separate process, with all cores and with one thread, three times each if it
  takes less than 10 seconds. The tables give the least CPU time (user and system, all threads), the
  least wall time and the most memory of the runs.
- nysketch is the command line: `sketch` and `fit`, whole processes. The others are timed in Python
  from the start of reading the file (pyarrow, into one array of float32) to the model, without
  imports. Memory is the peak of the process, Python and its packages included.
- *To learn* is the part of the CPU time for learning alone: `nysketch fit`, without reading and
  sketching; for the others, everything after the array is loaded and scaled.
- Columns of the real tables are standardised (`--scale standard`, `StandardScaler`); times include
  this.
- Risks are computed in doubles on all rows. All methods run with one fixed seed. *To keep* is
  the size of the data needed to learn again: the sketch, or the rows as float32.
- *Cells at M landmarks* is `nysketch sketch --collect cells --landmarks M`; *defaults* has no
  options.
- scikit-learn runs with its defaults, except `KMeans(n_init=1)`,
  `GaussianMixture(covariance_type="diag")` and, for `Birch`, the threshold 0.9·√(risk of k-means on
  10,000 rows), since its default of 0.5 is far below the distances here; its centres are the means
  of its clusters.
- `faiss.Kmeans` takes 256 rows per centre by default; *all rows* sets `max_points_per_centroid`.
- pycle runs its solver once, with 10·k·d frequencies. Their scale is estimated from 2 % of the
  rows, as in its demos, by the rule of adapted radii, which does better here than the demos' folded
  Gaussian.
- A run is stopped after {limit:g} seconds (one thread is then not tried), or if a peer asks for more
  than 16 GB of address space.
- Kernel means are at 200 landmarks and one bandwidth. NumPy computes them in blocks of float32 with
  BLAS, from an array in memory; the command computes them exactly, from an npy file, with an
  existing plan. The floor of all cores is that of section Floor for d = 20: no program is faster here.
"""


def machine(command: str) -> str:
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    version = subprocess.run([command, "--version"], check=True, stdout=subprocess.PIPE, text=True)
    packages = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
    name = processor[1] if processor else platform.machine()
    return (
        f"{name}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, with "
        f"{version.stdout.strip()}, Python {platform.python_version()}, {packages}"
    )


def size(count: float) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


def best(table: Table, task: str, results: dict) -> float:
    found = (results.get(f"{table.name}/{task}/{m}", {}) for m in methods.of(task, table.k))
    return min((r["risk"] for r in found if "risk" in r), default=math.nan)


def section(table: Table, task: str, results: dict, quick: bool) -> list[str]:
    """Returns the table of one task, ordered by CPU time."""
    least, rows, notes = best(table, task, results), [], set()
    for method in methods.of(task, table.k):
        result = results.get(f"{table.name}/{task}/{method}", {})
        if "risk" in result:
            over = result["risk"] - least
            risk = f"×{1 + over / least:.4f}" if task == "kmeans" else f"{over:.4f}"
            learn = f"{result['learn']:.2f}" if "learn" in result else ""
            row = f"{result['cpu']:.2f} | {learn} | {result['wall']:.2f} | {risk}"
            row += f" | {size(result['peak'])} | {size(result['kept'])}"
        else:
            row = f"{result.get('status', '–')} | | | | |"
        if not result:
            notes.add(methods.left_out(method, table.rows, table.k, quick) or "not run yet")
        rows.append((result.get("cpu", 1e9 if result else 1e10), f"| {method} | {row} |"))
    title, risk = f"k-means. Least mean squared distance: {least:.4f}", "risk over the least"
    if task == "gmm":
        title, risk = f"Mixture. Greatest log-likelihood: {-least:.4f} nats per row", "nats below"
    head = (
        f"| method | CPU s | to learn | wall s | {risk} | peak memory | to keep |\n"
        "|---|---|---|---|---|---|---|"
    )
    notes = [f"\n–: {note}." for note in sorted(notes)]
    return [f"\n{title}\n", head, *(row for _, row in sorted(rows)), *notes]


CELLS, MINIBATCH, MIXTURE = methods.CELLS_100, methods.MINIBATCH, methods.MIXTURE
PROMISES = {
    "CPU: k-means from cells over MiniBatchKMeans": ("cpu", "kmeans", CELLS, MINIBATCH),
    "CPU: k-means with defaults over MiniBatchKMeans": (
        "cpu",
        "kmeans",
        methods.DEFAULTS,
        MINIBATCH,
    ),
    "CPU: mixture from cells over GaussianMixture": ("cpu", "gmm", CELLS, MIXTURE),
    "CPU to learn: mixture from cells over GaussianMixture": ("learn", "gmm", CELLS, MIXTURE),
    "risk: k-means from cells over KMeans": ("risk", "kmeans", CELLS, methods.KMEANS),
    "risk: k-means from cells over the least of all": ("risk", "kmeans", CELLS, ""),
    "nats: mixture from cells below GaussianMixture": ("risk", "gmm", CELLS, MIXTURE),
    "memory: k-means from cells over MiniBatchKMeans": ("peak", "kmeans", CELLS, MINIBATCH),
    "memory: mixture from cells over GaussianMixture": ("peak", "gmm", CELLS, MIXTURE),
    "wall: kernel means, NumPy over nysketch": ("wall", "pass", *methods.of("pass", 0)),
}


def promises(tables: list[Table], results: dict) -> list[str]:
    """Returns ratios, and a difference in nats."""
    chosen = [t for t in tables if "pass" in t.tasks]

    def value(table: Table, what: str, task: str, method: str) -> float:
        result = results.get(f"{table.name}/{task}/{method}", {})
        return result.get(what, math.nan) if method else best(table, task, results)

    lines = [
        f"## Ratios\n\n{chosen[0].rows:,} rows, k = 10, cells at 100 landmarks:\n",
        "| | " + " | ".join(f"separation {t.separation}" for t in chosen) + " |",
        "|---" * (len(chosen) + 1) + "|",
    ]
    for name, (what, task, one, other) in PROMISES.items():
        pairs = [(value(t, what, task, one), value(t, what, task, other)) for t in chosen]
        nats = name.startswith("nats")
        cells = [f"{a - b:.4f}" if nats else f"{a / b:.3f}" for a, b in pairs]
        lines.append(f"| {name} | {' | '.join(cells)} |".replace("nan", "–"))
    floor = re.search(r"pair .*?^\| 20 \| 1000 \| ([0-9.]+)", results.get("floor", ""), re.M | re.S)
    if floor:
        pair = float(floor[1]) * 1e-9 / os.cpu_count()
        least = [pair * t.rows * methods.PASS_LANDMARKS for t in chosen]
        numpy = [value(t, "wall", "pass", methods.NUMPY_PASS) for t in chosen]
        walls = [a / b for a, b in zip(numpy, least, strict=True)]
        name = "wall: kernel means, NumPy over the floor of all cores"
        lines.append(f"| {name} | {' | '.join(f'{w:.3f}' for w in walls)} |".replace("nan", "–"))
    return lines


def document(tables: list[Table], results: dict, args) -> str:
    lines = [HOW.format(machine=machine(args.command), limit=args.limit)]
    for table in tables:
        lines.append(f"## {table.title}")
        for task in table.tasks:
            if task != "pass":
                lines += section(table, task, results, args.quick)
        lines.append("")
    lines += promises(tables, results)
    for name in ("floor", "growth"):
        if name in results and not args.quick:
            lines.append(f"\n## {name.title()}\n\n{results[name].strip()}")
    return "\n".join(lines) + "\n"
