"""Spark on a cluster of several processes gives the bytes of one machine, despite failures."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nysketch import Plan

if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not there", allow_module_level=True)
pytest.importorskip("pyspark")

from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import nysketch.spark as on_spark  # noqa: E402
from nysketch import _spark  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_LOCAL_HOSTNAME": "localhost",
}
CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    # One partition per file.
    "spark.sql.files.openCostInBytes": str(1 << 27),
    "spark.task.maxFailures": "10",
}
ROWS, FILES = 200_000, 12


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    os.environ.update(ENVIRONMENT)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    session = builder.config("spark.local.dir", tmp_path_factory.mktemp("spark")).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(3)
    centres = rng.normal(scale=6, size=(5, 4))
    X = centres[rng.integers(5, size=ROWS)] + rng.normal(size=(ROWS, 4))
    columns = {f"c{j}": X[:, j] for j in range(4)}
    days = np.array(["mon", "tue", "wed"])[np.arange(ROWS) % 3]
    return pa.table({**columns, "n": np.arange(ROWS) % 3, "day": days})


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    for i in range(FILES):
        pq.write_table(table.take(np.arange(i, ROWS, FILES)), folder / f"{i}.parquet")
    return folder


@pytest.fixture(scope="module")
def df(spark, folder):
    return spark.read.parquet(str(folder))


@pytest.fixture(scope="module")
def plan(df):
    return on_spark.plan(df, columns=["c0", "c1", "c2", "c3"], landmarks=60)


def test_a_sketch_has_the_bytes_of_one_machine(df, table, plan, folder, command, tmp_path):
    assert df.rdd.getNumPartitions() == FILES
    sketch = on_spark.sketch(df, plan)
    assert sketch == plan.sketch(table)
    plan.save(tmp_path / "p.nys")
    command("sketch", folder, "--plan", tmp_path / "p.nys", "-o", tmp_path / "s.nys")
    assert sketch.to_bytes(embed_witnesses=False) == (tmp_path / "s.nys").read_bytes()
    assert sketch.to_bytes() == plan.sketch(table).to_bytes(), "with retained rows"


def test_files_read_by_the_workers_give_the_same_bytes(spark, folder, table, plan):
    sketch = on_spark.sketch_parquet(spark, str(folder), plan)
    assert sketch == plan.sketch(table)
    files = [str(folder / f"{i}.parquet") for i in range(3)]
    part = on_spark.sketch_parquet(spark, files, plan)
    assert part == plan.sketch(pa.concat_tables([pq.read_table(f) for f in files]))
    local = on_spark.sketch_parquet(spark, folder.as_uri(), plan)
    assert local == sketch, "a path with a scheme"
    other = Plan.from_data(pa.table({"z": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="does not have the column 'z'"):
        on_spark.sketch_parquet(spark, str(folder), other)


def test_partitions_do_not_show(df, table, plan, monkeypatch):
    whole = plan.sketch(table)
    few = df.filter("c0 > 1e9").union(df.limit(50)).repartition(9)
    assert on_spark.sketch(few, plan).rows == 50, "most partitions are empty"
    nothing = df.filter("c0 > 1e9")
    assert on_spark.sketch(nothing, plan) == plan.empty()
    with pytest.raises(ValueError, match="no rows"):
        on_spark.plan(nothing)
    shuffled = df.repartition(5, "n")
    assert on_spark.sketch(shuffled, plan) == whole
    # Executors merge first, in two levels.
    monkeypatch.setattr(_spark, "DRIVER_PARTS", 2)
    monkeypatch.setattr(_spark, "GROUP_PARTS", 3)
    assert on_spark.sketch(df, plan) == whole
    again = on_spark.plan(df, columns=plan.columns, landmarks=60)
    assert again == plan, "plans too"


def test_a_plan_is_one_of_all_rows(df, table, plan):
    columns = ["c0", "c1", "c2", "c3"]
    again = on_spark.plan(df, columns=columns, landmarks=60)
    assert again == plan, "the same partitions and seed"
    assert on_spark.plan(df, columns=columns, landmarks=60, seed=1) != plan
    X = np.column_stack([table[c] for c in columns])
    landmarks, witnesses = plan.landmarks, plan.witnesses
    assert len(landmarks) == 60 and len(witnesses) == min(20_000, len(X))
    # Every landmark and every retained row is a row of the data, in single precision.
    for x in [*landmarks[::7], *witnesses[::701]]:
        assert np.abs(X - x).max(axis=1).min() < 1e-5
    local = Plan.from_data(table.select(columns), landmarks=60)
    ours, theirs = plan.sketch(X), local.sketch(X)
    assert np.allclose(plan.centre, local.centre), "statistics of all rows"
    assert ours.fit_kmeans(5).evaluate(X)["mse"] < 1.01 * theirs.fit_kmeans(5).evaluate(X)["mse"]
    everything = on_spark.plan(df, warn=False, sample_rows=500, scale="standard")
    assert everything.columns == [*columns, "n"]
    assert list(everything.categories) == ["day"], "text is a category"
    assert np.allclose(everything.scale[:4], X.std(axis=0), rtol=1e-9)
    for options in (
        {"sampling": "uniform"},
        {"features": "fourier", "frequencies": 20},
        {"landmarks_from": X[:7]},
        {"sampling": "greedy", "landmarks": 20, "bandwidth": [3.0]},
    ):
        other = on_spark.plan(df, columns=columns, **options)
        assert on_spark.sketch(df, other).rows == ROWS


def test_tables_as_they_are(spark, command, tmp_path):
    rng = np.random.default_rng(1)
    rows = 3000
    colours = pa.array(np.array(["red", "green", "blue", None])[rng.integers(4, size=rows)])
    seconds = 1_700_000_000 + rng.integers(10_000_000, size=rows)
    table = pa.table(
        {
            "x": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "colour": colours,
            "flag": rng.random(rows) < 0.5,
            "when": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
            "emb": pa.array(list(rng.normal(size=(rows, 3))), pa.list_(pa.float64())),
            "id": [f"row {i}" for i in range(rows)],
        }
    )
    for i in range(3):
        pq.write_table(table[i * 1000 : (i + 1) * 1000], tmp_path / f"{i}.parquet")
    df = spark.read.parquet(str(tmp_path))
    with pytest.warns(UserWarning, match=r"when \(timestamp\).*dates"):
        plan = on_spark.plan(df, landmarks=30)
    assert plan.columns == ["x", "flag", "emb[0]", "emb[1]", "emb[2]"]
    assert list(plan.categories) == ["colour"] and plan.missing == "partial"
    options = {
        "landmarks": 30,
        "dates": {"when": ["hour", "month"]},
        "categorical": ["flag"],
        "weight_columns": {"colour": 2.0},
        "unit": "emb",
        "warn": False,
    }
    plan = on_spark.plan(df, **options)
    assert "when.month.cos" in plan.columns and list(plan.categories) == ["colour", "flag"]
    sketch = on_spark.sketch(df, plan)
    assert sketch == plan.sketch(table) == on_spark.sketch_parquet(spark, tmp_path, plan)
    plan.save(tmp_path / "p.nys")
    command("sketch", *(tmp_path / f"{i}.parquet" for i in range(3)), "--plan", tmp_path / "p.nys",
            "-o", tmp_path / "s.nys")  # fmt: skip
    assert sketch.to_bytes(embed_witnesses=False) == (tmp_path / "s.nys").read_bytes()
    model = sketch.fit_kmeans(3)
    said = on_spark.predict(df, model).toPandas().set_index("id")["label"]
    assert np.array_equal(said[table["id"].to_pylist()], model.predict(table))
    for options, message in [
        ({"dates": "x"}, "'x' holds double, not dates"),
        ({"columns": ["x", "when"]}, "not numbers; read it with dates='when'"),
        ({"categorical": "x", "numeric": "x"}, "two roles"),
        ({"log": "colour"}, "log must be columns of numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            on_spark.plan(df, **options)


def test_weights_and_groups(df, table):
    columns = ["c0", "c1", "c2", "c3"]
    weighted = on_spark.plan(df, columns=columns, weights="n", landmarks=40)
    sketch = on_spark.sketch(df, weighted, weights="n")
    assert sketch == weighted.sketch(table, weights="n")
    plan = Plan.from_data(table.select(columns), landmarks=40)
    groups = on_spark.sketch(df, plan, by="day")
    assert groups == plan.sketch_groups(table, "day")
    assert sorted(groups) == ["mon", "tue", "wed"]
    with pytest.raises(ValueError, match="more than 2 different values"):
        on_spark.sketch(df, plan, by="day", max_groups=2)
    with pytest.raises(ValueError, match="weights go with a plan"):
        on_spark.sketch(df, weighted)


def test_a_killed_executor_costs_time_and_nothing_else(spark, df, table, plan):
    whole = plan.sketch(table)
    slow = df.mapInArrow(slowly, df.schema)
    status, results = spark.sparkContext.statusTracker(), []
    executors = executors_of_this_process()
    assert len(executors) == 2
    worker = threading.Thread(target=lambda: results.append(on_spark.sketch(slow, plan)))
    worker.start()
    done = 0
    while done < 4 and worker.is_alive():
        time.sleep(0.05)
        stages = [status.getStageInfo(s) for s in status.getActiveStageIds()]
        done = sum(s.numCompletedTasks for s in stages if s is not None and s.numTasks == FILES)
    assert worker.is_alive(), "killed before the end"
    os.kill(executors[0], signal.SIGKILL)
    worker.join(timeout=120)
    assert results == [whole]
    assert executors[0] not in executors_of_this_process()


def slowly(batches):
    time.sleep(0.5)
    yield from batches


# Pickled by value, because executors cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def executors_of_this_process() -> list[int]:
    """Return the executors among the descendants of this process; no other Spark is affected."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes()
                parents[int(entry.name)] = (
                    int(stat[1]),
                    b"CoarseGrainedExecutorBackend" in command,
                )
    family = {os.getpid()}
    while more := {p for p, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    # The script that starts an executor becomes it or waits for it, so the last process is Java.
    found = [p for p in family if p in parents and parents[p][1]]
    return [p for p in found if not any(parents[q][0] == p for q in found)]


def test_names_of_any_kind(df, table, plan):
    odd = {"c0": "a.b", "c1": "A.B", "c2": "c`d", "c3": "e f"}
    renamed = df.withColumnsRenamed(odd).withColumnRenamed("day", "the.Label")
    there = on_spark.plan(renamed, columns=list(odd.values()), landmarks=60)
    assert np.array_equal(there.landmarks, plan.landmarks)
    sketch = on_spark.sketch(renamed, there)
    assert np.array_equal(sketch.kernel_means, plan.sketch(table).kernel_means)
    model = sketch.fit_kmeans(2)
    labelled = renamed.withColumnRenamed("the.Label", "Label")
    with pytest.raises(ValueError, match="a column 'label' already; pass prefix='predicted_'"):
        on_spark.predict(labelled, model)
    said = on_spark.predict(labelled, model, prefix="predicted_")
    assert said.columns == [*odd.values(), "n", "Label", "predicted_label", "predicted_distance"]
    assert said.select("predicted_label").distinct().count() == 2


def test_files_of_different_types(spark, tmp_path, monkeypatch):
    parts = [
        pa.table({"a": [1.0, 2.5], "b": [3.0, 4.0]}),
        pa.table({"b": pa.array([5, 6], pa.int64()), "a": pa.array([7, 8], pa.int64())}),
        pa.table({"a": pa.array([9.5], pa.float32()), "b": pa.array([10.0], pa.float32())}),
    ]
    for i, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{i}.parquet")
    plan = Plan.from_data(parts[0], landmarks=2)
    whole = sum(plan.sketch(part) for part in parts)
    monkeypatch.chdir(tmp_path.parent)
    for path in (tmp_path, tmp_path.name, tmp_path.as_uri()):
        assert on_spark.sketch_parquet(spark, path, plan) == whole
    uris = [(tmp_path / f"{i}.parquet").as_uri() for i in range(3)]
    assert on_spark.sketch_parquet(spark, uris, plan) == whole
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(ValueError, match="looks like a table of Delta"):
        on_spark.sketch_parquet(spark, tmp_path, plan)


def test_bad_tables_are_told(spark, df, plan):
    for bad, message in [
        (df.drop("c2"), "does not have the column 'c2'; it has c0, c1, c3, n, day"),
        (df.withColumn("c1", df.day), "column 'c1' holds text, not numbers"),
        (df.select("*", df.c0.alias("c3")), "several columns 'c3'"),
    ]:
        with pytest.raises(ValueError, match=message):
            on_spark.sketch(bad, plan)
    with pytest.raises(ValueError, match="no column of numbers"):
        on_spark.plan(df.select("day"))
    with pytest.raises(ValueError, match="does not have the column 'hour'"):
        on_spark.sketch(df, plan, by="hour")
    for options, error, message in [
        ({"landmarks": 0}, ValueError, "landmarks must be at least 1"),
        ({"landmarks": "many"}, TypeError, "landmarks"),
        ({"columns": []}, ValueError, "list of different names"),
        ({"columns": "c0"}, ValueError, "list of different names"),
        ({"columns": ["c0", "c0"]}, ValueError, "list of different names"),
        ({"weights": "day"}, ValueError, "'day' holds string, not numbers"),
    ]:
        with pytest.raises(error, match=message):
            on_spark.plan(df, **options)
    assert on_spark.plan(df, columns=["c0", "n"], weights="n", landmarks=9).columns == ["c0", "n"]


def test_nulls_are_told_or_counted(df, plan):
    holes = df.withColumn("c1", df.c1 + 0 * df.c1).selectExpr(
        "c0", "IF(c0 > 8, NULL, c1) AS c1", "c2", "IF(c0 < -8, DOUBLE('NaN'), c3) AS c3"
    )
    with pytest.raises(ValueError, match=r"X: row \d+, column 'c[13]': the value is missing"):
        on_spark.sketch(holes, plan)
    sketch = on_spark.sketch(holes, plan, skip_invalid=True)
    assert sketch.rows + sketch.skipped == ROWS and sketch.skipped > 0
    with pytest.raises(ValueError, match="the value is missing"):
        on_spark.plan(holes, missing="error")
    partial = on_spark.plan(holes, landmarks=20)
    assert partial.missing == "partial"
    assert on_spark.sketch(holes, partial).rows == ROWS
    assert on_spark.plan(holes, skip_invalid=True, landmarks=20).columns[1] == "c1"


def test_predictions_are_those_of_one_machine(df, table, plan):
    sketch = plan.sketch(table)
    for model in (sketch.fit_kmeans(4), sketch.fit_gmm(3), sketch.fit_pca(2)):
        said = on_spark.predict(df, model)
        assert said.columns[: len(df.columns)] == df.columns
        got = said.toArrow().sort_by([("c0", "ascending")])
        rows = got.select(["c0", "c1", "c2", "c3"])
        for name, expected in model._columns(rows).items():
            assert np.array_equal(got[name], expected), name
    kmeans = sketch.fit_kmeans(4)
    twice = on_spark.predict(on_spark.predict(df, kmeans), kmeans, prefix="again_")
    assert twice.columns[-4:] == ["label", "distance", "again_label", "again_distance"]
    holes = df.selectExpr("IF(c0 > 8, NULL, c0) AS c0", "c1", "c2", "c3")
    marked = on_spark.predict(holes, kmeans, skip_invalid=True).filter("c0 IS NULL")
    assert {tuple(r) for r in marked.select("label", "distance").collect()} == {(-1, None)}


def test_outliers_are_flagged(df, table, plan):
    sketch = plan.sketch(table)
    mixture = sketch.fit_gmm(3)
    said = on_spark.predict(df, mixture, flag=0.05)
    assert said.columns[-1] == "outlier"
    got = said.toArrow()
    flagged = got["log_density"].to_numpy() < mixture.threshold(0.05)
    assert 0 < flagged.sum() < 0.2 * len(flagged)
    assert np.array_equal(got["outlier"].to_numpy(), flagged)
    holes = df.selectExpr("IF(c0 > 8, NULL, c0) AS c0", "c1", "c2", "c3")
    marked = on_spark.predict(holes, mixture, skip_invalid=True, flag=0.05).filter("c0 IS NULL")
    assert {tuple(r) for r in marked.select("label", "outlier").collect()} == {(-1, None)}
    with pytest.raises(ValueError, match="flag must be used with a mixture"):
        on_spark.predict(df, sketch.fit_kmeans(2), flag=0.05)
    with pytest.raises(ValueError, match="flag must be a share of the rows between"):
        on_spark.predict(df, mixture, flag=0.99)


def test_the_package_is_shipped_where_it_is_not_installed(folder, plan, table, tmp_path):
    """The workers' Python has all packages of this one except nysketch."""
    packages = Path(np.__file__).parents[1]
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    others = tmp_path / "others"
    others.mkdir()
    for entry in packages.iterdir():
        if not entry.name.startswith("nysketch"):
            (others / entry.name).symlink_to(entry)
    site = next((bare / "lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(f"{others}\n")
    plan.save(tmp_path / "p.nys")
    script = f"""
        import nysketch, nysketch.spark as on_spark
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local-cluster[1,1,1024]")
        for key, value in {CONFIGURATION!r}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        df = spark.read.parquet({str(folder)!r}).limit(1000)
        plan = nysketch.Plan.load({str(tmp_path / "p.nys")!r})
        try:
            on_spark.sketch(df, plan)
        except Exception as error:
            assert "nysketch.spark.ship(spark)" in str(error), error
            on_spark.ship(spark)
            on_spark.ship(spark)
            sketch = on_spark.sketch(df, plan)
            on_spark.plan(df, columns=plan.columns, landmarks=10, sample_rows=50)
            groups = on_spark.sketch(df, plan, by="day")
            assert sum(groups.values()) == sketch
            assert on_spark.predict(df, sketch.fit_kmeans(2)).count() == 1000
            assert on_spark.sketch_parquet(spark, {str(folder)!r}, plan).rows == 200_000
            print(sketch.rows)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT, "PYSPARK_PYTHON": str(bare / "bin/python")},
    )
    assert re.search(r"^1000$", done.stdout, re.MULTILINE), done.stderr[-3000:]
