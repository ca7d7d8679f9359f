"""Internals of `nysketch.spark`: columns for the tasks, partial results for the driver, and the
package for the executors.

Tasks are nested functions without globals of this package, because they are unpickled before a
shipped package can be imported. They import what they need when they run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nysketch import cluster
from nysketch._core import Model, Plan, Sketch, __version__
from nysketch._input import whole

__all__ = [
    "Model",
    "Plan",
    "Sketch",
    "archive_name",
    "batches_of_pieces",
    "check_column",
    "cluster",
    "columns",
    "cores",
    "inputs",
    "located",
    "merged",
    "named",
    "package_files",
    "part_of_partition",
    "readying",
    "row_of_bytes",
    "select",
    "told",
    "whole",
]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Maximum number of partial results, and of their bytes, that the driver merges itself. If there are
# more, executors first merge groups of this size.
DRIVER_PARTS = 32
DRIVER_BYTES = 1 << 26
GROUP_PARTS = 16
# Approximate number of bytes of files that one task reads.
TASK_BYTES = 1 << 27
# Bits for the position of a row within its partition, which limits the rows of a partition.
PARTITION_BITS = 40


def located(path: Any) -> tuple[Any, Any]:
    """Return the file system, and the folder or the files in it."""
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


def batches_of_pieces(
    pieces: list[tuple[str, int]], filesystem: Any, columns: list[str]
) -> Iterator[Any]:
    """Yield the rows of some row groups."""
    import pyarrow.parquet as pq

    groups: dict[str, list[int]] = {}
    for path, group in pieces:
        groups.setdefault(path, []).append(group)
    for path, numbers in groups.items():
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            yield from file.iter_batches(
                1 << 14, row_groups=sorted(numbers), columns=columns, use_threads=False
            )


def cores(spark: SparkSession) -> int:
    # Spark Connect does not provide this number.
    with contextlib.suppress(Exception):
        return spark.sparkContext.defaultParallelism
    return 16


def package_files() -> list[tuple[Path, Path]]:
    """Return the files of this package and their places in an archive."""
    import nysketch

    folder = Path(nysketch.__file__).parent
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and "__pycache__" not in f.parts)
    return [(f, Path("nysketch") / f.relative_to(folder)) for f in files]


@lru_cache
def archive_name() -> str:
    content = hashlib.sha256()
    for file, name in package_files():
        content.update(str(name).encode() + file.read_bytes())
    return f"nysketch-{content.hexdigest()[:16]}.zip"


def readying() -> Callable[[], None]:
    """Return a function that makes a shipped package importable; every task calls it first.

    Tasks are nested functions without globals of this package, so that they can be unpickled where
    it is not installed.
    """
    archive, version = archive_name(), __version__

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


def named(batches: Iterator[Any], names: list[str]) -> Iterator[Any]:
    """Restore the names of columns that were numbered for the transfer to Python."""
    for batch in batches:
        yield batch.rename_columns(names)


def row_of_bytes(part: bytes) -> Any:
    """Return a batch with one row that contains a partial result."""
    import pyarrow as pa

    return pa.record_batch({"part": pa.array([part], pa.binary())})


def part_of_partition(batches: Iterator[Any], work: Callable[[Any, Any, int], bytes]) -> Any:
    """Apply ``work`` to the rows of this partition, together with their positions."""
    from pyspark import TaskContext

    from nysketch import _core

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    for rows in cluster.streams(batches):
        yield row_of_bytes(work(rows, _core, number << PARTITION_BITS))


def merged(
    df: DataFrame,
    task: Callable[[Iterator[Any]], Iterator[Any]],
    merge_name: str,
    size: int,
) -> bytes | None:
    """Merge the partial results of all partitions, of ``size`` bytes each, as a tree. Return None
    if there are none."""
    most = max(2, min(DRIVER_PARTS, DRIVER_BYTES // max(size, 1)))
    ready = readying()

    def together(a: bytes, b: bytes) -> bytes:
        ready()
        from nysketch import _core, cluster

        merge = getattr(cluster, merge_name, None) or getattr(_core, merge_name)
        return merge(bytes(a), bytes(b))

    parts = df.mapInArrow(task, "part binary")
    try:
        # Counting and running share one execution plan, so earlier stages run once.
        rows = parts.rdd
    except Exception:
        return merged_by_frame(parts, together)
    with told():
        count = rows.getNumPartitions()
        if count <= most:
            return reduced((bytes(row[0]) for row in rows.collect()), together)
        tree = rows.map(lambda row: bytes(row[0]))
        while count > most:
            count = -(-count // GROUP_PARTS)
            tree = grouped(tree, count).reduceByKey(together, count).values()
        return reduced(tree.collect(), together)


def grouped(rdd: Any, groups: int) -> Any:
    # Groups by partition number, which does not change if a task is repeated.
    return rdd.mapPartitionsWithIndex(lambda i, parts: ((i % groups, part) for part in parts))


def merged_by_frame(parts: DataFrame, together: Callable[[bytes, bytes], bytes]) -> bytes | None:
    """Merge on the driver in one level: Spark Connect has no RDDs."""
    with told():
        return reduced((bytes(row[0]) for row in parts.toLocalIterator()), together)


def reduced(parts: Iterable[bytes], merge: Callable[[bytes, bytes], bytes]) -> bytes | None:
    parts = iter(parts)
    first = next(parts, None)
    return None if first is None else reduce(merge, parts, first)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise an error of a task in the form in which it was raised there."""
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


