"""nysketch compared with k-means, mixtures and compressive learning in Python.

    python3 bench/peers [--quick] [--data FOLDER] [--command target/release/nysketch] [-o FILE]

Compares time, memory and quality. Requires the command built for release and Python 3.10 or newer.
Makes its own environment and data under target/peers, and writes a Markdown document. Results are
kept in results.json there, and are not measured again without --fresh.
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

from environment import FOLDER, HERE, ROOT, enter

CORES = os.cpu_count() or 1
FAST = 10  # Seconds; faster jobs are run three times.


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench/peers", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, to try the script")
    folder = os.environ.get("NYSKETCH_DATA")
    parser.add_argument("--data", type=Path, default=folder, help="default: $NYSKETCH_DATA")
    parser.add_argument("--command", default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("-o", "--output", type=Path, help="default: research/BENCHMARKS.md")
    parser.add_argument("--only", default="", help="run what matches this: TABLE/TASK/METHOD")
    parser.add_argument("--fresh", action="store_true", help="run again what has been run")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a run")
    args = parser.parse_args()
    args.command = str(Path(args.command).resolve())
    if not args.output:
        args.output = FOLDER / "quick.md" if args.quick else ROOT / "research" / "BENCHMARKS.md"
    return args


def once(job: dict, limit: float) -> dict:
    """Runs a job once in a separate process."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    line = [sys.executable, str(HERE / "methods.py"), json.dumps(job)]
    environment = os.environ | dict.fromkeys(names, str(job["threads"]))
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return {"status": f"over {limit:g} s"}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        return {"status": "failed"}
    return json.loads(output.splitlines()[-1])


def measure(job: dict, limit: float, times: int) -> dict:
    """Returns the minimum times with all cores and with one thread, or the reason for none."""
    runs = []
    for threads in sorted({CORES, 1}, reverse=True):
        for _ in range(times):
            run = once(job | {"threads": threads}, limit)
            if "status" in run:
                break
            runs.append(run)
            if run["wall"] > FAST:
                break
        if not runs:
            return run
    result = {x: min(run[x] for run in runs) for x in ("wall", "cpu", "learn") if x in runs[0]}
    return result | {x: max(run.get(x, 0) for run in runs) for x in ("peak", "kept")}


def main() -> None:
    args = arguments()
    enter(HERE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Cleans up, as Ctrl-C does.
    import methods
    import report
    import tables

    (FOLDER / "data").mkdir(exist_ok=True)
    store, half = FOLDER / "results.json", FOLDER / "results.part"
    results = json.loads(store.read_text()) if store.exists() else {}

    def wanted(key: str) -> bool:
        return bool(re.search(args.only, key)) and (args.fresh or key not in results)

    def keep(key: str, result) -> None:
        results[key] = result
        half.write_text(json.dumps(results, indent=1))
        half.rename(store)

    chosen = tables.QUICK if args.quick else tables.SYNTHETIC
    shown = [tables.synthetic(FOLDER / "data", *each) for each in chosen]
    for name, *rest in [] if args.quick else tables.REAL:
        if args.data and (args.data / f"{name}.parquet").exists():
            shown.append(tables.real(args.data, name, *rest))
        else:
            print(f"{name}.parquet is missing: skipped", file=sys.stderr)
    jobs = [(t, task, m) for t in shown for task in t.tasks for m in methods.of(task, t.k)]
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        model = Path(folder) / "model.json"
        for table, task, method in jobs:
            key = f"{table.name}/{task}/{method}"
            if not wanted(key) or methods.left_out(method, table.rows, table.k, args.quick):
                continue
            tables.make(table, args.command)
            print(key, end=": ", file=sys.stderr, flush=True)
            path = table.path if task != "pass" else table.path.with_suffix(".npy")
            job = {"method": method, "task": task, "path": str(path), "k": table.k}
            job |= {"exclude": table.exclude, "scaled": table.scaled}
            job |= {"command": args.command, "model": str(model)}
            result = measure(job, args.limit, 1 if args.quick else 3)
            if "wall" in result and task != "pass":
                result["risk"] = tables.risk(table, json.loads(model.read_text()))
            print(json.dumps(result), file=sys.stderr)
            if result.get("status") != "failed":
                keep(key, result)
    for name in ("floor", "growth"):
        program = Path(args.command).parent / name
        if program.exists() and wanted(name) and not args.quick:
            print(name, file=sys.stderr)
            done = subprocess.run([program], stdout=subprocess.PIPE, text=True)
            if done.returncode == 0:
                keep(name, done.stdout)
    args.output.write_text(report.document(shown, results, args))
    print(args.output, file=sys.stderr)


if __name__ == "__main__":
    main()
