"""Sketching on Spark compared with the command line and Spark's KMeans and GaussianMixture.

    python bench/spark.py [--rows 2000000] [--files 8] [--command target/release/nysketch]

Requires the package, pyspark and Java, and the command built for release. Prints a Markdown table:
CPU seconds of all processes on a running session, bytes sent, and risk.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")

import numpy as np  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import nysketch.spark as on_spark  # noqa: E402

K, DIMS = 10, 20
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and its descendants, including reaped ones."""
    parents, times = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(int(x) for x in fields[11:15]) / TICKS
    mine = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(times.get(p, 0) for p in mine)


def shuffled(spark: SparkSession) -> int:
    """Returns the number of bytes written to shuffles so far."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def measured(spark: SparkSession, work):
    """Returns the result of work, its wall and CPU seconds, and the bytes shuffled."""
    wall, cpu, moved = time.perf_counter(), cpu_seconds(), shuffled(spark)
    result = work()
    return result, time.perf_counter() - wall, cpu_seconds() - cpu, shuffled(spark) - moved


def by_command(command: str, folder: Path, out: Path) -> float:
    """Returns the CPU seconds of the command line with a plan, best of three."""
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = [command, "sketch", folder, "--plan", out / "p.nys", "-o", out / "s.nys", "-q"]
        subprocess.run([str(x) for x in line], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--command", default="target/release/nysketch")
    parser.add_argument("--no-mllib", action="store_true", help="leave Spark's own methods out")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        out, folder = Path(name), Path(name) / "table"
        folder.mkdir()
        for i in range(args.files):
            generate = ["generate", "gmm", "--rows", args.rows // args.files, "--dims", DIMS]
            # The mixture and the rows depend on the seed: every file is another piece of one table.
            more = ["--clusters", K, "--seed", 0, "-o", folder / f"{i}.parquet", "-q"]
            line = [args.command, *map(str, generate), *map(str, more)]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        spark = (
            SparkSession.builder.master("local-cluster[2,1,2048]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.local.dir", str(out / "local"))
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        report(args, spark, folder, out)
        spark.stop()


def handed_over(df) -> None:
    """Measures the cost of Spark itself: rows are sent to Python, which ignores them."""

    def task(batches):
        for batch in batches:
            yield batch.slice(0, 0)

    df.mapInArrow(task, df.schema).collect()


def report(args, spark: SparkSession, folder: Path, out: Path) -> None:
    df = spark.read.parquet(str(folder))
    columns = [c for c in df.columns if c.startswith("c")]
    df = df.select(*columns)
    plan = on_spark.plan(df, landmarks=200)
    plan.save(out / "p.nys")
    command = by_command(args.command, folder, out)
    on_spark.sketch(df, plan)  # Workers start, code is compiled.
    runs = [measured(spark, lambda: on_spark.sketch(df, plan)) for _ in range(3)]
    nothing = [measured(spark, lambda: handed_over(df)) for _ in range(3)]
    sketch, wall, cpu, moved = min(runs, key=lambda r: r[2])
    ours = sketch.to_bytes(embed_witnesses=False)
    assert ours == (out / "s.nys").read_bytes(), "the bytes of one machine"
    partitions, size = df.rdd.getNumPartitions(), len(ours)
    print(f"{sketch.rows:,} rows × {len(columns)} columns in {partitions} partitions\n")
    print("| | CPU s | over the command | wall s | sent | risk |")
    print("|---|---|---|---|---|---|")
    print(f"| command, 200 landmarks | {command:.2f} | 1.0 | | | |")
    _, wait, floor, _ = min(nothing, key=lambda r: r[2])
    print(
        f"| Spark hands the rows to Python | {floor:.2f} | {floor / command:.1f} | {wait:.1f} | | |"
    )
    best = sketch.fit_kmeans(K)
    X = np.column_stack(df.limit(200_000).toArrow().columns)
    print(
        f"| nysketch.spark.sketch | {cpu:.2f} | {cpu / command:.1f} | {wall:.1f} | "
        f"{size:,} bytes per partition, {moved:,} shuffled | mse {best.evaluate(X)['mse']:.4f} |"
    )
    by_files = [
        measured(spark, lambda: on_spark.sketch_parquet(spark, str(folder), plan)) for _ in range(8)
    ]
    same, wall, cpu, moved = min(by_files, key=lambda r: r[2])
    assert same == sketch
    print(
        f"| nysketch.spark.sketch_parquet | {cpu:.2f} | {cpu / command:.1f} | {wall:.1f} | "
        f"{size:,} bytes per task, {moved:,} shuffled | the same |"
    )
    gmm = sketch.fit_gmm(K)
    print(f"| … and fit_gmm on the driver | | | | | nll {gmm.evaluate(X)['nll']:.4f} |")
    if args.no_mllib:
        return
    from pyspark.ml.clustering import GaussianMixture, KMeans
    from pyspark.ml.feature import VectorAssembler

    vectors = VectorAssembler(inputCols=columns, outputCol="features").transform(df)
    for name, method in [
        ("MLlib KMeans", KMeans(k=K, seed=0)),
        ("MLlib GaussianMixture", GaussianMixture(k=K, seed=0)),
    ]:
        model, wall, cpu, moved = measured(spark, lambda method=method: method.fit(vectors))
        if name == "MLlib KMeans":
            centres = np.array(model.clusterCenters())
            squares = ((X[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1)
            risk = f"mse {squares.mean():.4f}"
        else:
            risk = f"nll {-model.summary.logLikelihood / sketch.rows:.4f} (full covariances)"
        print(
            f"| {name} | {cpu:.1f} | {cpu / command:.0f} | {wall:.1f} | {moved:,} bytes shuffled | "
            f"{risk} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