class Columns(NamedTuple):
    """The columns of a table from which a plan may be made, by type."""

    numbers: list[str]
    times: list[str]
    categories: list[str]

    def reads(self, df: DataFrame) -> list[str]:
        """Return the columns of the table that contain them."""
        return inputs(df, [*self.numbers, *self.categories])


def columns(
    df: DataFrame,
    chosen: list[str] | None,
    weights: str | None,
    roles: dict[str, list[str]],
) -> tuple[Columns, list[str]]:
    """Return the columns to measure (the chosen ones, or all of numbers or text), and the rest.

    ``roles`` are the columns to read as categorical, numeric or dates.
    """
    check_frame(df)
    from pyspark.sql.types import StringType

    bad = isinstance(chosen, str) or chosen is not None and len(set(chosen)) < max(1, len(chosen))
    if bad:
        raise ValueError(f"columns must be a list of different names, got {chosen!r}")
    said = [name for names in roles.values() for name in names]
    if twice := [name for name in said if said.count(name) > 1]:
        raise ValueError(f"column '{twice[0]}' has two roles: it is named twice")
    wanted = df.columns if chosen is None else [*chosen, *(n for n in said if n not in chosen)]
    for name in [*wanted, *said, *([weights] if weights else [])]:
        check_column(df, name)
    types = {field.name: field.dataType for field in df.schema.fields}
    if weights is not None and not is_number(types[weights]):
        raise ValueError(f"column '{weights}' holds {dict(df.dtypes)[weights]}, not numbers")
    found, left_out = Columns([], [], []), []
    vectors = [n for n in wanted if is_vector(types[n]) and n not in roles["categorical"]]
    lengths = vector_lengths(df, vectors)
    for name in wanted:
        if name == weights and name not in said and chosen is None:
            continue
        kind, text = types[name], isinstance(types[name], StringType)
        if name in roles["categorical"] or (text and name not in roles["numeric"]):
            found.categories.append(name)
        elif name in roles["dates"] and is_time(kind):
            found.numbers.append(name)
            found.times.append(name)
        elif is_number(kind) and name not in roles["dates"]:
            found.numbers.append(name)
        elif name in vectors and name not in roles["dates"]:
            found.numbers.extend(f"{name}[{j}]" for j in range(lengths[name]))
        elif chosen is None and name not in said:
            left_out.append(f"{name} ({kind.simpleString()})")
        else:
            what = "dates" if name in roles["dates"] else "numbers"
            hint = f"; read it with dates='{name}'" if is_time(kind) else ""
            raise ValueError(f"column '{name}' holds {kind.simpleString()}, not {what}{hint}")
    if not found.numbers:
        raise ValueError(f"the table has no column of numbers; it has {', '.join(df.columns)}")
    return found, left_out


def check_frame(df: Any) -> None:
    if not hasattr(df, "mapInArrow"):
        raise TypeError(
            f"df must be a DataFrame of Spark (pip install 'nysketch[spark]'), got "
            f"{type(df).__name__}; nysketch.Plan takes tables on this machine"
        )


def is_number(kind: Any) -> bool:
    from pyspark.sql.types import BooleanType, NumericType

    return isinstance(kind, (NumericType, BooleanType))


def is_time(kind: Any) -> bool:
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return isinstance(kind, (DateType, TimestampType, TimestampNTZType))


def is_vector(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, NumericType

    return isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType)


def vector_lengths(df: DataFrame, names: list[str]) -> dict[str, int]:
    """Return the number of coordinates of the first vector in each column."""
    lengths = {}
    for name in names:
        one, _ = select(df, [name])
        with told():
            row = one.where(one[one.columns[0]].isNotNull()).limit(1).collect()
        lengths[name] = len(row[0][0]) if row else 0
    return lengths


def inputs(df: DataFrame, names: list[str], *others: str | None) -> list[str]:
    """Return the columns of a table that contain those of a plan or a model, and others."""
    check_frame(df)
    read = [*names, *(name for name in others if name is not None)]
    found = whole(read, df.columns)
    for name in read if found is None else found:
        check_column(df, name)
    assert found is not None, "all columns are there"
    return found


def check_column(df: DataFrame, name: str) -> None:
    if df.columns.count(name) != 1:
        how = "does not have the column" if name not in df.columns else "has several columns"
        raise ValueError(f"the table {how} '{name}'; it has {', '.join(df.columns)}")


def select(df: DataFrame, columns: list[str]) -> tuple[DataFrame, list[str]]:
    """Return some columns, each once, and their names.

    The columns of the result are numbered: mapInArrow fails on dots and on names that differ only
    in case.
    """
    columns = list(dict.fromkeys(columns))
    places = [df.columns.index(name) for name in columns]
    numbered = df.toDF(*(f"_{i}" for i in range(len(df.columns))))
    return numbered.select(*(f"_{i}" for i in places)), columns
