"""Compress a table of any size into one small sketch, and learn from the sketch alone.

There are two interfaces:

* estimators in the style of scikit-learn: :class:`CompressiveKMeans`, :class:`CompressiveKMedians`,
  :class:`CompressiveGaussianMixture`, :class:`NystromSketcher`;
* the underlying objects: :class:`Plan` (the specification of the measurement), :class:`Sketch`
  (exact sums that can be added), :class:`Model` (the result of learning), :class:`Release` (sums
  with noise, for plans of :func:`private_plan`), and functions that describe and compare them:
  :func:`inspect`, :func:`diff`, :func:`baseline`, :func:`attribute`, :func:`report`.

Rows are arrays, data frames, Arrow streams, or files. A path or pattern is sufficient for files,
and :class:`Files` adds options for reading them.

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

# Work that was abandoned after Ctrl-C may still need the interpreter.
atexit.register(_join_left_work)

_PLOTS = ("plot_clusters", "plot_days", "plot_explained_variance", "plot_k_curve")


def __getattr__(name: str) -> object:
    # Plans and sketches do not need scikit-learn or matplotlib.
    if name not in __all__:
        raise AttributeError(f"module 'nysketch' has no attribute '{name}'")
    from importlib import import_module

    return getattr(
        import_module("nysketch.plot" if name in _PLOTS else "nysketch.estimators"), name
    )


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
