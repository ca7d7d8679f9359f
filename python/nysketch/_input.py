"""Recognises the kinds of X that are supported; the compiled part reads them."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nysketch import _device, _rowwise

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "Files",
    "Named",
    "Sparse",
    "categories_of",
    "files",
    "has_names",
    "is_arrow",
    "is_batches",
    "is_iterator",
    "is_mixed",
    "is_pandas",
    "is_sparse",
    "is_table",
    "level_text",
    "matrix",
    "names_of",
    "on_device",
    "refuse",
    "spooled",
    "table",
    "unmasked",
    "weights",
    "whole",
]


@dataclass(frozen=True, init=False)
class Files:
    """Tables in files, read in the same way as by the command line.

    Every function that takes rows also takes a path, a folder, a pattern or a list of them. This
    class adds options.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders or patterns: Parquet, Arrow, csv (also .gz and .zst), tsv and npy, read in
        this order.
    format : {'csv', 'tsv', 'npy', 'parquet', 'arrow'}, optional
        Format of every file; by default recognised by content, then by extension.
    delimiter : str, optional
        Character between the columns of csv files; by default a comma, or a tab for .tsv.
    header : bool, optional
        Whether the first line of csv files contains names. By default it does, and a line that
        looks like data is an error.

    Examples
    --------
    >>> import nysketch
    >>> nysketch.Files("measurements.csv", delimiter=";", header=False).paths
    ('measurements.csv',)
    """

    paths: tuple[str, ...]
    format: str | None
    delimiter: str | None
    header: bool | None

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        format: str | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
    ) -> None:
        names = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        set_ = object.__setattr__
        set_(self, "paths", tuple(os.fspath(name) for name in names))
        set_(self, "format", format)
        set_(self, "delimiter", delimiter)
        set_(self, "header", header)


class Spooled(Files):
    """Batches of a one-time iterator, kept in a temporary file as long as this object lives."""

    named: bool

    def __init__(self, folder: tempfile.TemporaryDirectory[str], path: str, named: bool) -> None:
        super().__init__(path, format="arrow")
        object.__setattr__(self, "folder", folder)
        object.__setattr__(self, "named", named)


def files(X: Any) -> Files | None:
    """Return the files that X names, or None if X is another kind of object."""
    if isinstance(X, Files):
        return X
    if _is_path(X):
        return Files(X)
    if isinstance(X, (list, tuple)) and X and all(_is_path(path) for path in X):
        return Files(X)
    return None


def is_batches(X: Any) -> bool:
    """Return whether X is read in batches: files, Arrow streams, or an iterator of batches."""
    return files(X) is not None or is_iterator(X) or (is_arrow(X) and not is_pandas(X))


def is_iterator(X: Any) -> bool:
    """Return whether X is a generator or another iterator of batches, which can be read once."""
    return hasattr(X, "__next__") and not hasattr(X, "__arrow_c_stream__")


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of scipy."""
    return hasattr(X, "toarray") and hasattr(X, "nnz")


def has_names(X: Any) -> bool | None:
    """Return whether the columns of batches have names, or None if this is not known yet."""
    if isinstance(X, Spooled):
        return X.named
    if isinstance(X, Files) or _is_path(X):
        paths = X.paths if isinstance(X, Files) else (os.fspath(X),)
        return not all(str(path).endswith(".npy") for path in paths)
    return None if callable(X) and not hasattr(X, "__arrow_c_stream__") else True


def _is_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike))


class Named(NamedTuple):
    """An array whose columns have names."""

    array: np.ndarray
    names: list[str]


def is_arrow(X: Any) -> bool:
    """Return whether X is read batch by batch through the Arrow stream interface."""
    # A labelled array, such as one of xarray, would give a stream with one row per value.
    return not _is_array(X) and (
        hasattr(X, "__arrow_c_stream__")
        or hasattr(X, "__arrow_c_array__")
        or _is_dataset(X)
        or _is_lazy(X)
        or (callable(X) and not hasattr(X, "__array__"))
    )


def is_pandas(X: Any) -> bool:
    """Return whether X is a pandas data frame."""
    return type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "columns")


def is_table(X: Any) -> bool:
    """Return whether the columns of X have their own types, unlike the columns of an array."""
    return files(X) is not None or is_pandas(X) or is_arrow(X)


