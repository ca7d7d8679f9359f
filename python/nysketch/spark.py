"""Plans, sketches and predictions on Spark, byte for byte those of one machine.

Every partition is read once, batch by batch, by the executor that holds it, and becomes one small
partial sketch; partial sketches are merged on the executors and then on the driver. Only plans,
sketches and samples of rows travel. See docs/SPARK.md.
"""

from __future__ import annotations

import atexit
import contextlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nysketch import cluster
from nysketch._core import (
    Model,
    Plan,
    Sketch,
    _Draft,
    _merge_far_parts,
    _merge_survey_parts,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["plan", "predict", "ship", "sketch", "sketch_parquet"]

# Partial results that the driver takes itself; of more, executors merge groups of so many first.
_DRIVER_PARTS = 32
_GROUP_PARTS = 16
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
    landmarks, the default, need a second job: executors draw rows far from the first half of them.
    The same partitions and seed give the same plan.

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
    options = {
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
    chosen = _select(df, [*columns, *([weights] if weights else [])])
    ready = _readying(df)

    def survey(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import spark

        yield from spark._part_of_partition(
            batches,
            lambda rows, core, at: core._survey_part(rows, columns, weights, options, at),
        )

    found = _merged(chosen, survey, _merge_survey_parts, "_merge_survey_parts")
    if found is None:
        raise ValueError("the table has no rows")
    draft = _Draft(columns, found, weights, options)
    far = None
    if draft.wants_far_rows is not None:
        first, count = draft.wants_far_rows
        first = first.to_bytes()

        def draw(batches: Iterator[Any]) -> Iterator[Any]:
            ready()
            from nysketch import spark

            near = spark.Plan.from_bytes(first)
            yield from spark._part_of_partition(
                batches, lambda rows, core, at: core._far_part(rows, near, count, weights, at)
            )

        far = _merged(chosen, draw, _merge_far_parts, "_merge_far_parts")
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
    _check_given(df, plan.columns)
    besides = [name for name in (weights, by) if name is not None]
    for name in besides:
        _check_column(df, name)
    chosen = _select(df, list(dict.fromkeys([*plan.columns, *besides])))
    ready = _readying(df)
    data = plan.to_bytes()
    if by is not None:
        return _sketch_groups(chosen, ready, plan, by, weights, skip_invalid, max_groups)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import cluster, spark

        part = cluster.partial(batches, data, weights=weights, skip_invalid=skip_invalid)
        yield spark._row_of_bytes(part)

    whole = _merged(chosen, task, cluster.merge, "merge")
    return plan.empty() if whole is None else Sketch.from_bytes(whole)


def sketch_parquet(
    spark: SparkSession,
    path: str | list[str],
    plan: Plan,
    *,
    weights: str | None = None,
    skip_invalid: bool = False,
) -> Sketch:
    """Sketch Parquet files that the executors can open themselves.

    The executors' Python workers read the files, row group by row group, without a way through
    Spark's own reader, whose cost of handing rows over is larger than that of sketching them. For
    what is more than files (queries, table formats with deleted rows, columns from folder names)
    use :func:`sketch`.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the tasks.
    path : str or list of str
        A folder or files, local on every machine or of a file system that pyarrow knows.
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
    pieces = []
    for fragment in ds.dataset(path, format="parquet").get_fragments():
        if missing := [c for c in columns if c not in fragment.physical_schema.names]:
            raise ValueError(f"{fragment.path} lacks the column '{missing[0]}'")
        pieces += [(fragment.path, group.id) for group in fragment.row_groups]
    if not pieces:
        return plan.empty()
    filesystem = _filesystem(path)
    data = plan.to_bytes()

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import cluster, spark

        mine = [pieces[i::tasks] for batch in batches for i in batch.column(0).to_pylist()]
        rows = spark._batches_of_pieces(sum(mine, []), filesystem, columns)
        yield spark._row_of_bytes(
            cluster.partial(rows, data, weights=weights, skip_invalid=skip_invalid)
        )

    tasks = min(len(pieces), _tasks(spark))
    numbers = spark.range(0, tasks, 1, tasks)
    ready = _readying(numbers)
    whole = _merged(numbers, task, cluster.merge, "merge")
    return plan.empty() if whole is None else Sketch.from_bytes(whole)


def _filesystem(path: str | list[str]) -> Any:
    """The file system of a path with a scheme, which can be sent to the executors."""
    from pyarrow.fs import FileSystem

    first = path if isinstance(path, str) else path[0]
    return FileSystem.from_uri(first)[0] if "://" in first else None


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


def _tasks(spark: SparkSession) -> int:
    """Two tasks a core, so that none waits long for the slowest; Spark Connect does not tell."""
    with contextlib.suppress(Exception):
        return 2 * spark.sparkContext.defaultParallelism
    return 64


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

    _check_given(df, model.columns)
    ready = _readying(df)
    data = model.to_bytes()
    names = {
        "pca": [f"pc{c + 1}" for c in range(model.k)],
        "gmm": ["label", "distance", "log_density"],
    }.get(model.task, ["label", "distance"])
    called = []
    for name in names:
        new = name
        while new in df.columns:
            new = f"predicted_{new}"
        called.append(new)
    types = [IntegerType() if name == "label" else DoubleType() for name in names]
    new_fields = [StructField(c, t, True) for c, t in zip(called, types, strict=True)]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import numpy as np
        import pyarrow as pa

        from nysketch import spark

        model = spark.Model.from_bytes(data)
        for batch in batches:
            said = model._columns(batch, skip_invalid)
            arrays = [
                pa.array(x, mask=np.isnan(x) if x.dtype.kind == "f" else None)
                for x in (said[name] for name in names)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *arrays], names=[*batch.schema.names, *called]
            )

    return df.mapInArrow(task, StructType([*df.schema.fields, *new_fields]))


def ship(spark: SparkSession) -> None:
    """Send this package to the executors, for clusters where it is not installed.

    The package as it is installed here goes as an archive that every executor unpacks; it must have
    been built for the executors' operating system and processor. NumPy and pyarrow must be there.

    Parameters
    ----------
    spark : SparkSession
        The session whose executors get it.
    """
    import nysketch

    folder = Path(nysketch.__file__).parent
    # Executors fetch it from here whenever they start, so it stays as long as this process.
    temporary = tempfile.mkdtemp(prefix="nysketch-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    archive = Path(temporary) / _archive_name()
    with zipfile.ZipFile(archive, "w") as out:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, Path("nysketch") / file.relative_to(folder))
    spark.addArtifacts(str(archive), archive=True)


def _archive_name() -> str:
    import nysketch

    return f"nysketch-{nysketch.__version__}.zip"


def _readying(df: DataFrame) -> Callable[[], None]:
    """A function that a task calls first: it makes a package that was shipped importable.

    Tasks are nested functions without globals of this package, so that they can be unpickled where
    it is not installed.
    """
    archive = _archive_name()

    def ready() -> None:
        import importlib.util
        import os
        import sys

        if importlib.util.find_spec("nysketch") is not None:
            return
        from pyspark import SparkFiles

        folder = SparkFiles.get(archive)
        if not os.path.isdir(folder):
            raise ImportError(
                "nysketch is not installed on this executor; call nysketch.spark.ship(spark) first"
            )
        sys.path.append(folder)

    return ready


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
    merge: Callable[[bytes, bytes], bytes],
    merge_name: str,
) -> bytes | None:
    """The partial results of all partitions, merged as a tree; None where there are none."""
    parts = df.mapInArrow(task, "part binary")
    partitions = _partitions(df)
    if partitions > _DRIVER_PARTS:
        ready = _readying(df)

        def merge_some(batches: Iterator[Any]) -> Iterator[Any]:
            ready()
            from nysketch import _core, cluster, spark

            together = getattr(cluster, merge_name, None) or getattr(_core, merge_name)
            whole = None
            for batch in batches:
                for part in batch.column(0):
                    part = part.as_py()
                    whole = part if whole is None else together(whole, part)
            if whole is not None:
                yield spark._row_of_bytes(whole)

        groups = min(_DRIVER_PARTS, -(-partitions // _GROUP_PARTS))
        parts = parts.repartition(groups).mapInArrow(merge_some, "part binary")
    return _reduced((bytes(row[0]) for row in _collected(parts)), merge)


def _reduced(parts: Iterable[bytes], merge: Callable[[bytes, bytes], bytes]) -> bytes | None:
    parts = iter(parts)
    first = next(parts, None)
    return None if first is None else reduce(merge, parts, first)


def _sketch_groups(
    df: DataFrame,
    ready: Callable[[], None],
    plan: Plan,
    by: str,
    weights: str | None,
    skip_invalid: bool,
    max_groups: int,
) -> dict[str, Sketch]:
    data = plan.to_bytes()

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import pyarrow as pa

        from nysketch import cluster, spark

        options = {"weights": weights, "skip_invalid": skip_invalid, "max_groups": max_groups}
        plan = spark.Plan.from_bytes(data)
        for first in batches:
            rows = cluster.stream(spark._chain(first, batches), first.schema)
            groups = plan.sketch_groups(rows, by, threads=1, **options)
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
    groups = {row[0]: Sketch.from_bytes(bytes(row[1])) for row in _collected(parts)}
    if len(groups) > max_groups:
        raise ValueError(
            f"column '{by}' has more than {max_groups} different values; group by a coarser "
            "column, or raise max_groups"
        )
    return groups


def _partitions(df: DataFrame) -> int:
    # Spark Connect does not tell; then there may be many.
    with contextlib.suppress(Exception):
        return df.rdd.getNumPartitions()
    return _DRIVER_PARTS * _GROUP_PARTS


def _collected(parts: DataFrame) -> list[Any]:
    """Rows of partial results; an error of a task as it was raised there."""
    from pyspark.errors import PySparkException

    try:
        return parts.collect()
    except PySparkException as error:
        told = [line for line in str(error).splitlines() if line.startswith("ValueError: ")]
        if not told:
            raise
        raise ValueError(told[-1].removeprefix("ValueError: ")) from error


def _columns(df: DataFrame, columns: list[str] | None, weights: str | None) -> list[str]:
    """The columns to measure."""
    from pyspark.sql.types import BooleanType, NumericType

    numeric = {f.name: isinstance(f.dataType, (NumericType, BooleanType)) for f in df.schema.fields}
    if columns is None:
        columns = [name for name, is_number in numeric.items() if is_number and name != weights]
        if not columns:
            raise ValueError(f"the table has no column of numbers; it has {', '.join(df.columns)}")
    for name in [*columns, *([weights] if weights else [])]:
        _check_column(df, name)
        if not numeric[name]:
            raise ValueError(f"column '{name}' holds {dict(df.dtypes)[name]}, not numbers")
    return list(columns)


def _check_column(df: DataFrame, name: str) -> None:
    if df.columns.count(name) != 1:
        how = "lacks the column" if name not in df.columns else "has several columns"
        raise ValueError(f"the table {how} '{name}'; it has {', '.join(df.columns)}")


def _check_given(df: DataFrame, columns: list[str]) -> None:
    _columns(df, columns, None)


def _select(df: DataFrame, columns: list[str]) -> DataFrame:
    # Backquotes, so that a dot in a name is not a field.
    return df.select(*("`" + name.replace("`", "``") + "`" for name in columns))
