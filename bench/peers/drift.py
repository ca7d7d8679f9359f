"""nysketch diff compared with other tools for finding drift, on the same pairs of samples.

    python3 bench/peers/drift.py [--trials 100] [--only PATTERN] [--again PATTERN] [--jobs N]

Prints, in Markdown, how often each tool calls two samples different, with and without a change, and
the cost of a comparison. Requires the command built for release. Makes an environment for each peer,
since they require different versions of NumPy (alibi-detect's takes 6 GB with PyTorch); a peer that
cannot be installed is left out. Results are kept under target/peers/drift, and are not computed again
unless --again matches N/ROWS/TOOL: `--again nysketch`. A complete run takes half an hour of CPU time;
nysketch alone takes a few minutes.
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from drift_pairs import CHANGES, CLUSTERS, NONE, ROWS, write
from environment import FOLDER, HERE, ROOT, enter, make

LEVEL = 0.05
COSTS = "costs"
REPEATS = 3
LIMIT = 1_800  # Seconds for the costs of one tool.
LEAST = 100  # Minimum number of pairs without a change for a threshold.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Tool(NamedTuple):
    """A tool: its name, the names of its scores, the share of the trials that it runs, by the
    size of the samples, and the largest samples for which its costs are measured."""

    name: str
    columns: tuple[str, ...]
    shares: dict[int, float]
    most: int = 100_000
    environment: str = ""
    rows: tuple[str, ...] = tuple(ROWS)


SIZES = (400, 5_000)
COST_SIZES = (400, 5_000, 100_000)
TOOLS = {
    "nysketch": Tool("nysketch", ("nysketch",), {400: 0.5, 5_000: 0.5}),
    "nysketch-40": Tool("nysketch, 40 landmarks", ("nysketch, 40 landmarks",), {400: 1, 5_000: 1}),
    "rows": Tool("MMD of the rows", ("MMD of the rows",), {400: 1, 5_000: 0.5}, 5_000),
    "scipy": Tool("KS", ("KS, Bonferroni", "KS, Benjamini-Hochberg"), {400: 1, 5_000: 1}),
    "evidently": Tool(
        "evidently, its report",
        ("evidently, any column", "evidently, half of them"),
        {400: 1, 5_000: 1},
        environment="evidently",
    ),
    "alibi-detect": Tool(
        "alibi-detect, MMD", ("alibi-detect, MMD",), {400: 0.25}, 5_000, "alibi-detect"
    ),
    "frouros": Tool("frouros, MMD", ("frouros, MMD",), {400: 0.25}, 5_000, "frouros", (CLUSTERS,)),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("drift.py", description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=Path, default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--trials", type=int, default=100, help="for each change")
    parser.add_argument("--only", default="", help="compute what matches this: N/ROWS/TOOL")
    parser.add_argument("--again", help="compute again what matches this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.command = args.command.resolve()
    return args


def once(line: list, limit: float | None) -> str | None:
    """Returns the output of a process with one thread: empty after the limit, None if it fails."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    pipes = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(line, env=environment, **pipes)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return ""
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return None if process.returncode else output