def is_mixed(X: Any) -> bool:
    """Return whether X is a pandas data frame with columns that are not numeric."""
    return is_pandas(X) and not all(_is_number(dtype) for dtype in X.dtypes)


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns if they are known before reading."""
    if isinstance(X, Named):
        return X.names
    if is_pandas(X):
        return [str(name) for name in X.columns]
    if _is_lazy(X):
        return X.collect_schema().names()
    if files(X) is None and is_arrow(X):
        names = getattr(getattr(X, "schema", None), "names", None)
        names = names() if callable(names) else names
        return None if names is None else list(names)
    if isinstance(X, Sparse) or _is_array(X):
        return [f"c{j}" for j in range(X.shape[1])]
    return None


def categories_of(X: Any) -> list[str]:
    """Return the columns of a data frame that have a categorical type."""
    if is_pandas(X):
        return [str(name) for name, dtype in X.dtypes.items() if _is_category(dtype)]
    if type(X).__module__.startswith("polars"):
        schema = X.collect_schema() if _is_lazy(X) else X.schema
        return [name for name, kind in schema.items() if str(kind).startswith(("Categ", "Enum"))]
    return []


def refuse(X: Any) -> None:
    """Raise for objects that only look like tables, and name an alternative."""
    kind, module = type(X).__name__, type(X).__module__.split(".")[0]
    if kind == "Series" and hasattr(X, "to_frame"):
        raise ValueError("X is a Series, which is one column; pass X.to_frame()")
    if module == "pyspark":
        raise TypeError(
            f"X is a {kind} of Spark; use nysketch.spark.plan, sketch and predict, or pass "
            "X.toArrow(), which brings all rows to this machine"
        )
    if kind == "LazyFrame" and not _is_lazy(X):
        raise TypeError("X is a LazyFrame; pass X.collect()")
    if X is None or isinstance(X, bytes):
        raise TypeError(f"X must be a table of rows or a path, got {kind}")


def unmasked(X: Any) -> Any:
    """Replace masked values by missing ones."""
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.float64), np.nan)
    return X


def on_device(X: Any, read: list[str], beside: bool) -> _device.Located | None:
    """Return the place of X if it is a table of numbers in GPU memory, otherwise None.

    From a frame, the columns ``read`` are taken. If further columns are needed (``beside``), the
    result is None and the frame is copied later.
    """
    if _device.is_cudf(X):
        X = None if beside else _of_cudf(X, read)
    found = _device.located(X)
    if found is None:
        return None
    _check_shape(found.shape)
    if found.dtype not in ("float64", "float32", "float16", "bfloat16"):
        raise TypeError(
            f"X holds {found.dtype}; in GPU memory, values are float64, float32, float16 or "
            f"bfloat16: pass {_device.how_to_convert(X, found.dtype)}"
        )
    return found


def _of_cudf(X: Any, read: list[str]) -> Any:
    """Return columns of a frame as a CuPy array, or None if a conversion would be necessary."""
    columns = {str(name): name for name in getattr(X, "columns", ())}
    if not set(read) <= set(columns):
        return None
    chosen = X[[columns[name] for name in read]]
    if not all(_is_number(dtype) for dtype in chosen.dtypes):
        return None
    single = all(dtype == np.float32 for dtype in chosen.dtypes)
    return chosen.to_cupy(dtype="float32" if single else "float64", na_value=np.nan)


def table(
    X: Any, read: list[str] | None, numbers: list[str] | None = None
) -> tuple[Any, list[str] | None]:
    """Return X as an array or as a source of Arrow streams, and the names of an array's columns.

    If the columns to ``read`` are known, only these are read, and the columns of an array with
    names are put in that order. Arrays in GPU memory are copied. For a private plan, ``numbers``
    names the columns of numbers, and objects are read value by value.
    """
    refuse(X)
    X = _device.on_host(X)
    if isinstance(X, Named):
        return _of_named(X, read)
    if isinstance(X, Sparse) or is_sparse(X):
        return X if isinstance(X, Sparse) else Sparse(X), None
    if is_iterator(X):
        return _stream(X, read, numbers)[0], None
    if numbers is not None and not is_pandas(X):
        X = _by_rows(X, len(numbers))
    if is_pandas(X):
        if numbers is not None:
            X = _rowwise.frame(X, read or numbers, numbers)
        return _of_pandas(X, read)
    if _is_dataset(X) or _is_lazy(X):
        names = X.collect_schema().names() if _is_lazy(X) else X.schema.names
        read = whole(read, names)
        return _reader(X, read, len(read or names)), None
    if type(X).__name__ == "RecordBatchReader" and hasattr(X, "read_next_batch"):
        from nysketch.cluster import stream

        return stream(X, X.schema), None  # Its batches may not have been checked.
    if is_arrow(X) and callable(X) and not hasattr(X, "__arrow_c_stream__"):
        return lambda: _opened(X(), read, numbers), None
    if is_arrow(X):
        if type(X).__module__.startswith("polars") and (some := whole(read, X.columns)):
            X = X.select(some)  # Unused columns may have types that Arrow does not support.
        return X, None
    return _array(X), None


def _by_rows(X: Any, width: int) -> Any:
    """Rows of objects as an array of doubles, each value read by itself; other input unchanged."""
    if isinstance(X, (list, tuple)):
        try:
            array = np.asarray(X)
        except Exception:  # noqa: BLE001 - rows of several lengths, or objects that raise.
            return _rowwise.matrix(X, width)
        plain = array.ndim == 2 and array.dtype.kind in "biuf" and array.shape[1] == width
        return array if plain else _rowwise.matrix(X, width)
    if isinstance(X, np.ndarray) and X.dtype.kind in "OSU":
        if X.ndim == 2 and X.shape[1] != width:
            _check_shape(X.shape)
            return np.empty((0, X.shape[1]))  # The reader refuses the width.
        return _rowwise.matrix(X, width)
    return X


def matrix(X: Any) -> np.ndarray:
    """Return a small table as doubles."""
    X = _device.on_host(X)
    if is_arrow(X) and not is_pandas(X):
        raise TypeError("expected an array of points, one per row")
    X = X.to_numpy() if is_pandas(X) else X
    return np.ascontiguousarray(_array(X), dtype=np.float64)


def weights(w: Any) -> np.ndarray:
    """Return row weights as doubles."""
    w = np.asarray(_device.on_host(w))
    if w.ndim != 1 or w.dtype.kind not in "biuf":
        raise ValueError(
            "weights must be the name of a column or one number per row, "
            f"got {w.dtype} of shape {w.shape}"
        )
    return w.astype(np.float64)


class Sparse:
    """A sparse matrix, converted to dense rows block by block."""

    def __init__(self, X: Any) -> None:
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead")
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        self._rows = X.tocsr()
        self.shape, self.dtype = X.shape, X.dtype
        ones = _ones_of_each_row(self._rows)
        if ones:
            warnings.warn(
                f"X looks as if it came from a OneHotEncoder: every row has {ones} ones and "
                "nothing else. Pass the data frame with its columns of categories as they are: "
                "then a level is a category, and no rows of zeros are made",
                UserWarning,
                stacklevel=2,
            )
        share = 100 * X.nnz / max(1, X.shape[0] * X.shape[1])
        warnings.warn(
            f"X is sparse; its rows are made dense, some at a time ({share:.2g} % of the "
            f"{X.shape[0]:,} × {X.shape[1]:,} values are stored)",
            UserWarning,
            stacklevel=2,
        )

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows as doubles."""
        return np.ascontiguousarray(self._rows[start:stop].toarray(), dtype=np.float64)


