"""Plans, sketches and predictions on Spark, equal byte for byte to those of one machine.

The executor that holds a partition reads it once, batch by batch, into one small partial sketch.
Partial sketches are merged on the executors and then on the driver. Only plans, sketches and
samples of rows are sent. See docs/SPARK.md.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nysketch import _spark
from nysketch._core import Model, Plan, Sketch, _Draft, _plan_sample_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["plan", "predict", "ship", "sketch", "sketch_parquet"]


def plan(
    df: DataFrame,
    *,
    columns: list[str] | None = None,
    weights: str | None = None,
    weight_unit: float | None = None,
    landmarks: int | str | None = None,
    clusters: int | None = None,
    sampling: str | None = None,
    leverage_lambda: float | None = None,
    landmarks_from: Any = None,
    features: str = "nystrom",
    frequencies: int | None = None,
    kernel: str | None = None,
    bandwidth: Any = None,
    scale: str | None = None,
    categorical: str | list[str] | None = None,
    numeric: str | list[str] | None = None,
    dates: str | list[str] | dict[str, Any] | None = None,
    missing: str | None = None,
    log: str | list[str] | None = None,
    weight_columns: dict[str, float] | None = None,
    unit: str | list[str] | None = None,
    sample_rows: int | None = None,
    witnesses: int | None = None,
    collect: Any = None,
    skip_invalid: bool = False,
    seed: int = 0,
    warn: bool = True,
) -> Plan:
    """Make a plan from the rows of a table.

    Executors compute statistics and a sample of their rows; the driver chooses landmarks. D²
    landmarks, the default, need a second reading: executors draw rows far from the first half of
    the landmarks. The same rows in the same order in the same partitions, with the same seed, give
    the same plan. A shuffle may change the order.

    Parameters
    ----------
    df : DataFrame
        The rows. They are read twice, so cache a table that is expensive to compute; a table that
        is not deterministic gives a plan of inconsistent rows.
    columns : list of str, optional
        Columns to measure; by default all columns of numbers (arrays of numbers with equal lengths
        are vectors) and of text with at most 50 distinct values, which are categories.
    weights : str, optional
        The column of row weights.
    weight_unit : float, optional
        Weights are rounded to whole multiples of this unit; by default 1 if all weights are whole
        numbers, otherwise a small power of two.
    landmarks, clusters, sampling, leverage_lambda, landmarks_from, features, frequencies, kernel, \
bandwidth, scale, categorical, numeric, dates, missing, log, weight_columns, unit, sample_rows, \
witnesses, collect, skip_invalid, seed, warn
        As for ``Plan.from_data``, but columns are given by exact names, without patterns.

    Returns
    -------
    Plan
    """
    roles = {
        "categorical": _listed(categorical),
        "numeric": _listed(numeric),
        "dates": _listed(dates),
    }
    table, left_out = _spark.columns(df, columns, weights, roles)
    options: dict[str, Any] = {
        "landmarks": landmarks,
        "clusters": clusters,
        "sampling": sampling,
        "leverage_lambda": leverage_lambda,
        "landmarks_from": landmarks_from,
        "features": features,
        "frequencies": frequencies,
        "kernel": kernel,
        "bandwidth": bandwidth,
        "scale": scale,
        "named": [name for name in table.numbers if name in (columns or [])],
        "categorical": categorical,
        "numeric": numeric,
        "dates": dates,
        "missing": missing,
        "log": log,
        "weight_columns": weight_columns,
        "unit": unit,
        "sample_rows": sample_rows,
        "witnesses": witnesses,
        "collect": collect,
        "weight_unit": weight_unit,
        "skip_invalid": skip_invalid,
        "seed": seed,
    }
    width = len(table.numbers) + len(table.categories)
    sample = _plan_sample_rows(width, weights, options)
    chosen, names = _spark.select(df, [*table.reads(df), *([weights] if weights else [])])
    ready = _spark.readying()
    # A part contains a sample, each row with its weight, priority and position.
    size = 8 * sample * (width + 3)
    # A type that can be unpickled where this package must be shipped first.
    measured = table._asdict()
    if left_out and warn:
        warnings.warn(
            f"columns skipped because they are neither numbers nor text: {', '.join(left_out)}; "
            "those of dates are read with dates=...",
            UserWarning,
            stacklevel=2,
        )

    def survey(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import _spark

        yield from _spark.part_of_partition(
            _spark.named(batches, names),
            lambda rows, core, at: core._survey_part(rows, measured, weights, options, at),
        )

    found = _spark.merged(chosen, survey, "_merge_survey_parts", size)
    if found is None:
        raise ValueError("the table has no rows")
    draft = _Draft(measured, found, weights, options)
    distant = None
    if draft.wants_distant_rows is not None:
        near, count = draft.wants_distant_rows
        first = near.to_bytes()

        def draw(batches: Iterator[Any]) -> Iterator[Any]:
            ready()
            from nysketch import _spark

            half = _spark.Plan.from_bytes(first)
            yield from _spark.part_of_partition(
                _spark.named(batches, names),
                lambda rows, core, at: core._distant_part(rows, half, count, weights, at),
            )

        distant = _spark.merged(chosen, draw, "_merge_distant_parts", size)
    return draft.finish(distant, warn)


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
        The plan. It is sent to every task without its retained rows.
    by : str, optional
        A column whose values, as text, group the rows; one sketch is made for each group.
    weights : str, optional
        The column of row weights, for a plan that was made with weights.
    skip_invalid : bool, default=False
        Leave out rows with null, NaN or infinity and count them, instead of raising.
    max_groups : int, default=1000
        Maximum number of distinct values of ``by``; more are an error. Each group takes the memory
        of a sketch.

    Returns
    -------
    Sketch, or dict of str to Sketch
        The bytes are those of ``Plan.sketch`` on one machine, whatever the partitions.
    """
    reads = _spark.inputs(df, plan.inputs, weights, by)
    if (plan.weight_unit is None) != (weights is None):
        raise ValueError("weights go with a plan that was made with weights, and only with such")
    chosen, names = _spark.select(df, reads)
    ready = _spark.readying()
    data = plan.to_bytes(embed_witnesses=False)
    if by is not None:
        return _sketch_groups(chosen, names, plan, by, weights, skip_invalid, max_groups)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import _spark

        rows = _spark.named(batches, names)
        part = _spark.cluster.partial(rows, data, weights=weights, skip_invalid=skip_invalid)
        yield _spark.row_of_bytes(part)

    whole = _spark.merged(chosen, task, "merge", _part_size(plan))
    return plan.empty() if whole is None else Sketch.from_bytes(whole).with_witnesses(plan)


