"""Results of :func:`nysketch.inspect`, :func:`nysketch.diff` and methods of sketches.

The names are those of the command's ``--json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from nysketch import _html

__all__ = [
    "Attribution",
    "CrossValidation",
    "Drift",
    "DriftSeries",
    "Explanation",
    "Inspection",
    "Intervals",
    "Result",
    "Theory",
    "Unusual",
    "Watched",
]

# Maximum number of entries of a sequence in a short text.
_SHOWN = 4


class Result(Mapping[str, Any]):
    """A read-only mapping whose entries are also attributes.

    Parameters
    ----------
    entries : mapping
        The entries. Mappings in it become results, lists become tuples.

    Examples
    --------
    >>> from nysketch.results import Result
    >>> found = Result({"rows": 3, "columns": [{"column": "a", "z": 0.5}]})
    >>> found.rows, found["rows"], found.columns[0].z
    (3, 3, 0.5)
    >>> found
    Result(rows=3, columns=(Result(column='a', z=0.5),))
    >>> found.to_dict()
    {'rows': 3, 'columns': [{'column': 'a', 'z': 0.5}]}
    """

    __slots__ = ("_entries",)
    _entries: dict[str, Any]
    _classes: ClassVar[dict[str, type[Result]]] = {}
    # The entry that to_frame returns.
    _table: ClassVar[str | None] = None

    def __init__(self, entries: Mapping[str, Any]) -> None:
        held = {name: self._held(name, value) for name, value in entries.items()}
        object.__setattr__(self, "_entries", held)

    @classmethod
    def _from_json(cls, text: str, **more: Any) -> Any:
        return cls({**json.loads(text), **more})

    def _held(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._classes.get(name, Result)(value)
        if isinstance(value, (list, tuple)):
            return tuple(self._held(name, item) for item in value)
        return value

    def to_dict(self) -> dict[str, Any]:
        """The entries as plain dictionaries and lists.

        Returns
        -------
        dict
        """
        return {name: _plain(value) for name, value in self._entries.items()}

    def to_frame(self) -> Any:
        """The main table as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
        """
        if self._table is None:
            raise TypeError(f"a {type(self).__name__} has no table")
        return _frame([row.to_dict() for row in self._entries[self._table]])

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._entries:
            return self._entries[name]
        raise AttributeError(f"this {type(self).__name__} has no '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._entries]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_dict(),)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._entries.items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        return _html.result(self)


class Explanation(Result):
    """Whether a mixture explains a sketch; returned by ``Sketch.explain``.

    Attributes
    ----------
    explained : bool
        Whether every residual is near the noise of the sketch.
    verdict : str
        ``explained`` in words.
    residuals : tuple of Result
        ``bandwidth``, ``residual``, noise ``floor`` and ``missed`` of every bandwidth.
    """

    __slots__ = ()


class Intervals(Result):
    """Confidence intervals for the numbers of a model; ``Model.intervals``.

    Attributes
    ----------
    confidence : float
        Confidence level of the intervals.
    folds : int
        Number of folds, each of which was left out in turn.
    by : str or None
        The column that assigned rows to folds, or None if all values of a row did.
    risk : tuple of float
        Lower and upper end for the risk; missing if the sketch does not contain the necessary sums.
    stability : tuple of float
        For each cluster or component the mean Jaccard similarity to its match without a fold.
    weights : tuple
        Lower and upper end for the share of each, or None if it is unstable.
    centres : tuple
        Lower and upper end for each column of each centre or mean, or None if it is unstable.
    explained_variance, explained_variance_ratio : tuple
        Lower and upper end for each principal component.
    """

    __slots__ = ()


class CrossValidation(Result):
    """Held-out risk for several k; returned by ``Sketch.cross_validate``.

    Attributes
    ----------
    folds : int
        Number of folds, each of which was held out in turn.
    by : str or None
        The column that assigned rows to folds, or None if all values of a row did.
    points : tuple of Result
        ``k``, ``risk`` and its standard ``error``.
    best : int
        The index of the smallest risk.
    within_error : int
        The index of the smallest k whose risk is within one standard error of the smallest risk.
    """

    __slots__ = ()


class Theory(Result):
    """Quantities of the paper's theorems for a data set; returned by ``Sketch.theory``.

    Attributes
    ----------
    bandwidth, delta, k, known_variance, secants, rows, landmarks
        The settings: σ², probability of failure, number of clusters of the models and their
        variance, pairs of models that were sampled, rows and landmarks of the sketch.
    lambda : float
        The λ of all quantities; access it as ``theory['lambda']``.
    basis, sampled
        The basis of the estimate of Σ: 'rows', 'witnesses' or 'landmarks', and how many of them.
    t, condition, least_condition, seen_condition, holds, constant
        t with λ = λ_t (13); 3λt, also in the limit λ → 0 and at rows used for Σ; whether (19)
        holds, None if that cannot be decided, and C/C_F if it does.
    norm, effective_dimension, half_dimension, largest_leverage, seen_leverage
        ‖Σ‖; N(λ), too small on average, also from half of the rows; N∞(λ) over rows not used for Σ,
        too large on average, and over rows used for Σ, too small.
    uniform, leverage : float
        Number of landmarks that (20) and (21) require.
    least_rows, least_lambda : float
        Rows and λ that (21) requires.
    source : Result or None
        ``s``, ``gamma``, ``t``, ``lambda`` and ``m`` of proposition 4.1.
    distortion : tuple of float
        Largest and median ‖A(μ)‖/‖A_m(μ)‖ over the pairs.
    risk : Result or None
        For k-means, the last term of (18): ``constant`` (C_F, a lower bound), ``noise`` (‖A(π −
        π_n)‖), ``bound``, and the ``excess`` risk of CL-OMPR, if it can be computed from rows.
    enough : int
        Number of landmarks that was sufficient in our experiments, 2k(d + 1).
    """

    __slots__ = ()


class Inspection(Result):
    """Contents of a plan or a sketch; returned by :func:`nysketch.inspect`.

    Attributes
    ----------
    kind : {'plan', 'sketch'}
    rows, skipped : int
        Number of rows of a sketch, including their weights, and of rows left out as invalid.
    columns, features, kernel, landmarks, sampling, frequencies, bandwidths, collect, seed, scale
        The measurement, as in :class:`nysketch.Plan`; ``landmarks`` and ``frequencies`` are
        numbers.
    witnesses : int
        Number of retained rows in the file.
    witnesses_digest : str
        SHA-256 of the retained rows of the plan, in this file or elsewhere, if it has some.
    weights : Result or None
        ``column`` and ``unit`` of the row weights.
    rank, condition : tuple
        Rank and condition number of the kernel matrix of the landmarks, at every bandwidth.
    missed : tuple of float
        Upper bounds on the share of the data that the landmarks do not represent.
    lambda, effective_dimension, largest_leverage, noise_floor
        λ = 1/√n, and N(λ), N∞(λ) and the noise of the sketch at every bandwidth.
    single_row_cells, empty_cells : int
        Number of cells whose rows are all equal, so that the file contains their values, and of
        cells without rows.
    raw_rows : int
        Maximum number of rows of the data whose values are in the file.
    fingerprint : str
        SHA-256 of the plan's file without its retained rows.
    bytes : int
        Size of the file.
    file : str
        Its name, if one was given.
    model : Explanation
        The test of the model, if one was given.
    theory : Theory
        The quantities of the theorems, if they were requested.
    """

    __slots__ = ()
    _classes: ClassVar[dict[str, type[Result]]] = {"model": Explanation, "theory": Theory}


class Drift(Result):
    """Differences between a sketch B and a sketch A; returned by :func:`nysketch.diff`.

    ``to_frame`` gives its columns.

    Attributes
    ----------
    file : str or None
        The file or name of B.
    baseline : str or None
        The file of A.
    rows : tuple of int
        Numbers of rows of A and of B.
    moved : Result or None
        ``share`` of the rows that would have to move to another cell, with its interval from
        ``low`` to ``high``.
    tolerance : float
        The tolerance, if one was given.
    verdict : {'same', 'changed', 'cannot_tell'} or None
        Whether the share of rows that moved exceeds ``tolerance``.
    p_value : float or None
        p-value of the test that both come from one distribution; None if no test is possible.
    q_value : float
        With several sketches, the false-discovery rate at which this one counts as changed.
    drift : bool or None
        Whether the p-value, or the q-value if there is one, is at most ``level``.
    level : float
    test_by : {'rows', 'folds'}
        The units of the test and of the intervals. Folds account for rows that come in clusters or
        have weights.
    least_p_value : float
        The smallest p-value that the test can show.
    no_test : str or None
        The reason why there is no p-value.
    note : str
        A note about the test.
    discrepancies : tuple of Result
        ``bandwidth``, ``mmd`` and the expected ``noise``, for every bandwidth.
    columns : tuple of Result
        ``column``, ``means`` and ``deviations`` in A and B, ``z``, ``effect`` (the change in
        ``deviations``, from ``low`` to ``high``) and ``q_value``; the most changed first.
    categories, missing : tuple of Result
        Shares of levels and of missing values, with ``q_value``, if there are some.
    cells : tuple of Result
        ``landmark``, ``shares`` of the rows of A and B, ``z`` and ``mean``; the most changed first.
    landmarks : tuple of Result
        ``landmark``, ``change`` of the mean kernel value and ``place``; the most changed first.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "columns"


