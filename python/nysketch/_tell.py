"""Functions that describe and compare plans and sketches, with the names of the commands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, overload

from nysketch._core import (
    Model,
    Plan,
    Sketch,
    _attribute,
    _diff,
    _inspect,
    _read,
    _report,
    _unusual,
    _watch,
)
from nysketch.results import Attribution, Drift, DriftSeries, Inspection, Unusual, Watched

__all__ = ["Baseline", "attribute", "baseline", "diff", "inspect", "read", "report"]

_Path = str | os.PathLike[str]


def read(path: _Path) -> Plan | Sketch | Model:
    """Read a plan, a sketch or a model from a file.

    Parameters
    ----------
    path : str or os.PathLike
        A file written by ``save`` or by the command line.

    Returns
    -------
    Plan, Sketch or Model
    """
    return _read(path)


def inspect(
    what: Plan | Sketch | _Path,
    model: Model | _Path | None = None,
    *,
    theory: bool = False,
    k: int | None = None,
    lambda_: float | None = None,
    delta: float | None = None,
    known_variance: float | None = None,
    secants: int | None = None,
) -> Inspection:
    """Describe the contents and the quality of a plan or a sketch.

    Parameters
    ----------
    what : Plan, Sketch or path
        The plan or sketch to describe.
    model : Model or path, optional
        A mixture, to test whether it explains the sketch.
    theory : bool, default=False
        Whether to compute the quantities of the paper's theorems.
    k : int, optional
        Number of clusters of the models in the theorems; 10 by default.
    lambda_ : float, optional
        λ of the theorems; by default the largest for which C = 2 C_F.
    delta : float, optional
        Probability with which the theorems may fail; 0.1 by default.
    known_variance : float, optional
        Variance of the clusters, for mixtures instead of k-means.
    secants : int, optional
        Number of pairs of models to sample; 300 by default.

    Returns
    -------
    nysketch.results.Inspection

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sketch = nysketch.Plan.from_data(X, landmarks=50).sketch(X)
    >>> found = nysketch.inspect(sketch)
    >>> found.rows, found.landmarks, len(found.rank)
    (1000, 50, 3)
    >>> nysketch.inspect(sketch, theory=True, k=2).theory.enough
    16
    """
    more: dict[str, Any] = {}
    if isinstance(what, (str, os.PathLike)):
        more["file"] = os.fspath(what)
        what = _plan_or_sketch(what)
    options = {
        "k": k,
        "lambda_": lambda_,
        "delta": delta,
        "known_variance": known_variance,
        "secants": secants,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if given and not theory:
        raise ValueError(f"{next(iter(given))} goes with theory=True")
    defaults = {"k": 10, "lambda_": None, "delta": 0.1, "known_variance": 0.0, "secants": 300}
    text = _inspect(what, _model(model), {**defaults, **given} if theory else None)
    return Inspection._from_json(text, bytes=len(what.to_bytes()), **more)


@overload
def diff(  # type: ignore[overload-overlap]
    a: Sketch | _Path,
    b: Sketch | _Path,
    *,
    draws: int = ...,
    seed: int = ...,
    level: float = ...,
    tolerance: float | None = ...,
    part_of: bool = ...,
    top: int | None = ...,
) -> Drift: ...
@overload
def diff(
    a: Sketch | _Path,
    b: Iterable[Sketch | _Path] | Mapping[str, Sketch | _Path],
    *,
    draws: int = ...,
    seed: int = ...,
    level: float = ...,
    tolerance: float | None = ...,
    part_of: bool = ...,
    top: int | None = ...,
) -> DriftSeries: ...
def diff(
    a: Any,
    b: Any,
    *,
    draws: int = 999,
    seed: int = 0,
    level: float = 0.05,
    tolerance: float | None = None,
    part_of: bool = False,
    top: int | None = None,
) -> Drift | DriftSeries:
    """Compare two sketches of one plan, or many sketches with one, to detect drift.

    Rows must be independent, and no row may be in both sketches. If rows come in clusters, such as
    the rows of a user, or have weights, make the sketches with ``folds``: the test then accounts
    for the dependence.

    Parameters
    ----------
    a : Sketch or path
        The baseline.
    b : Sketch or path, or several of them
        The sketch or sketches to compare with it. A list, or a dictionary such as
        ``Plan.sketch_groups`` returns, gives a series.
    draws : int, default=999
        Draws from the null distribution; the smallest p-value is 1/(draws + 1).
    seed : int, default=0
        Seed of the draws.
    level : float, default=0.05
        p-values up to this count as drift: the rate of false alarms. With several sketches, this is
        the limit of the false-discovery rate.
    tolerance : float, optional
        Tolerated share of rows that moved; ``verdict`` is the comparison with it.
    part_of : bool, default=False
        Whether the rows of `b` are among those of `a`. If so, they are subtracted first.
    top : int, optional
        Number of cells and landmarks to return, the most changed first; all by default.

    Returns
    -------
    nysketch.results.Drift or nysketch.results.DriftSeries

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> plan = nysketch.Plan.from_data(X, landmarks=50)
    >>> monday, tuesday = plan.sketch(X[:1500]), plan.sketch(X[1500:])
    >>> nysketch.diff(monday, tuesday).drift
    False
    >>> moved = nysketch.diff(monday, plan.sketch(X[1500:] + [0, 0.5]))
    >>> moved.drift, moved.p_value, moved.columns[0].column
    (True, 0.001, 'c1')
    >>> 0.1 < moved.moved.low < moved.moved.share < 0.3
    True
    >>> [day.drift for day in nysketch.diff(monday, [tuesday]).sketches]
    [False]
    """
    many = not isinstance(b, (Sketch, str, os.PathLike))
    if isinstance(b, Mapping):
        named = [(name, _sketch(item)) for name, item in b.items()]
    else:
        named = [(_file(item), _sketch(item)) for item in (b if many else [b])]
    baseline = _sketch(a)
    if part_of:
        if many:
            raise ValueError("part_of=True compares one sketch with the rest")
        baseline = baseline - named[0][1]
    options = _options(draws, seed, level, tolerance)
    found = _diff(baseline, [item for _, item in named], options, many, top)
    drifts = [
        Drift._from_json(text, file=name) for (name, _), text in zip(named, found, strict=True)
    ]
    if many:
        return DriftSeries(
            {"baseline": _file(a), "rows": baseline.rows, "level": level, "sketches": drifts}
        )
    return Drift({**drifts[0], "baseline": _file(a), "part_of": part_of})


def baseline(
    days: Iterable[Sketch | _Path] | Mapping[str, Sketch | _Path], *, level: float = 0.05
) -> Baseline:
    """Collect days as a baseline: is another day unusual?

    Parameters
    ----------
    days : list of Sketch or path, or dictionary of them
        Sketches of one plan in order, with names in a dictionary.
    level : float, default=0.05
        Days with p-values up to this are unusual.

    Returns
    -------
    Baseline

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> rng = np.random.default_rng(0)
    >>> plan = nysketch.Plan.from_data(rng.normal(size=(3000, 2)), landmarks=50)
    >>> def day(shift):
    ...     return plan.sketch(rng.normal(size=(500, 2)) + shift)
    >>> days = nysketch.baseline([day(0.1 * np.sin(i)) for i in range(30)])
    >>> days.compare(day(0.05)).unusual, days.compare(day(1.0)).unusual
    (False, True)
    >>> days.watch().alarm is None
    True
    """
    return Baseline(days, level=level)


class Baseline:
    """Days with which other days are compared; made by :func:`nysketch.baseline`.

    Parameters
    ----------
    days : list of Sketch or path, or dictionary of them
        Sketches of one plan in order, with names in a dictionary.
    level : float, default=0.05
        Days with p-values up to this are unusual.
    """

    def __init__(self, days: Any, *, level: float = 0.05) -> None:
        if isinstance(days, Mapping):
            named = [(str(name), day) for name, day in days.items()]
        else:
            named = [(_stem(day) or f"day {i}", day) for i, day in enumerate(days, 1)]
        self.days = [(name, _sketch(day)) for name, day in named]
        self.level = level

    def __len__(self) -> int:
        return len(self.days)

    def __repr__(self) -> str:
        return f"Baseline({len(self)} days, level={self.level})"

    def compare(self, today: Sketch | _Path, name: str | None = None) -> Unusual:
        """Compare a day with the days of the baseline.

        Parameters
        ----------
        today : Sketch or path
            A day that is not part of the baseline.
        name : str, optional
            Name of the day; by default the name of its file, or "today".

        Returns
        -------
        nysketch.results.Unusual
        """
        called = name or _stem(today) or "today"
        return Unusual._from_json(_unusual(self.days, _sketch(today), called, self.level))

    def watch(self, groups: Iterable[int] | None = None, *, seed: int = 0) -> Watched:
        """Monitor the days in order. It may be called any number of times.

        Exchangeable days raise a false alarm with a probability of at most ``level``.

        Parameters
        ----------
        groups : list of int, optional
            A group for each day, such as its weekday. Days are compared within their group.
        seed : int, default=0
            Seed of the order of days that are equal.

        Returns
        -------
        nysketch.results.Watched
        """
        chosen = None if groups is None else list(groups)
        return Watched._from_json(_watch(self.days, chosen, self.level, seed))


def attribute(
    before: Mapping[str, Sketch | _Path],
    after: Mapping[str, Sketch | _Path],
    *,
    most: int = 10,
    draws: int = 999,
    seed: int = 0,
    level: float = 0.05,
) -> Attribution:
    """Find the segments that explain a change, that is, without which no drift remains.

    Parameters
    ----------
    before, after : dictionary of Sketch or path
        One sketch per segment, such as ``Plan.sketch_groups`` returns.
    most : int, default=10
        Maximum number of segments to remove.
    draws, seed, level
        As for :func:`diff`.

    Returns
    -------
    nysketch.results.Attribution

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> rng = np.random.default_rng(0)
    >>> plan = nysketch.Plan.from_data(rng.normal(size=(3000, 2)), landmarks=50)
    >>> def day(shift=0.0):
    ...     return plan.sketch(rng.normal(size=(1000, 2)) + shift)
    >>> before = {"AT": day(), "DE": day(), "FR": day()}
    >>> found = nysketch.attribute(before, {"AT": day(), "DE": day(0.7), "FR": day()})
    >>> found.explained, [removed.segment for removed in found.removed]
    (True, ['DE'])
    """
    a = {name: _sketch(item) for name, item in before.items()}
    b = {name: _sketch(item) for name, item in after.items()}
    if not a or not b:
        raise ValueError("segments before and after are needed, got none")
    plan = next(iter(a.values())).plan
    empty = plan.empty()
    names = list(dict.fromkeys([*a, *b]))
    segments = [(str(name), a.get(name, empty), b.get(name, empty)) for name in names]
    return Attribution._from_json(_attribute(segments, most, _options(draws, seed, level, None)))


def _options(draws: int, seed: int, level: float, tolerance: float | None) -> dict[str, Any]:
    return {"draws": draws, "seed": seed, "level": level, "tolerance": tolerance}


def report(
    sketch: Sketch | _Path | Iterable[Sketch | _Path] | Mapping[Any, Sketch],
    model: Model | _Path | Iterable[Model | _Path] | None = None,
    baseline: Sketch | _Path | None = None,
    path: _Path | None = None,
    *,
    name: str | None = None,
    most_clusters: int = 12,
    seed: int = 0,
) -> str:
    """Make a page about a sketch that opens in any browser.

    The page is one HTML file without external links. It contains a summary in words, the curve over
    k with a slider over its models, a map of the cells, clusters with their sizes and profiles, and
    the drift from another sketch.

    Parameters
    ----------
    sketch : Sketch or path, or several of them
        The sketch to report on. From a list, or a dictionary with names, the page describes the
        last sketch and shows how each of them, in order, differs from the baseline.
    model : Model or path, or several of them, optional
        k-means, k-medians or mixture models to show, the first one first. By default the models of
        the curve over k.
    baseline : Sketch or path, optional
        A sketch to compare with.
    path : str or os.PathLike, optional
        The file to write.
    name : str, optional
        Title of the page; by default the name of the sketch's file.
    most_clusters : int, default=12
        Largest k of the curve.
    seed : int, default=0
        Seed of all random choices.

    Returns
    -------
    str
        The HTML.

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sketch = nysketch.Plan.from_data(X, landmarks=50).sketch(X)
    >>> nysketch.report(sketch, name="normal rows")[:15]
    '<!doctype html>'
    """
    one: Any = sketch
    series: list[tuple[Sketch, str]] = []
    if not isinstance(sketch, (Sketch, str, os.PathLike)):
        named = list(sketch.items()) if isinstance(sketch, Mapping) else list(enumerate(sketch, 1))
        if not named:
            raise ValueError("a report needs a sketch, got none")
        series = [(_sketch(item), _stem(item) or str(key)) for key, item in named]
        one = named[-1][1]
    several = model is not None and not isinstance(model, (Model, str, os.PathLike))
    models: Any = model if several else [] if model is None else [model]
    return _report(
        _sketch(one),
        name if name is not None else _file(one) or (series[-1][1] if series else "sketch"),
        [_model(item) for item in models],
        None if baseline is None else _sketch(baseline),
        _file(baseline) or "baseline",
        series if len(series) > 1 else [],
        most_clusters,
        seed,
        path,
    )


def _stem(what: Any) -> str | None:
    file = _file(what)
    return None if file is None else os.path.splitext(os.path.basename(file))[0]


def _file(what: Any) -> str | None:
    return os.fspath(what) if isinstance(what, (str, os.PathLike)) else None


def _sketch(what: Any) -> Sketch:
    if isinstance(what, (str, os.PathLike)):
        return Sketch.load(what)
    if not isinstance(what, Sketch):
        raise TypeError(f"expected a Sketch or the path of one, got {type(what).__name__}")
    return what


def _plan_or_sketch(path: _Path) -> Plan | Sketch:
    what = read(path)
    if isinstance(what, Model):
        raise ValueError(f"{os.fspath(path)} is a model; plans and sketches are inspected")
    return what


def _model(what: Any) -> Any:
    return Model.load(what) if isinstance(what, (str, os.PathLike)) else what
