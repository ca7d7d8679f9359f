"""Sketches of rows on many machines, with any engine.

An engine needs to apply a function to the batches of a partition and to merge the results. It calls
two functions: :func:`partial` on every machine, and :func:`merge` anywhere. Sums are exact, so the
result does not depend on the partitions or on the order of merging: the bytes are those of one
machine that reads all rows.

>>> import numpy as np, nysketch
>>> from functools import reduce
>>> from nysketch.cluster import merge, partial
>>> X = np.random.default_rng(0).normal(size=(3000, 4))
>>> plan = nysketch.Plan.from_data(X, landmarks=50)
>>> partitions = [[X[:1000], X[1000:1200]], [], [X[1200:]]]
>>> parts = [partial(batches, plan) for batches in partitions]
>>> sketch = nysketch.Sketch.from_bytes(reduce(merge, parts)).with_witnesses(plan)
>>> sketch.to_bytes() == plan.sketch(X).to_bytes()
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nysketch._core import Plan, Sketch

if TYPE_CHECKING:
    import pyarrow

__all__ = ["merge", "partial"]


def partial(
    batches: Iterable[Any],
    plan: Plan | bytes,
    *,
    weights: str | None = None,
    skip_invalid: bool = False,
) -> bytes:
    """Make the sketch of one partition.

    Parameters
    ----------
    batches : iterable
        The rows in parts: record batches of pyarrow, which are read one after the other on one
        thread, or arrays or tables of any kind that ``Plan.sketch`` supports. There may be none.
    plan : Plan or bytes
        The plan, the same for all partitions; its retained rows are not needed.
    weights : str, optional
        The column of row weights, for a plan that was made with weights.
    skip_invalid : bool, default=False
        Leave out invalid rows and count them, instead of raising.

    Returns
    -------
    bytes
        The bytes of a sketch without retained rows, for :func:`merge`, ``Sketch.from_bytes``, or a
        file.
    """
    plan = plan if isinstance(plan, Plan) else Plan.from_bytes(plan)
    sketch = plan.empty()
    for rows in streams(batches):
        sketch.update(rows, weights=weights, skip_invalid=skip_invalid, threads=1, allow_empty=True)
    return sketch.to_bytes(embed_witnesses=False)


def merge(a: bytes, b: bytes) -> bytes:
    """Merge two sketches into the sketch of the rows of both.

    Parameters
    ----------
    a, b : bytes
        Sketches of the same plan.

    Returns
    -------
    bytes
    """
    return (Sketch.from_bytes(a) + Sketch.from_bytes(b)).to_bytes()


def streams(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield record batches of one schema as one stream, so that they are read in one pass, and any
    other item unchanged."""

    def schema_of(batch: Any) -> Any:
        return batch.schema if type(batch).__name__ == "RecordBatch" else None

    for schema, group in groupby(batches, schema_of):
        if schema is None:
            yield from group
        else:
            yield stream(group, schema)


def stream(batches: Iterable[pyarrow.RecordBatch], schema: Any) -> pyarrow.RecordBatchReader:
    """Return a stream of record batches, all of which must have the given schema.

    Batches in an Arrow stream do not carry types: a batch with other types would be misread.
    """
    import pyarrow

    def checked() -> Iterator[Any]:
        for batch in batches:
            if not batch.schema.equals(schema):
                raise ValueError(
                    f"a batch has the columns {batch.schema.names} of types {batch.schema.types}, "
                    f"those before it {schema.names} of types {schema.types}"
                )
            yield batch

    return pyarrow.RecordBatchReader.from_batches(schema, checked())
