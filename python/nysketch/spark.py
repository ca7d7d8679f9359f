"""Plans, sketches and predictions on Spark, byte for byte those of one machine.

Every partition is read once, batch by batch, by the executor that holds it, and becomes one small
partial sketch; partial sketches are merged on the executors and then on the driver. Only plans,
sketches and samples of rows travel. See docs/SPARK.md.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nysketch import cluster
from nysketch._core import Model, Plan, Sketch, __version__, _check_plan_options, _Draft

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["plan", "predict", "ship", "sketch", "sketch_parquet"]

# Partial results that the driver takes itself, at most and in bytes; of more, executors merge
# groups of so many first.
_DRIVER_PARTS = 32
_DRIVER_BYTES = 1 << 26
_GROUP_PARTS = 16
# Bytes of files that one task reads about.
_TASK_BYTES = 1 << 27
# Positions are counted within a partition; no partition has more rows than this.
_PARTITION_BITS = 40


def plan(
    df: DataFrame,
    *,
    columns: list[str] | None = None,
    weights: str | None = None,
    weight_unit: float = 1.0,
    landmarks: int | None = None,
    sampling: str | None = None,
    leverage_lambda: float | None = None,
    landmarks_from: Any = None,
    features: str = "nystrom",
    frequencies: int | None = None,
    bandwidth: Any = None,
    scale: str | None = None,
    sample_rows: int | None = None,
    collect: Any = None,
    skip_invalid: bool = False,
    seed: int = 0,
    warn: bool = True,
) -> Plan:
    """Make a plan from the rows of a table.

    Executors take statistics and a sample of their rows; landmarks are chosen on the driver. D²
    landmarks, the default, need a second reading: executors draw rows far from the first half of
    them. The same rows in the same order in the same partitions, and the same seed, give the same
    plan; behind a shuffle the order may change.

    Parameters
    ----------
    df : DataFrame
        The rows. It is read twice, so cache what is dear to compute; what is not deterministic
        gives a plan of mixed rows.
    columns : list of str, optional
        Columns to measure; those that hold numbers by default.
    weights : str, optional
        The column of row weights, whole multiples of ``weight_unit``.
    weight_unit : float, default=1.0
        One row of this weight counts as one.
    landmarks, sampling, leverage_lambda, landmarks_from, features, frequencies, bandwidth, scale, \