def _ones_of_each_row(X: Any) -> int:
    """Return the number of ones per row if all rows are alike, with few ones, otherwise 0."""
    if X.shape[0] < 2 or X.nnz == 0 or X.nnz % X.shape[0]:
        return 0
    ones = X.nnz // X.shape[0]
    alike = np.all(np.diff(X.indptr) == ones) and np.all(X.data == 1)
    return ones if alike and 2 * ones <= X.shape[1] else 0


def spooled(batches: Iterator[Any]) -> Spooled:
    """Write batches to a temporary file, so that they can be read more than once."""
    stream, named = _stream(batches)
    import pyarrow.ipc

    folder = tempfile.TemporaryDirectory(prefix="nysketch-")
    path = os.path.join(folder.name, "batches.arrow")
    with pyarrow.ipc.new_file(path, stream.schema) as out:
        for batch in stream:
            out.write_batch(batch)
    return Spooled(folder, path, named)


def _stream(
    items: Iterator[Any], read: list[str] | None = None, numbers: list[str] | None = None
) -> tuple[pyarrow.RecordBatchReader, bool]:
    """Return a stream of the rows of all items, and whether their columns have names."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("batches are read with pyarrow: pip install pyarrow") from error
    from nysketch.cluster import stream

    first = next(items, None)
    if first is None and numbers is not None:
        first = _rowwise.empty(numbers, read or [])
    if first is None:
        raise ValueError("X has no batches; a generator that was read before has none left")
    named = is_pandas(first) or is_arrow(first)
    every = itertools.chain([first], items)
    batches = itertools.chain.from_iterable(_batches(item, read, numbers) for item in every)
    batch = next(batches)
    return stream(itertools.chain([batch], batches), batch.schema), named


def _batches(
    item: Any, read: list[str] | None = None, numbers: list[str] | None = None
) -> Iterable[Any]:
    """Return the record batches, at least one, of a batch of any kind."""
    import pyarrow

    refuse(item)
    item = _device.on_host(item)
    if isinstance(item, pyarrow.RecordBatch) and numbers is None:
        return [item]
    if is_pandas(item):
        if numbers is not None:
            item = _rowwise.frame(item, read or numbers, numbers, batch=True)
        item = _of_pandas(item, read if numbers is not None else None)[0]
    if is_arrow(item):
        whole = pyarrow.table(item)
        whole = whole if numbers is None else _of_one_type(whole, read or numbers, numbers)
        return whole.to_batches() or [pyarrow.RecordBatch.from_pylist([], schema=whole.schema)]
    item = item.toarray() if is_sparse(item) else item
    item = item if numbers is None else _by_rows(item, len(numbers))
    array = np.asarray(_array(item), dtype=np.float64)
    columns = [pyarrow.array(np.ascontiguousarray(column)) for column in array.T]
    return [pyarrow.RecordBatch.from_arrays(columns, [f"c{j}" for j in range(len(columns))])]


def _of_one_type(X: Any, read: list[str], numbers: list[str]) -> Any:
    """Return an Arrow table whose numbers are doubles, whatever the values of this batch."""
    import pyarrow

    some = whole(read, X.column_names)
    X = X if some is None else X.select(some)
    for i, field in enumerate(X.schema):
        kind, types = field.type, pyarrow.types
        plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if field.name in numbers and (plain or types.is_null(kind)):
            doubles = X.column(i).cast(pyarrow.float64(), safe=False)
            X = X.set_column(i, pyarrow.field(field.name, pyarrow.float64()), doubles)
        elif field.name not in numbers and types.is_null(kind):
            texts = X.column(i).cast(pyarrow.string())
            X = X.set_column(i, pyarrow.field(field.name, pyarrow.string()), texts)
    return X.replace_schema_metadata(None)


def _opened(X: Any, read: list[str] | None = None, numbers: list[str] | None = None) -> Any:
    """Return the result of a function as an object with the Arrow stream interface."""
    X = _device.on_host(X)
    if is_iterator(X):
        return _stream(X, read, numbers)[0]
    if is_arrow(X) and callable(X) and not hasattr(X, "__arrow_c_stream__"):
        raise TypeError("X is a function that returns a function; return the rows themselves")
    if _is_array(X) or is_sparse(X):
        return _stream(iter([X]), read, numbers)[0]
    if numbers is not None and is_pandas(X):
        return table(X, read, numbers)[0]
    X = table(X, None)[0] if is_pandas(X) or _is_dataset(X) or _is_lazy(X) else X
    return X() if callable(X) and not hasattr(X, "__arrow_c_stream__") else X


def _is_array(X: Any) -> bool:
    """Return whether X is an array: it has a shape and no columns."""
    return (
        hasattr(X, "__array__")
        and isinstance(getattr(X, "shape", None), tuple)
        and not hasattr(X, "columns")
    )


def _is_dataset(X: Any) -> bool:
    """Return whether X is a pyarrow dataset: files that are scanned again at every reading."""
    return hasattr(X, "scanner") and hasattr(X, "schema")


def _is_lazy(X: Any) -> bool:
    """Return whether X is a polars lazy frame: a query that is run again at every reading."""
    return hasattr(X, "collect_batches") and hasattr(X, "collect_schema")


def _reader(X: Any, read: list[str] | None, columns: int) -> Any:
    """Return a function that starts a new stream for every reading."""
    if _is_lazy(X):
        chosen = X if read is None else X.select(read)
        return lambda: chosen.collect_batches(engine="streaming")
    # A scanner buffers dozens of batches, so they are small: about 1 MB of doubles each.
    rows = max(256, min(8192, (1 << 17) // max(columns, 1)))
    ahead: dict[str, Any] = {"batch_size": rows, "batch_readahead": 4, "fragment_readahead": 1}
    if type(getattr(X, "filesystem", None)).__name__ == "LocalFileSystem":
        from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

        if isinstance(X.format, ParquetFileFormat):
            # Reading ahead saves time only for remote files.
            ahead["fragment_scan_options"] = ParquetFragmentScanOptions(pre_buffer=False)
    return lambda: X.scanner(columns=read, **ahead).to_reader()


def whole(read: list[str] | None, names: Iterable[str]) -> list[str] | None:
    """Return the columns that contain everything in ``read``, or None if this is not known.

    A coordinate of a vector, ``emb[3]``, is in the column of the vector. Missing columns and
    patterns are handled by the caller.
    """
    if read is None:
        return None
    names = list(names)
    columns = [c if c in names else re.sub(r"\[\d+\]$", "", c) for c in read]
    return list(dict.fromkeys(columns)) if set(columns) <= set(names) else None


def _of_named(X: Named, read: list[str] | None) -> tuple[Any, list[str] | None]:
    if read is None or read == X.names:
        return _array(X.array), X.names
    missing = [name for name in read if name not in X.names]
    if missing:
        raise ValueError(f"X does not have the column '{missing[0]}'; it has {', '.join(X.names)}")
    return _array(X.array)[:, [X.names.index(name) for name in read]], list(read)


def _of_pandas(X: Any, read: list[str] | None) -> tuple[Any, list[str] | None]:
    X = X.set_axis([str(name) for name in X.columns], axis=1)
    some = whole(read, X.columns)
    X = X if some is None else X[some]
    try:
        import pyarrow
    except ImportError as error:
        odd = [name for name in X.columns if not _is_number(X[name].dtype)]
        if odd:
            raise ImportError(
                f"column '{odd[0]}' holds {X[odd[0]].dtype}; data frames of more than numbers are "
                "read with pyarrow: pip install pyarrow"
            ) from error
        return _of_named(Named(X.to_numpy(np.float64, na_value=np.nan), list(X.columns)), read)
    changed = {name: _texts(X[name]) for name in X.columns if _is_category(X[name].dtype)}
    sparse = [name for name in X.columns if type(X[name].dtype).__name__ == "SparseDtype"]
    changed |= {name: X[name].sparse.to_dense() for name in sparse}
    X = X.assign(**changed) if changed else X
    try:
        # The frame's own Arrow interface would make a column of the index.
        return pyarrow.Table.from_pandas(X, preserve_index=False), None
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise ValueError(f"X cannot be read: {'; '.join(map(str, error.args))}") from error


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _is_category(dtype: Any) -> bool:
    return type(dtype).__name__ == "CategoricalDtype"


def _texts(column: Any) -> Any:
    """Return a categorical pandas column with its categories converted to text."""
    categories = column.cat.categories
    if all(isinstance(level, str) for level in categories):
        return column
    return column.cat.rename_categories([level_text(level) for level in categories])


def level_text(level: Any) -> str:
    """Convert a level to text; whole numbers have no decimal point, whatever their type."""
    if isinstance(level, (bool, np.bool_)):
        return str(level).lower()
    if isinstance(level, (float, np.floating)) and float(level).is_integer():
        return str(int(level))
    return str(level)


def _check_shape(shape: tuple[int, ...]) -> None:
    """Refuse arrays that are not two-dimensional."""
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single column or array.reshape(1, -1) if it "
            "is a single row."
        )
    if shape[1] == 0:
        raise ValueError(f"X has no columns (shape={shape})")


def _array(X: Any) -> np.ndarray:
    X = np.asarray(unmasked(X))
    kind = X.dtype.kind
    if kind == "c":
        raise ValueError("Complex data not supported")
    if kind in "OSU":
        raise ValueError(f"X holds {X.dtype}, not numbers; convert it with X.astype(float)")
    if kind not in "biuf":
        raise TypeError(f"X holds {X.dtype}, not numbers")
    _check_shape(X.shape)
    if kind == "f" and X.dtype.itemsize not in (4, 8):
        # Half precision fits into single precision; extended precision is narrowed to double.
        X = X.astype(np.float32 if X.dtype.itemsize < 4 else np.float64)
    if not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    return X