class Bench:
    """The remaining jobs, and the results of the finished ones."""

    def __init__(self, args, pythons: dict[str, Path]):
        self.args, self.pythons = args, pythons
        self.store = FOLDER / "drift" / "results.json"
        self.results = json.loads(self.store.read_text()) if self.store.exists() else {}
        if args.again:
            old = [key for key in self.results if re.search(args.again, key)]
            self.results = {k: v for k, v in self.results.items() if k not in old}

    def keep(self, key: str, result: dict) -> None:
        self.results[key] = result
        half = self.store.with_suffix(".part")
        half.write_text(json.dumps(self.results))
        half.rename(self.store)

    def trials(self, tool: str, n: int, change: str) -> int:
        share = TOOLS[tool].shares.get(n, 0)
        return round(share * self.args.trials * (2 if change == NONE else 1))

    def jobs(self) -> list[tuple]:
        """Returns key, tool, n, rows, and the trials of each change, or the repetitions for costs."""
        found = []
        for tool in self.pythons:
            for n, rows in ((n, rows) for n in TOOLS[tool].shares for rows in TOOLS[tool].rows):
                changes = [NONE, *(c.name for c in CHANGES if c.rows == rows)]
                wanted = {change: self.trials(tool, n, change) for change in changes}
                done = self.results.get(f"{n}/{rows}/{tool}", {})
                if any(len(done.get(change, [])) < count for change, count in wanted.items()):
                    found.append((f"{n}/{rows}/{tool}", tool, n, rows, wanted))
            for n in (n for n in COST_SIZES if n <= TOOLS[tool].most):
                if f"{n}/{COSTS}/{tool}" not in self.results:
                    found.append((f"{n}/{COSTS}/{tool}", tool, n, CLUSTERS, {COSTS: REPEATS}))
        return [job for job in found if re.search(self.args.only, job[0])]

    def work(self, job: tuple) -> tuple[str, dict | None]:
        """Makes the samples and runs the tool on them, in a separate process with one thread."""
        key, tool, n, rows, wanted = job
        with tempfile.TemporaryDirectory(dir=FOLDER / "drift") as folder:
            samples = {change: Path(folder) / change for change in wanted}
            for change, count in wanted.items():
                write(samples[change], n, rows, change, count)
            task = {"tool": tool, "cost": COSTS in wanted, "command": str(self.args.command)}
            task["folders"] = [[str(samples[change]), count] for change, count in wanted.items()]
            line = [self.pythons[tool], "-W", "ignore", HERE / "drift_tools.py", json.dumps(task)]
            output = once(line, LIMIT if task["cost"] else None)
        if output is None:
            print(f"{key}: failed", file=sys.stderr)
            return key, None
        if not output:
            return key, {"status": f"over {LIMIT} s"}
        found = json.loads(output.splitlines()[-1])
        return key, found if task["cost"] else dict(zip(wanted, found, strict=True))

    def run(self) -> None:
        jobs = self.jobs()
        with ThreadPoolExecutor(self.args.jobs) as pool:
            for at, done in enumerate(as_completed([pool.submit(self.work, j) for j in jobs]), 1):
                key, found = done.result()
                print(f"{at} of {len(jobs)}: {key}", file=sys.stderr)
                if found is not None:
                    self.keep(key, found)


def alarms(scores: list[float]) -> float:
    return sum(score <= LEVEL for score in scores) / len(scores)


def at_equal_level(scores: list[float], null: list[float]) -> float:
    """Returns the rate of alarms at the threshold whose rate is 5 % without a change.

    Scores equal to the threshold count in part, so that the level is 5 % also with ties.
    """
    threshold = sorted(null)[int(LEVEL * len(null))]

    def shares(of: list[float]) -> tuple[float, float]:
        below, equal = sum(s < threshold for s in of), sum(s == threshold for s in of)
        return below / len(of), equal / len(of)

    below, equal = shares(null)
    part = (LEVEL - below) / equal
    below, equal = shares(scores)
    return below + part * equal


def section(n: int, bench: Bench) -> list[str]:
    """Returns the lines on the alarms of all tools on samples of n rows."""
    chosen = [(t, i) for t in TOOLS if n in TOOLS[t].shares for i in range(len(TOOLS[t].columns))]
    lines = [
        f"\nn = {n:,}:\n",
        "| rows | change | " + " | ".join(TOOLS[tool].columns[i] for tool, i in chosen) + " |",
        "|---" * (len(chosen) + 2) + "|",
    ]
    shown = [(rows, NONE, NONE) for rows in ROWS]
    shown += [(c.rows, c.name, c.says(n)) for c in CHANGES]
    for rows, change, words in shown:
        cells = []
        for tool, i in chosen:
            found = bench.results.get(f"{n}/{rows}/{tool}", {})
            count = {c: bench.trials(tool, n, c) for c in (NONE, change)}
            scores = {c: [s[i] for s in found.get(c, [])][: count[c]] for c in count}
            if not all(scores.values()):
                cells.append("–")
            elif change == NONE:
                cells.append(f"{100 * alarms(scores[NONE]):.1f} %")
            else:
                nominal = f"({100 * alarms(scores[change]):.0f}) %"
                if len(scores[NONE]) >= LEAST:
                    equal = at_equal_level(scores[change], scores[NONE])
                    nominal = f"{100 * equal:.0f} {nominal}"
                cells.append(nominal)
        lines.append(f"| {rows} | {words} | {' | '.join(cells)} |")
    return lines


