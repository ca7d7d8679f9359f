"""Rows of Python objects under a private plan.

Each value is read separately: no value affects the type of its column, and none is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from nysketch._core import _read_number

__all__ = ["empty", "frame", "matrix", "number", "text"]

MISSING, INVALID = float("nan"), float("inf")


def number(value: Any) -> float:
    """Return the double nearest to a number, or to the number in a text as in a CSV file.

    The result is NaN if the value is missing, and infinite if it is not a number.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return MISSING
    try:
        if isinstance(value, (str, bytes)):
            return _read_number(value.encode() if isinstance(value, str) else value)
        if isinstance(value, (Real, Decimal, np.bool_)) and not isinstance(value, np.timedelta64):
            return float(value)
    except (ArithmeticError, ValueError, TypeError):
        pass
    return INVALID


def text(value: Any) -> str | None:
    """Return the text of a value as in a column of its type; None if missing or without text."""
    from nysketch._input import level_text

    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    try:
        if isinstance(value, (float, np.floating)) and value != value:
            return None
        found = value if isinstance(value, str) else level_text(value)
        found.encode()
    except Exception:  # noqa: BLE001 - an object of the user may raise any exception.
        return None
    return found


def matrix(rows: Iterable[Any], width: int) -> np.ndarray:
    """Convert rows of ``width`` numbers to doubles. A row of another length is invalid."""
    rows = list(rows)
    found = np.empty((len(rows), width))
    for i, row in enumerate(rows):
        values = _values(row)
        if values is None or len(values) != width:
            found[i] = INVALID
        else:
            found[i] = [number(value) for value in values]
    return found


def empty(numbers: list[str], read: Iterable[str]) -> Any:
    """Return a table without rows, for a generator without batches."""
    import pyarrow

    columns = dict.fromkeys([*numbers, *read])
    kinds = {name: pyarrow.float64() if name in numbers else pyarrow.string() for name in columns}
    return pyarrow.table({name: pyarrow.array([], kind) for name, kind in kinds.items()})


def frame(X: Any, read: list[str], numbers: list[str], *, batch: bool = False) -> Any:
    """Return the required columns of a data frame, with objects and texts read value by value.

    The types of a ``batch`` may depend on its rows, so they are reduced to numbers and texts.
    """
    X = X.set_axis([str(name) for name in X.columns], axis=1).reset_index(drop=True)
    if not X.columns.is_unique:
        return X
    columns: dict[str, Any] = {}
    for name in read:
        base = name if name in X.columns else re.sub(r"\[\d+\]$", "", name)
        if base not in X.columns:
            return X  # The reader reports the missing column.
        column = X[base]
        plain = getattr(column.dtype, "kind", "O") in "biuf"
        if not (_is_of_objects(column.dtype) or (batch and not (plain and base in numbers))):
            columns[base] = column
        elif name not in numbers:
            columns[name] = _mapped(text, column, object)
        elif base == name:
            columns[name] = _mapped(number, column, np.float64)
        else:
            columns[name] = _mapped(_coordinate(name), column, np.float64)
    return type(X)(columns)


def _mapped(function: Callable[[Any], Any], column: Any, dtype: Any) -> np.ndarray:
    found = np.empty(len(column), dtype)
    for i, value in enumerate(column):
        found[i] = function(value)
    return found


def _is_of_objects(dtype: Any) -> bool:
    """Return whether a column contains objects or texts."""
    return str(dtype).startswith(("object", "str", "large_string"))


def _coordinate(name: str) -> Callable[[Any], float]:
    """Return a function that reads one coordinate of a vector, whose index is in ``name``."""
    at = int(name[name.rindex("[") + 1 : -1])

    def read(vector: Any) -> float:
        values = _values(vector)
        if values is None:
            return number(None if vector is None else INVALID)
        return number(values[at]) if at < len(values) else INVALID

    return read


def _values(row: Any) -> Sequence[Any] | None:
    """Return the values of a row or a vector; None if it is not a sequence."""
    if isinstance(row, (str, bytes, dict)) or not hasattr(row, "__iter__"):
        return None
    try:
        return list(row)
    except Exception:  # noqa: BLE001 - as above.
        return None
