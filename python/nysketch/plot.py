"""Pictures, with matplotlib: ``pip install '.[plot]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nysketch._core import KCurve, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_clusters", "plot_k_curve"]


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install '.[plot]' in a clone") from error
    return plt.subplots(figsize=(6, 4.5), layout="constrained")[1]


def plot_clusters(
    model: Any, X: Any, *, ax: Axes | None = None, max_points: int = 5000, seed: int = 0
) -> Axes:
    """Rows and centres in the plane of the rows' two principal axes.

    Parameters
    ----------
    model : Model or fitted estimator
        Centres or a mixture. Ellipses show two standard deviations of a mixture's components.
    X : array-like of shape (n_rows, n_columns)
        Rows to show.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    max_points : int, default=5000
        At most so many rows are drawn, chosen at random.
    seed : int, default=0
        Seed of that choice.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[:500] += 5
    >>> mixture = nysketch.CompressiveGaussianMixture(2, random_state=0).fit(X)
    >>> axes = nysketch.plot_clusters(mixture, X)  # doctest: +SKIP
    """
    model = model if isinstance(model, Model) else model.model_
    if model.task == "pca":
        raise ValueError("principal components are not clusters")
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != len(model.columns):
        raise ValueError(f"X must have {len(model.columns)} columns, got shape {X.shape}")
    ax = _axes(ax)
    if len(X) > max_points:
        X = X[np.random.default_rng(seed).choice(len(X), max_points, replace=False)]
    labels = model.predict(X)
    scale = model.scale
    centre = X.mean(axis=0)
    _, _, vectors = np.linalg.svd((X - centre) / scale, full_matrices=False)
    axes = vectors[:2]

    def project(points: np.ndarray) -> np.ndarray:
        flat = (points - centre) / scale @ axes.T
        return np.column_stack([flat, np.zeros(len(flat))]) if flat.shape[1] == 1 else flat

    points = project(X)[:, :2]
    # Ten colours that are easy to tell apart, twenty where they do not suffice.
    colours = 10 if model.k <= 10 else 20
    ax.scatter(
        points[:, 0],
        points[:, 1],
        c=labels % colours,
        s=4,
        alpha=0.4,
        linewidths=0,
        cmap=f"tab{colours}",
        vmin=0,
        vmax=colours - 1,
    )
    centres = project(model.means if model.task == "gmm" else model.centres)
    if model.task == "gmm":
        _ellipses(ax, centres, model.variances / scale**2, axes)
    ax.scatter(centres[:, 0], centres[:, 1], marker="x", s=60, c="black", linewidths=1.5)
    ax.set_xlabel("first principal axis")
    ax.set_ylabel("second principal axis")
    ax.set_title(f"{model.task}, k = {model.k}")
    return ax


def _ellipses(ax: Axes, centres: np.ndarray, variances: np.ndarray, axes: np.ndarray) -> None:
    if len(axes) < 2:
        return
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for centre, variance in zip(centres, variances, strict=True):
        covariance = (axes * variance) @ axes.T
        values, vectors = np.linalg.eigh(covariance)
        outline = vectors @ (2 * np.sqrt(np.maximum(values, 0))[:, None] * circle)
        ax.plot(centre[0] + outline[0], centre[1] + outline[1], color="black", linewidth=0.8)


def plot_k_curve(curve: KCurve, *, ax: Axes | None = None) -> Axes:
    """The risk over k, with the suggested k marked.

    Parameters
    ----------
    curve : KCurve
        What ``Sketch.k_curve`` returned.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> curve = nysketch.Plan.from_data(X).sketch(X).k_curve(1, 6)
    >>> axes = nysketch.plot_k_curve(curve)  # doctest: +SKIP
    """
    ax = _axes(ax)
    ks, risks = curve.ks, curve.risks
    names = {"gmm": "-log-likelihood", "kmedians": "mean distance"}
    task = curve.best.task
    ax.plot(ks, risks, marker="o", markersize=4, linewidth=1.2)
    best = ks.index(curve.suggested)
    doubt = "" if curve.clear else ", but no k stands out"
    ax.plot(
        [ks[best]], [risks[best]], marker="o", markersize=11, fillstyle="none", color="tab:red",
        linestyle="none", label=f"suggested: k = {curve.suggested}{doubt}",
    )  # fmt: skip
    ax.set_xlabel("k")
    ax.set_ylabel(f"{names.get(task, 'mean squared distance')}, estimated from the sketch")
    ax.legend()
    return ax