def sketch_parquet(
    spark: SparkSession,
    path: str | os.PathLike[str] | list[str],
    plan: Plan,
    *,
    weights: str | None = None,
    skip_invalid: bool = False,
) -> Sketch:
    """Sketch Parquet files that the executors can open themselves.

    The executors' Python workers read the files by row group. They bypass Spark's own reader,
    because handing over rows costs more than sketching them. For other sources (queries, Delta,
    Iceberg or Hudi tables, columns from folder names) use :func:`sketch`.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the tasks.
    path : str, os.PathLike or list of str
        A folder or files, at the same path on every machine or on a file system that pyarrow
        supports (``s3://…``).
    plan : Plan
        The plan.
    weights : str, optional
        The column of row weights, for a plan that was made with weights.
    skip_invalid : bool, default=False
        Leave out rows with null, NaN or infinity and count them, instead of raising.

    Returns
    -------
    Sketch
        The bytes are those of ``Plan.sketch`` on one machine.
    """
    import pyarrow.dataset as ds

    inputs = [*plan.inputs, *([weights] if weights else [])]
    columns: list[str] = []
    filesystem, paths = _spark.located(path)
    pieces, size = [], 0
    for fragment in ds.dataset(paths, format="parquet", filesystem=filesystem).get_fragments():
        names = fragment.physical_schema.names
        found = _spark.whole(inputs, names)
        if found is None:
            missing = [name for name in inputs if _spark.whole([name], names) is None]
            raise ValueError(f"{fragment.path} does not have the column '{missing[0]}'")
        columns = found
        pieces += [(fragment.path, group.id) for group in fragment.row_groups]
        size += sum(group.total_byte_size for group in fragment.row_groups)
    if not pieces:
        return plan.empty()
    data = plan.to_bytes(embed_witnesses=False)
    ready = _spark.readying()
    # Two tasks per core limit the wait for the slowest one, and the size of a task is limited, too.
    tasks = min(len(pieces), max(2 * _spark.cores(spark), size // _spark.TASK_BYTES))

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        from nysketch import _spark

        mine = [pieces[i::tasks] for batch in batches for i in batch.column(0).to_pylist()]
        rows = _spark.batches_of_pieces(sum(mine, []), filesystem, columns)
        yield _spark.row_of_bytes(
            _spark.cluster.partial(rows, data, weights=weights, skip_invalid=skip_invalid)
        )

    numbers = spark.range(0, tasks, 1, tasks)
    whole = _spark.merged(numbers, task, "merge", _part_size(plan))
    return plan.empty() if whole is None else Sketch.from_bytes(whole).with_witnesses(plan)


def predict(
    df: DataFrame,
    model: Model,
    *,
    prefix: str = "",
    skip_invalid: bool = False,
    flag: float | None = None,
) -> DataFrame:
    """Add the predictions of a model to every row.

    Parameters
    ----------
    df : DataFrame
        The rows.
    model : Model
        The model.
    prefix : str, default=""
        Prefix of the new columns, needed if ``df`` has columns with their names.
    skip_invalid : bool, default=False
        Give rows with null, NaN or infinity the label -1 and null, instead of raising.
    flag : float, optional
        For mixtures: add a column ``outlier``, which is true for rows below this quantile of the
        log density (``Model.threshold``).

    Returns
    -------
    DataFrame
        All columns of ``df``, and ``label``, ``distance`` (in the coordinates of the fit), for
        mixtures ``log_density`` and, with ``flag``, the boolean ``outlier``, or ``pc1``, ``pc2``,
        …, each with the prefix.

    Raises
    ------
    ValueError
        If ``df`` has a column with such a name.
    """
    from pyspark.sql.types import BooleanType, DoubleType, IntegerType, StructField, StructType

    reads = _spark.inputs(df, model.inputs)
    ready = _spark.readying()
    data = model.to_bytes()
    names, kinds = zip(*model._column_names(flag), strict=True)
    called = [f"{prefix}{name}" for name in names]
    taken = {column.casefold() for column in df.columns}
    if twice := [name for name in called if name.casefold() in taken]:
        raise ValueError(
            f"the table has a column '{twice[0]}' already; pass prefix='predicted_' or the like"
        )
    # Columns are numbered: mapInArrow fails on dots and on names that differ only in case.
    safe = df.toDF(*(f"_{i}" for i in range(len(df.columns))))
    own = df.columns
    types = {"labels": IntegerType(), "numbers": DoubleType(), "flags": BooleanType()}
    new_fields = [StructField(c, types[kind], True) for c, kind in zip(names, kinds, strict=True)]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import numpy as np
        import pyarrow as pa

        from nysketch import _spark

        model = _spark.Model.from_bytes(data)
        places = [own.index(column) for column in reads]
        for batch in batches:
            rows = batch.select(places).rename_columns(reads)
            said = model._columns(rows, skip_invalid, flag)
            invalid = np.isnan(next(x for x in said.values() if x.dtype.kind == "f"))
            arrays = [
                pa.array(said[name], mask=None if kind == "labels" else invalid)
                for name, kind in zip(names, kinds, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *arrays], names=[*batch.schema.names, *names]
            )

    said = safe.mapInArrow(task, StructType([*safe.schema.fields, *new_fields]))
    return said.toDF(*own, *called)


def ship(spark: SparkSession) -> None:
    """Send this package to the executors, for clusters where it is not installed.

    The installed package is sent as an archive that every executor unpacks. It must have been built
    for the operating system and processor of the executors. NumPy and pyarrow must be installed
    there.

    Parameters
    ----------
    spark : SparkSession
        The session whose executors receive the package.
    """
    from pyspark.errors import PySparkException

    # Executors fetch the archive whenever they start, so it is kept as long as this process.
    temporary = tempfile.mkdtemp(prefix="nysketch-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    archive = Path(temporary) / _spark.archive_name()
    with zipfile.ZipFile(archive, "w") as out:
        for file, name in _spark.package_files():
            out.write(file, name)
    try:
        spark.addArtifacts(str(archive), archive=True)
    except PySparkException as error:
        # The name depends on the content, so an existing artifact with the same name is identical.
        if "DUPLICATED_ARTIFACT" not in str(error):
            raise


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names or [])


def _part_size(plan: Plan) -> int:
    """Return the size of the sketch of a partition, without the retained rows."""
    return len(plan.empty().to_bytes(embed_witnesses=False))


def _sketch_groups(
    df: DataFrame,
    names: list[str],
    plan: Plan,
    by: str,
    weights: str | None,
    skip_invalid: bool,
    max_groups: int,
) -> dict[str, Sketch]:
    data = plan.to_bytes(embed_witnesses=False)
    ready = _spark.readying()

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        ready()
        import pyarrow as pa

        from nysketch import _spark

        plan = _spark.Plan.from_bytes(data)
        batches = _spark.named(batches, names)
        for rows in _spark.cluster.streams(batches):
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

        from nysketch import _spark

        groups: dict[str, Any] = {}
        for batch in batches:
            for name, part in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                part = _spark.Sketch.from_bytes(part)
                groups[name] = groups[name] + part if name in groups else part
        for name, sketch in groups.items():
            yield pa.record_batch({"name": [name], "part": [sketch.to_bytes()]})

    schema = "name string, part binary"
    parts = df.mapInArrow(task, schema).repartition("name").mapInArrow(merge_group, schema)
    with _spark.told():
        rows = parts.limit(max_groups + 1).collect()
    groups = {row[0]: Sketch.from_bytes(bytes(row[1])).with_witnesses(plan) for row in rows}
    if len(groups) > max_groups:
        raise ValueError(
            f"column '{by}' has more than {max_groups} different values; group by a coarser "
            "column, or raise max_groups"
        )
    return groups