def size(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def costs(bench: Bench) -> list[str]:
    lines = [
        "\nCosts on the rows of 5 clusters (5 columns), from files to the answer, with one thread: "
        "once for the reference, and each time that something is compared with it. nysketch runs "
        "as whole processes, the others in Python without imports:\n",
        "| n | tool | CPU s, once | CPU s, each time | peak memory | before the rows | to keep |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in COST_SIZES:
        for tool, about in TOOLS.items():
            name, found = about.name, bench.results.get(f"{n}/{COSTS}/{tool}")
            if not found:
                continue
            if "status" in found:
                lines.append(f"| {n:,} | {name} | | {found['status']} | | | |")
                continue
            before = size(found["packages"]) if found["packages"] else ""
            line = f"| {n:,} | {name} | {seconds(found['once'])} | {seconds(found['each'])} "
            line += f"| {size(found['peak'])} | {before} | {size(found['kept'])} |"
            lines.append(line)
    most = max(COST_SIZES)
    lines.append(
        f"\nMMD on rows is left out at n = {most:,}: the kernel matrix has "
        f"{4 * (2 * most) ** 2 / 1e9:,.0f} GB in float32; in blocks, it takes 400 times the CPU "
        "seconds of n = 5,000."
    )
    return lines


def version(package: str, environment: str = "") -> str:
    """Returns package and version, as pinned for this Python."""
    path = FOLDER / f"environment{environment and '-' + environment}" / "lib"
    found = next(path.glob(f"python*/site-packages/{package.replace('-', '_')}-*.dist-info"))
    return f"{package} {found.name.removesuffix('.dist-info').split('-')[1]}"


def notes(args, missing: list[str]) -> list[str]:
    few = [
        f"{round(share * args.trials)} for {tool.name} (n = {n:,})"
        for tool in TOOLS.values()
        for n, share in tool.shares.items()
        if share < 1
    ]
    peers = [
        version(t, about.environment)
        for t, about in TOOLS.items()
        if t not in missing and about.environment
    ]
    lines = [
        f"Share of the pairs of samples that are called different: {args.trials} pairs for each "
        f"change, {2 * args.trials} without one.",
        f"Slow tools see the first of them: of a change, {', '.join(few)}. –: not run, to save "
        "time; so are alibi-detect and frouros at n = 5,000, but for the costs.",
        "Without a change: false alarms at a nominal 5 %. With one: at equal level (the threshold "
        "raises 5 % false alarms on the pairs without a change, if there are "
        f"{LEAST} of them), in parentheses at a nominal 5 %.",
        f"With {', '.join([version('scipy'), *peers])}.",
    ]
    for tool in missing:
        lines.append(f"{tool} does not install with Python {platform.python_version()}: left out.")
    return lines


def main() -> None:
    args = arguments()
    enter(Path(__file__).resolve())
    os.nice(10)
    (FOLDER / "drift").mkdir(exist_ok=True)
    pythons, missing = {}, []
    for tool, about in TOOLS.items():
        try:
            pythons[tool] = make(about.environment)
        except subprocess.CalledProcessError:
            missing.append(tool)
    bench = Bench(args, pythons)
    bench.run()
    lines = notes(args, missing)
    for n in SIZES:
        lines += section(n, bench)
    print("\n".join(lines + costs(bench)))


if __name__ == "__main__":
    main()