class DriftSeries(Result):
    """Differences between several sketches and one; returned by :func:`nysketch.diff`.

    ``to_frame`` gives one row per sketch.

    Attributes
    ----------
    baseline : str or None
        The file of the baseline.
    rows : int
        Its number of rows.
    level : float
        False-discovery rates up to this count as drift.
    sketches : tuple of Drift
        The comparisons, in the order of the arguments.
    """

    __slots__ = ()
    _classes: ClassVar[dict[str, type[Result]]] = {"sketches": Drift}

    def to_frame(self) -> Any:
        """One row per sketch, without its columns, cells and landmarks.

        Returns
        -------
        pandas.DataFrame
        """
        lists = ("discrepancies", "columns", "categories", "missing", "cells", "landmarks")
        rows = [drift.to_dict() for drift in self.sketches]
        return _frame([{k: v for k, v in row.items() if k not in lists} for row in rows])


class Unusual(Result):
    """The comparison of a day with other days; returned by ``Baseline.compare``.

    ``to_frame`` gives one row per day; the last one is the day that was compared.

    Attributes
    ----------
    days : int
        Number of days with which it is compared.
    rows : int
        Its number of rows.
    p_value, least_p_value : float
        The share of days that are at least as unusual, including the day itself; and the smallest
        p-value that this number of days can show.
    unusual : bool
        Whether the p-value is at most ``level``.
    level : float
    moved : float or None
        Share of its rows that would have to move to make it like the other days.
    others_moved : tuple of float or None
        The same share for the other days: the median and the maximum.
    reasons : tuple of Result
        ``what``, its ``value``, the ``median`` of the other days, their ``deviation``, and its
        distance in ``deviations``; the most unusual first.
    each : tuple of Result
        ``name``, ``rows``, ``moved`` and ``score`` of every day.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "each"


class Watched(Result):
    """Days monitored in order; returned by ``Baseline.watch``.

    ``to_frame`` gives one row per day.

    Attributes
    ----------
    level : float
        The probability of ever raising an alarm if days are exchangeable.
    days : tuple of Result
        ``name``, ``rows``, ``moved``, ``p_value`` and ``evidence`` of every day.
    alarm, began : str or None
        The day of the alarm, and the most likely first day of the change.
    autocorrelation, autocorrelation_p_value : float or None
        Similarity of neighbouring days; exchangeable days show none.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "days"


class Attribution(Result):
    """Segments that explain a change; returned by :func:`nysketch.attribute`.

    ``to_frame`` gives one row per segment that was removed.

    Attributes
    ----------
    whole : Drift
        The comparison of all rows.
    removed : tuple of Result
        ``segment``, its ``shares`` of the rows before and after, and how much ``moved`` and the
        ``p_value`` of the rows that remain without it and the segments before it.
    explained : bool or None
        Whether no drift remains without them; None if there was no drift, or too few rows remain.
    """

    __slots__ = ()
    _classes: ClassVar[dict[str, type[Result]]] = {"whole": Drift}
    _table: ClassVar[str | None] = "removed"


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("data frames need pandas: pip install pandas") from error
    return pd.json_normalize(rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        more = ", ..." if len(value) > _SHOWN else "," if len(value) == 1 else ""
        return f"({', '.join(_short(item) for item in value[:_SHOWN])}{more})"
    return repr(value)
