"""What :func:`nysketch.inspect`, :func:`nysketch.diff` and methods of sketches return.

Names are those of the command's ``--json``.
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

# Entries of a sequence that a short text shows.
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
        """Its main table as a pandas data frame.

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
        The same in words.
    residuals : tuple of Result
        ``bandwidth``, ``residual``, noise ``floor`` and ``missed`` of every bandwidth.
    """

    __slots__ = ()


class Intervals(Result):
    """How sure the numbers of a model are; ``Model.intervals``.

    Attributes
    ----------
    confidence : float
        How often an interval is meant to hold what it is about.
    folds : int
        Folds that were left out in turn.
    by : str or None
        The column that rows were dealt to folds by; their own values where None.
    risk : tuple of float
        Lower and upper end for the risk; missing where the sketch does not tell it.
    stability : tuple of float
        For each cluster or component the mean Jaccard similarity to the one it is found again as.
    weights : tuple
        Lower and upper end for the share of each, or None where it is unstable.
    centres : tuple
        Lower and upper end for each column of each centre or mean, or None where it is unstable.
    explained_variance, explained_variance_ratio : tuple
        Lower and upper end for each principal component.
    """

    __slots__ = ()


class CrossValidation(Result):
    """What models of several k cost on rows held out; returned by ``Sketch.cross_validate``.

    Attributes
    ----------
    folds : int
        Folds that were held out in turn.
    by : str or None
        The column that rows were dealt to folds by; their own values where None.
    points : tuple of Result
        ``k``, ``risk`` and its standard ``error``.
    best : int
        The index of the least risk.
    within_error : int
        The index of the least k whose risk is within one standard error of the least.
    """

    __slots__ = ()


class Theory(Result):
    """What the paper's theorems say about a data set; returned by ``Sketch.theory``.

    Attributes
    ----------
    bandwidth, delta, k, known_variance, secants, rows, landmarks
        What was asked about: σ², probability of failure, clusters of the models and their variance,
        pairs of models that were sampled, rows and landmarks of the sketch.
    lambda : float
        λ that all is computed for, as ``theory['lambda']``.
    basis, sampled
        What Σ is estimated from, 'rows', 'witnesses' or 'landmarks', and how many of them.
    t, condition, least_condition, seen_condition, holds, constant
        t with λ = λ_t (13); 3λt, also as λ falls to 0 and at rows that Σ has seen; whether (19)
        holds, None where that cannot be decided, and C/C_F where it does.
    norm, effective_dimension, half_dimension, largest_leverage, seen_leverage
        ‖Σ‖; N(λ), too small on average, also from half of the rows; N∞(λ) over other rows than
        those of Σ, too large on average, and over those, too small.
    uniform, leverage : float
        Landmarks that (20) and (21) ask for.
    least_rows, least_lambda : float
        Rows and λ that (21) asks for.
    source : Result or None
        ``s``, ``gamma``, ``t``, ``lambda`` and ``m`` of proposition 4.1.
    distortion : tuple of float
        Largest and median ‖A(μ)‖/‖A_m(μ)‖ over the pairs.
    risk : Result or None
        For k-means, the last term of (18): ``constant`` (C_F, a lower bound), ``noise``
        (‖A(π − π_n)‖), ``bound``, and the ``excess`` risk of CL-OMPR, where rows can tell it.
    enough : int
        Landmarks that are enough in our experiments, 2k(d + 1).
    """

    __slots__ = ()


class Inspection(Result):
    """What a plan or a sketch holds; returned by :func:`nysketch.inspect`.

    Attributes
    ----------
    kind : {'plan', 'sketch'}
    rows, skipped : int
        Rows of a sketch, weights counted, and rows that were left out as invalid.
    columns, features, kernel, landmarks, sampling, frequencies, bandwidths, collect, seed, scale
        What is measured, as in :class:`nysketch.Plan`; ``landmarks`` and ``frequencies`` are
        numbers.
    witnesses : int
        Witness rows in the file.
    witnesses_digest : str
        SHA-256 of the witness rows of the plan, here or elsewhere, where it keeps some.
    weights : Result or None
        ``column`` and ``unit`` of the row weights.
    rank, condition : tuple
        Of the kernel matrix of the landmarks, at every bandwidth.
    missed : tuple of float
        Upper bounds on how much of the data the landmarks miss.
    lambda, effective_dimension, largest_leverage, noise_floor
        λ = 1/√n, and N(λ), N∞(λ) and the noise of the sketch at every bandwidth.
    single_row_cells, empty_cells : int
        Cells whose rows are all the same one, whose values are in the file, and cells without rows.
    raw_rows : int
        Rows of the data whose values are in the file, at most.
    fingerprint : str
        SHA-256 of the plan's file, but for its witness rows.
    bytes : int
        Size of the file.
    file : str
        Its name, where one was given.
    model : Explanation
        Where a model was given.
    theory : Theory
        Where it was asked for.
    """

    __slots__ = ()
    _classes: ClassVar[dict[str, type[Result]]] = {"model": Explanation, "theory": Theory}


class Drift(Result):
    """How a sketch B differs from a sketch A; returned by :func:`nysketch.diff`.

    ``to_frame`` gives its columns.

    Attributes
    ----------
    file : str or None
        The file or name of B.
    baseline : str or None
        The file of A.
    rows : tuple of int
        Rows of A and of B.
    moved : Result or None
        ``share`` of the rows that would have to move to another cell, with the interval from
        ``low`` to ``high``.
    tolerance : float
        Where it was given.
    verdict : {'same', 'changed', 'cannot_tell'} or None
        Whether more than ``tolerance`` moved.
    p_value : float or None
        Of the test that both come from one distribution; None where it cannot be made.
    q_value : float
        Of several sketches, the false-discovery rate at which this one is called changed.
    drift : bool or None
        Whether the p-value, or the q-value where there is one, is at most ``level``.
    level : float
    test_by : {'rows', 'folds'}
        What p-value and intervals rest on; folds allow for rows that come in clusters or have
        weights.
    least_p_value : float
        The least that the test can show.
    no_test : str or None
        Why there is no p-value.
    note : str
        What else is to be said about the test.
    discrepancies : tuple of Result
        ``bandwidth``, ``mmd`` and the ``noise`` to expect, for every bandwidth.
    columns : tuple of Result
        ``column``, ``means`` and ``deviations`` in A and B, ``z``, ``effect`` (the change in
        ``deviations``, from ``low`` to ``high``) and ``q_value``; the most changed first.
    categories, missing : tuple of Result
        Shares of levels and of missing values, with ``q_value``; where there are some.
    cells : tuple of Result
        ``landmark``, ``shares`` of the rows of A and B, ``z`` and ``mean``; the most changed first.
    landmarks : tuple of Result
        ``landmark``, ``change`` of the mean kernel value and ``place``; the most changed first.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "columns"


