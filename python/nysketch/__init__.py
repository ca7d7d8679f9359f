"""Compress a table of any size into one small sketch, and learn from the sketch alone.

Two ways in:

* estimators of scikit-learn's kind: :class:`CompressiveKMeans`, :class:`CompressiveKMedians`,
  :class:`CompressiveGaussianMixture`, :class:`NystromSketcher`;
* the pieces themselves: :class:`Plan` (what to measure), :class:`Sketch` (exact sums that add up),
  :class:`Model` (what was learned), :class:`Release` (sums with noise, by :func:`private_plan`),
  and what is told of them: :func:`inspect`, :func:`diff`,
  :func:`baseline`, :func:`attribute`, :func:`report`.

Rows are arrays, data frames, Arrow streams, or files: a path or pattern is enough, and
:class:`Files` says how to read them.

>>> import numpy as np, nysketch
>>> X = np.random.default_rng(0).normal(size=(1000, 3))
>>> nysketch.CompressiveKMeans(n_clusters=4, random_state=0).fit(X).cluster_centers_.shape
(4, 3)
"""

import atexit
from typing import TYPE_CHECKING

from nysketch._core import (
    KCurve,
    Model,
    Plan,
    Release,
    Sketch,
    _join_left_work,
    private_plan,
    set_max_work,
)
from nysketch._core import __version__ as __version__
from nysketch._input import Files
from nysketch._tell import Baseline, attribute, baseline, diff, inspect, read, report

if TYPE_CHECKING:
    from nysketch.estimators import (
        CompressiveGaussianMixture,
        CompressiveKMeans,
        CompressiveKMedians,
        NystromSketcher,
    )
    from nysketch.plot import plot_clusters, plot_days, plot_explained_variance, plot_k_curve

__all__ = [
    "Baseline",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "CompressiveKMedians",
    "Files",
    "KCurve",
    "Model",
    "NystromSketcher",
    "Plan",
    "Release",
    "Sketch",
    "attribute",
    "baseline",
    "diff",
    "inspect",
    "plot_clusters",
    "plot_days",
    "plot_explained_variance",
    "plot_k_curve",
    "private_plan",
    "read",
    "report",
    "set_max_work",
]

# Work that Ctrl-C has left behind may still want the interpreter.
atexit.register(_join_left_work)

_PLOTS = ("plot_clusters", "plot_days", "plot_explained_variance", "plot_k_curve")


def __getattr__(name: str) -> object:
    # Plans and sketches need neither scikit-learn nor matplotlib.
    if name not in __all__:
        raise AttributeError(f"module 'nysketch' has no attribute '{name}'")
    from importlib import import_module

    return getattr(
        import_module("nysketch.plot" if name in _PLOTS else "nysketch.estimators"), name
    )


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