sample_rows, collect, skip_invalid, seed, warn
        As for ``Plan.from_data``.

    Returns
    -------
    Plan
    """
    columns = _columns(df, columns, weights)
    options: dict[str, Any] = {
        "landmarks": landmarks,
        "sampling": sampling,
        "leverage_lambda": leverage_lambda,
        "landmarks_from": landmarks_from,
        "features": features,
        "frequencies": frequencies,
        "bandwidth": bandwidth,
        "scale": scale,
        "sample_rows": sample_rows,
        "collect": collect,
        "weight_unit": weight_unit,
        "skip_invalid": skip_invalid,
        "seed": seed,
    }
    _check_plan_options(weights, options)
    chosen, names = _select(df, [*columns, *([weights] if weights else [])])
    ready = _readying()
    # A part holds a sample, each row with its weight, priority and position.
    size = 8 * max(sample_rows or 20_000, 4 * (landmarks or 0)) * (len(columns) + 3)

    def survey(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import spark

        yield from spark._part_of_partition(
            spark._named(batches, names),
            lambda rows, core, at: core._survey_part(rows, columns, weights, options, at),
        )

    found = _merged(chosen, survey, "_merge_survey_parts", size)
    if found is None:
        raise ValueError("the table has no rows")
    draft = _Draft(columns, found, weights, options)
    far = None
    if draft.wants_far_rows is not None:
        near, count = draft.wants_far_rows
        first = near.to_bytes()

        def draw(batches: Iterator[Any]) -> Iterator[Any]:
            ready()
            from nysketch import spark

            half = spark.Plan.from_bytes(first)
            yield from spark._part_of_partition(
                spark._named(batches, names),
                lambda rows, core, at: core._far_part(rows, half, count, weights, at),
            )

        far = _merged(chosen, draw, "_merge_far_parts", size)
    return draft.finish(far, warn)


def sketch(
    df: DataFrame,
    plan: Plan,
    *,
    by: str | None = None,
    weights: str | None = None,
    skip_invalid: bool = False,
    max_groups: int = 1000,
) -> Sketch | dict[str, Sketch]:
    """Sketch the rows of a table.

    Parameters
    ----------
    df : DataFrame
        The rows, read once. Columns are found by name; others are not read.
    plan : Plan
        What to measure. It is sent to every task.
    by : str, optional
        A column whose values, as text, group the rows: one sketch for each.
    weights : str, optional
        The column of row weights, for a plan that was made with weights.
    skip_invalid : bool, default=False
        Leave rows with null, NaN or infinity out and count them, instead of raising.
    max_groups : int, default=1000
        More different values of ``by`` are an error: each takes the memory of a sketch.

    Returns
    -------
    Sketch, or dict of str to Sketch
        The bytes of ``Plan.sketch`` on one machine, however the rows are partitioned.
    """
    _columns(df, plan.columns, weights)
    if (plan.weight_unit is None) != (weights is None):
        raise ValueError("weights go with a plan that was made with weights, and only with such")
    if by is not None:
        _check_column(df, by)
    chosen, names = _select(df, [*plan.columns, *(c for c in (weights, by) if c is not None)])
    ready = _readying()
    data = plan.to_bytes()
    if by is not None:
        return _sketch_groups(chosen, names, plan, by, weights, skip_invalid, max_groups)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import cluster, spark

        rows = spark._named(batches, names)
        part = cluster.partial(rows, data, weights=weights, skip_invalid=skip_invalid)
        yield spark._row_of_bytes(part)

    whole = _merged(chosen, task, "merge", len(plan.empty().to_bytes()))
    return plan.empty() if whole is None else Sketch.from_bytes(whole)


def sketch_parquet(
    spark: SparkSession,
    path: str | os.PathLike[str] | list[str],
    plan: Plan,
    *,
    weights: str | None = None,
    skip_invalid: bool = False,
) -> Sketch:
    """Sketch Parquet files that the executors can open themselves.

    The executors' Python workers read the files, row group by row group, without a way through
    Spark's own reader, whose cost of handing rows over is larger than that of sketching them. For
    what is more than files (queries, Delta, Iceberg or Hudi tables, columns from folder names) use
    :func:`sketch`.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the tasks.
    path : str, os.PathLike or list of str
        A folder or files, at the same place on every machine or of a file system that pyarrow
        knows (``s3://…``).
    plan : Plan
        What to measure.
    weights : str, optional
        The column of row weights, for a plan that was made with weights.
    skip_invalid : bool, default=False
        Leave rows with null, NaN or infinity out and count them, instead of raising.

    Returns
    -------
    Sketch
        The bytes of ``Plan.sketch`` on one machine.
    """
    import pyarrow.dataset as ds

    columns = [*plan.columns, *([weights] if weights else [])]
    filesystem, paths = _located(path)
    pieces, size = [], 0
    for fragment in ds.dataset(paths, format="parquet", filesystem=filesystem).get_fragments():
        if missing := [c for c in columns if c not in fragment.physical_schema.names]:
            raise ValueError(f"{fragment.path} lacks the column '{missing[0]}'")
        pieces += [(fragment.path, group.id) for group in fragment.row_groups]
        size += sum(group.total_byte_size for group in fragment.row_groups)
    if not pieces:
        return plan.empty()
    data = plan.to_bytes()
    ready = _readying()
    # Two tasks a core, so that none waits long for the slowest, and none too large.
    tasks = min(len(pieces), max(2 * _cores(spark), size // _TASK_BYTES))

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import cluster, spark

        mine = [pieces[i::tasks] for batch in batches for i in batch.column(0).to_pylist()]
        rows = spark._batches_of_pieces(sum(mine, []), filesystem, columns)
        yield spark._row_of_bytes(
            cluster.partial(rows, data, weights=weights, skip_invalid=skip_invalid)
        )

    numbers = spark.range(0, tasks, 1, tasks)
    whole = _merged(numbers, task, "merge", len(plan.empty().to_bytes()))
    return plan.empty() if whole is None else Sketch.from_bytes(whole)


def _located(path: Any) -> tuple[Any, Any]:
    """The file system, and the folder or the files in it."""
    from pyarrow.fs import FileSystem, LocalFileSystem

    def locate(one: Any) -> tuple[Any, str]:
        one = os.fspath(one)
        if "://" in one or one.startswith("file:"):
            return FileSystem.from_uri(one)
        return LocalFileSystem(), os.path.abspath(one)

    if not isinstance(path, (str, os.PathLike)):
        located = [locate(one) for one in path]
        if not located:
            raise ValueError("path names no file")
        return located[0][0], [place for _, place in located]
    filesystem, place = locate(path)
    marks = [f"{place}/{name}" for name in ("_delta_log", ".hoodie", "metadata")]
    if any(info.type.name == "Directory" for info in filesystem.get_file_info(marks)):
        raise ValueError(
            f"{place} looks like a table of Delta, Hudi or Iceberg, whose folder also holds files "
            "of earlier versions; read it with Spark and use nysketch.spark.sketch"
        )
    return filesystem, place


def _batches_of_pieces(
    pieces: list[tuple[str, int]], filesystem: Any, columns: list[str]
) -> Iterator[Any]:
    """The rows of some row groups."""
    import pyarrow.parquet as pq

    groups: dict[str, list[int]] = {}
    for path, group in pieces:
        groups.setdefault(path, []).append(group)
    for path, numbers in groups.items():
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            yield from file.iter_batches(
                1 << 14, row_groups=sorted(numbers), columns=columns, use_threads=False
            )


def _cores(spark: SparkSession) -> int:
    # Spark Connect does not tell.
    with contextlib.suppress(Exception):
        return spark.sparkContext.defaultParallelism
    return 16


def predict(df: DataFrame, model: Model, *, skip_invalid: bool = False) -> DataFrame:
    """Add what a model says of every row.

    Parameters
    ----------
    df : DataFrame
        The rows.
    model : Model
        What was learned.
    skip_invalid : bool, default=False
        Rows with null, NaN or infinity get label -1 and null instead of an error.

    Returns
    -------
    DataFrame
        All columns of ``df`` and ``label``, ``distance`` and for mixtures ``log_density``, or
        ``pc1``, ``pc2``, …; ``predicted_label`` and so on where ``df`` has such a column.
    """
    from pyspark.sql.types import DoubleType, IntegerType, StructField, StructType

    _columns(df, model.columns, None)
    ready = _readying()
    data = model.to_bytes()
    names = {
        "pca": [f"pc{c + 1}" for c in range(model.k)],
        "gmm": ["label", "distance", "log_density"],
    }.get(model.task, ["label", "distance"])
    taken = {column.casefold() for column in df.columns}
    called = []
    for name in names:
        new = name
        while new.casefold() in taken:
            new = f"predicted_{new}"
        called.append(new)
    # By number: mapInArrow stumbles over dots and over names that differ in case only.
    safe = df.toDF(*(f"_{i}" for i in range(len(df.columns))))
    own = df.columns
    types = [IntegerType() if name == "label" else DoubleType() for name in names]
    new_fields = [StructField(c, t, True) for c, t in zip(names, types, strict=True)]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import numpy as np
        import pyarrow as pa

        from nysketch import spark

        model = spark.Model.from_bytes(data)
        places = [own.index(column) for column in model.columns]
        for batch in batches:
            rows = batch.select(places).rename_columns(model.columns)
            said = model._columns(rows, skip_invalid)
            arrays = [
                pa.array(x, mask=np.isnan(x) if x.dtype.kind == "f" else None)
                for x in (said[name] for name in names)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *arrays], names=[*batch.schema.names, *names]
            )

    said = safe.mapInArrow(task, StructType([*safe.schema.fields, *new_fields]))
    return said.toDF(*own, *called)


def ship(spark: SparkSession) -> None:
    """Send this package to the executors, for clusters where it is not installed.

    The package as it is installed here goes as an archive that every executor unpacks; it must have
    been built for the executors' operating system and processor. NumPy and pyarrow must be there.

    Parameters
    ----------
    spark : SparkSession
        The session whose executors get it.
    """
    from pyspark.errors import PySparkException

    # Executors fetch it from here whenever they start, so it stays as long as this process.
    temporary = tempfile.mkdtemp(prefix="nysketch-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    archive = Path(temporary) / _archive_name()
    with zipfile.ZipFile(archive, "w") as out:
        for file, name in _package_files():
            out.write(file, name)
    try:
        spark.addArtifacts(str(archive), archive=True)
    except PySparkException as error:
        # The name tells the content, so what is there already is the same.
        if "DUPLICATED_ARTIFACT" not in str(error):
            raise


def _package_files() -> list[tuple[Path, Path]]:
    """Files of this package, and where they stand in an archive."""
    import nysketch

    folder = Path(nysketch.__file__).parent
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and "__pycache__" not in f.parts)
    return [(f, Path("nysketch") / f.relative_to(folder)) for f in files]


@lru_cache
def _archive_name() -> str:
    content = hashlib.sha256()
    for file, name in _package_files():
        content.update(str(name).encode() + file.read_bytes())
    return f"nysketch-{content.hexdigest()[:16]}.zip"


def _readying() -> Callable[[], None]:
    """A function that a task calls first: it makes a package that was shipped importable.

    Tasks are nested functions without globals of this package, so that they can be unpickled where
    it is not installed.
    """
    archive, version = _archive_name(), __version__

    def ready() -> None:
        import importlib
        import os
        import sys

        from pyspark import SparkFiles

        folder = SparkFiles.get(archive)
        if os.path.isdir(folder) and folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            there = importlib.import_module("nysketch").__version__
        except ImportError:
            there = "not installed"
        if there != version:
            raise ImportError(
                f"the driver has nysketch {version}, this executor: {there}; install it there, or "
                "call nysketch.spark.ship(spark) first"
            )

    return ready


def _named(batches: Iterator[Any], names: list[str]) -> Iterator[Any]:
    """Batches with the names that their columns had before the way to Python."""
    for batch in batches:
        yield batch.rename_columns(names)


def _row_of_bytes(part: bytes) -> Any:
    """A batch of one row that holds a partial result."""
    import pyarrow as pa

    return pa.record_batch({"part": pa.array([part], pa.binary())})


def _part_of_partition(batches: Iterator[Any], work: Callable[[Any, Any, int], bytes]) -> Any:
    """What ``work`` makes of the rows of this partition, which know their positions."""
    from pyspark import TaskContext

    from nysketch import _core

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    for first in batches:
        rows = cluster.stream(_chain(first, batches), first.schema)
        yield _row_of_bytes(work(rows, _core, number << _PARTITION_BITS))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _merged(
    df: DataFrame,
    task: Callable[[Iterator[Any]], Iterator[Any]],
    merge_name: str,
    size: int,
) -> bytes | None:
    """The partial results of all partitions, of so many bytes each, merged as a tree; None where
    there are none."""
    most = max(2, min(_DRIVER_PARTS, _DRIVER_BYTES // max(size, 1)))
    group = _GROUP_PARTS
    ready = _readying()

    def together(a: bytes, b: bytes) -> bytes:
        ready()
        from nysketch import _core, cluster

        merge = getattr(cluster, merge_name, None) or getattr(_core, merge_name)
        return merge(bytes(a), bytes(b))

    parts = df.mapInArrow(task, "part binary")
    try:
        # The same plan of execution for counting and for running: what is before it runs once.
        rows = parts.rdd
    except Exception:
        return _merged_by_frame(parts, together)
    with _told():
        count = rows.getNumPartitions()
        merged = rows.map(lambda row: bytes(row[0])) if count > most else None
        while merged is not None and count > most:
            groups = max(1, -(-count // group))
            merged = _grouped(merged, groups).reduceByKey(together, groups).values()
            count = groups
        found = rows.collect() if merged is None else merged.collect()
    return _reduced((bytes(part if merged else part[0]) for part in found), together)


def _grouped(rdd: Any, groups: int) -> Any:
    # By number of the partition, which a task that is repeated keeps.
    return rdd.mapPartitionsWithIndex(lambda i, parts: ((i % groups, part) for part in parts))


def _merged_by_frame(parts: DataFrame, together: Callable[[bytes, bytes], bytes]) -> bytes | None:
    """Spark Connect has no RDDs: one level of merging, on the driver."""
    with _told():
        return _reduced((bytes(row[0]) for row in parts.toLocalIterator()), together)


def _reduced(parts: Iterable[bytes], merge: Callable[[bytes, bytes], bytes]) -> bytes | None:
    parts = iter(parts)
    first = next(parts, None)
    return None if first is None else reduce(merge, parts, first)


def _sketch_groups(
    df: DataFrame,
    names: list[str],
    plan: Plan,
    by: str,
    weights: str | None,
    skip_invalid: bool,
    max_groups: int,
) -> dict[str, Sketch]:
    data = plan.to_bytes()
    ready = _readying()

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import pyarrow as pa

        from nysketch import cluster, spark

        plan = spark.Plan.from_bytes(data)
        batches = spark._named(batches, names)
        for first in batches:
            rows = cluster.stream(spark._chain(first, batches), first.schema)
            groups = plan.sketch_groups(
                rows,
                by,
                weights=weights,
                skip_invalid=skip_invalid,
                max_groups=max_groups,
                threads=1,
            )
            for name, sketch in groups.items():
                yield pa.record_batch({"name": [name], "part": [sketch.to_bytes()]})

    def merge_group(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import pyarrow as pa

        from nysketch import spark

        groups: dict[str, Any] = {}
        for batch in batches:
            for name, part in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                part = spark.Sketch.from_bytes(part)
                groups[name] = groups[name] + part if name in groups else part
        for name, sketch in groups.items():
            yield pa.record_batch({"name": [name], "part": [sketch.to_bytes()]})

    schema = "name string, part binary"
    parts = df.mapInArrow(task, schema).repartition("name").mapInArrow(merge_group, schema)
    with _told():
        rows = parts.limit(max_groups + 1).collect()
    groups = {row[0]: Sketch.from_bytes(bytes(row[1])) for row in rows}
    if len(groups) > max_groups:
        raise ValueError(
            f"column '{by}' has more than {max_groups} different values; group by a coarser "
            "column, or raise max_groups"
        )
    return groups


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """An error of a task as it was raised there."""
    from pyspark.errors import PySparkException

    try:
        yield
    except Exception as error:
        kinds = {"ValueError": ValueError, "TypeError": TypeError, "ImportError": ImportError}
        java = type(error).__name__ == "Py4JJavaError"
        if not (java or isinstance(error, PySparkException)):
            raise
        for line in reversed(str(error).splitlines()):
            kind, colon, message = line.strip().partition(": ")
            if colon and kind in kinds:
                raise kinds[kind](message) from error
        raise


def _columns(df: DataFrame, columns: list[str] | None, weights: str | None) -> list[str]:
    """The columns to measure, which hold numbers, as the weights do."""
    from pyspark.sql.types import BooleanType, NumericType

    fields = df.schema.fields
    numbers = [f.name for f in fields if isinstance(f.dataType, (NumericType, BooleanType))]
    if columns is None:
        columns = [name for name in numbers if name != weights]
        if not columns:
            raise ValueError(f"the table has no column of numbers; it has {', '.join(df.columns)}")
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be a list of different names, got {columns!r}")
    for name in [*columns, *([weights] if weights else [])]:
        _check_column(df, name)
        if name not in numbers:
            raise ValueError(f"column '{name}' holds {dict(df.dtypes)[name]}, not numbers")
    return list(columns)


def _check_column(df: DataFrame, name: str) -> None:
    if df.columns.count(name) != 1:
        how = "lacks the column" if name not in df.columns else "has several columns"
        raise ValueError(f"the table {how} '{name}'; it has {', '.join(df.columns)}")


def _select(df: DataFrame, columns: list[str]) -> tuple[DataFrame, list[str]]:
    """Some columns, each once, and their names.

    In the result they go by number: mapInArrow stumbles over dots, and over names that differ in
    case only.
    """
    columns = list(dict.fromkeys(columns))
    places = [df.columns.index(name) for name in columns]
    numbered = df.toDF(*(f"_{i}" for i in range(len(df.columns))))
    return numbered.select(*(f"_{i}" for i in places)), columns