class DriftSeries(Result):
    """How many sketches differ from one; returned by :func:`nysketch.diff`.

    ``to_frame`` gives one row per sketch.

    Attributes
    ----------
    baseline : str or None
        The file of the baseline.
    rows : int
        Its rows.
    level : float
        False-discovery rates up to this are called drift.
    sketches : tuple of Drift
        In the order in which they were given.
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
    """How unusual a day is among others; returned by ``Baseline.compare``.

    ``to_frame`` gives one row per day, today being the last.

    Attributes
    ----------
    days : int
        Days that it is compared with.
    rows : int
        Its rows.
    p_value, least_p_value : float
        The share of days that are as unusual, itself counted; and the least that so many can show.
    unusual : bool
        Whether the p-value is at most ``level``.
    level : float
    moved : float or None
        Share of its rows that would have to move to make it like the other days.
    others_moved : tuple of float or None
        The same for the middle one of these days, and the most.
    reasons : tuple of Result
        ``what``, its ``value``, the ``median`` of the other days, their ``deviation``, and how many
        ``deviations`` it is away; the most unusual first.
    each : tuple of Result
        ``name``, ``rows``, ``moved`` and ``score`` of every day.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "each"


class Watched(Result):
    """Days in their order; returned by ``Baseline.watch``.

    ``to_frame`` gives one row per day.

    Attributes
    ----------
    level : float
        The probability of ever raising an alarm where days are exchangeable.
    days : tuple of Result
        ``name``, ``rows``, ``moved``, ``p_value`` and ``evidence`` of every day.
    alarm, began : str or None
        The day of the alarm, and the one on which the change most likely began.
    autocorrelation, autocorrelation_p_value : float or None
        Whether neighbouring days are alike; exchangeable days are not.
    """

    __slots__ = ()
    _table: ClassVar[str | None] = "days"


class Attribution(Result):
    """Which segments explain a change; returned by :func:`nysketch.attribute`.

    ``to_frame`` gives one row per segment that was taken out.

    Attributes
    ----------
    whole : Drift
        All rows.
    removed : tuple of Result
        ``segment``, its ``shares`` of the rows before and after, and of the rows that are left
        without it and those before, how much ``moved`` and the ``p_value``.
    explained : bool or None
        Whether no drift is left without them; None where there was none, or too few rows are left.
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
