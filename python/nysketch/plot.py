"""Pictures, with matplotlib: ``pip install 'nysketch[plot]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nysketch import _input
from nysketch._core import KCurve, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_clusters", "plot_days", "plot_explained_variance", "plot_k_curve"]

# Maximum number of clusters in the legend.
_LISTED = 20


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'nysketch[plot]'") from error
    return plt.subplots(figsize=(6, 4.5), layout="constrained")[1]


def _count_whole(ax: Axes) -> None:
    """Show only whole numbers on the horizontal axis."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def plot_clusters(
    model: Any, X: Any, *, ax: Axes | None = None, max_points: int = 5000, seed: int = 0
) -> Axes:
    """Draw rows and centres in the plane of the two principal axes of the rows.

    Clusters with more rows have larger crosses. The legend shows the share of each cluster.

    Parameters
    ----------
    model : Model or fitted estimator
        The model. For a mixture, ellipses show two standard deviations of its components.
    X : array-like of shape (n_rows, n_columns), or a table
        Rows to show; rows with missing numbers are left out. Columns of a table are found by name.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    max_points : int, default=5000
        Maximum number of rows to draw, chosen at random.
    seed : int, default=0
        Seed of the random choice.

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
        raise ValueError("principal components are not clusters; use plot_explained_variance")
    X, labels = _rows(model, X)
    ax = _axes(ax)
    if len(X) > max_points:
        some = np.random.default_rng(seed).choice(len(X), max_points, replace=False)
        X, labels = X[some], labels[some]
    scale = model.scale
    centre = X.mean(axis=0)
    _, spread, vectors = np.linalg.svd((X - centre) / scale, full_matrices=False)
    axes = vectors[:2]

    def project(points: np.ndarray) -> np.ndarray:
        flat = (points - centre) / scale @ axes.T
        return np.column_stack([flat, np.zeros(len(flat))]) if flat.shape[1] == 1 else flat

    points = project(X)[:, :2]
    # Ten colours that are easy to distinguish, or twenty for more clusters.
    colours = 10 if model.k <= 10 else 20
    drawn = ax.scatter(
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
        _ellipses(ax, centres, _covariances(model), axes / scale)
    size = 20 + 160 * np.sqrt(model.weights / max(model.weights.max(), 1e-300))
    ax.scatter(centres[:, 0], centres[:, 1], marker="x", s=size, c="black", linewidths=1.5)
    shares = spread**2 / max((spread**2).sum(), 1e-300)
    ax.set_xlabel(f"first principal axis ({100 * shares[0]:.0f} % of the variance)")
    if len(shares) > 1:
        ax.set_ylabel(f"second principal axis ({100 * shares[1]:.0f} % of the variance)")
    else:
        ax.set_yticks([])
    ax.set_title(f"{model.task}, k = {model.k}")
    if model.k <= _LISTED:
        from matplotlib.lines import Line2D

        colour = drawn.cmap(np.arange(model.k) % colours / (colours - 1))
        signs = [
            Line2D([], [], linestyle="none", marker="o", markersize=5, color=tuple(colour[c]),
                   label=f"{c}: {100 * w:.1f} %")
            for c, w in enumerate(model.weights)
        ]  # fmt: skip
        style: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "frameon": False}
        ax.legend(
            handles=signs,
            title="share of rows",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            **style,
        )
    return ax


def _rows(model: Model, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return complete rows in memory, in the columns of the model, and their labels."""
    _input.refuse(X)
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame; pass X.collect(), or X.head(5000).collect()")
    if _input.files(X) is not None or _input.is_iterator(X) or callable(X):
        raise TypeError("X must be rows in memory to be drawn: an array or a table")
    rows, labels = model._numbers(X), model.predict(X, skip_invalid=True)
    whole = np.isfinite(rows).all(axis=1) & (labels >= 0)
    return rows[whole], labels[whole]


def _covariances(model: Model) -> np.ndarray:
    """Return a matrix for each component, in the units of the table."""
    if model.covariance_type in ("full", "tied"):
        d = len(model.columns)
        return np.broadcast_to(model.covariances, (model.k, d, d))
    return np.apply_along_axis(np.diag, 1, model.variances)


def _ellipses(ax: Axes, centres: np.ndarray, covariances: np.ndarray, axes: np.ndarray) -> None:
    if len(axes) < 2:
        return
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for centre, covariance in zip(centres, covariances, strict=True):
        values, vectors = np.linalg.eigh(axes @ covariance @ axes.T)
        outline = vectors @ (2 * np.sqrt(np.maximum(values, 0))[:, None] * circle)
        ax.plot(centre[0] + outline[0], centre[1] + outline[1], color="black", linewidth=0.8)


def plot_k_curve(curve: KCurve, *, ax: Axes | None = None) -> Axes:
    """Draw the risk over k and mark the suggested k.

    Parameters
    ----------
    curve : KCurve
        The result of ``Sketch.k_curve``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

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
    names = {"gmm": "mean negative log-likelihood", "kmedians": "mean distance"}
    task = curve.best.task
    ax.plot(ks, risks, marker="o", markersize=4, linewidth=1.2)
    best = ks.index(curve.suggested)
    doubt = "" if curve.clear else ", but no k stands out"
    ax.plot(
        [ks[best]], [risks[best]], marker="o", markersize=11, fillstyle="none", color="tab:red",
        linestyle="none", label=f"suggested: k = {curve.suggested}{doubt}",
    )  # fmt: skip
    _count_whole(ax)
    ax.set_xlabel("k")
    ax.set_ylabel(f"{names.get(task, 'mean squared distance')}, estimated from the sketch")
    # The curve falls from the upper left, so the upper right is free.
    ax.legend(loc="upper right", frameon=False)
    return ax


def plot_days(days: Any, *, ax: Axes | None = None) -> Axes:
    """Draw days in order: the size of each difference, or the evidence for a change.

    Parameters
    ----------
    days : Unusual, Watched or DriftSeries
        The result of ``Baseline.compare``, ``Baseline.watch``, or :func:`nysketch.diff` with
        several sketches.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> days = nysketch.baseline(sorted(glob("days/*.nys")))  # doctest: +SKIP
    >>> axes = nysketch.plot_days(days.compare("today.nys"))  # doctest: +SKIP
    """
    frame = days.to_frame()
    if not {"evidence", "score", "moved.share"} & set(frame.columns):
        raise ValueError("there is nothing to draw: these sketches keep no cells")
    ax = _axes(ax)
    if "evidence" in frame:
        values, name = frame["evidence"].clip(lower=1e-3), "evidence for a change"
        ax.set_yscale("log")
        ax.axhline(1 / days.level, color="tab:red", linestyle="--", label=f"alarm: 1/{days.level}")
        out = frame["evidence"] >= 1 / days.level
    elif "score" in frame:
        values, name = frame["score"], "how unusual, in spreads of the days"
        low, high = np.quantile(values[:-1], [0.05, 0.95])
        ax.axhspan(low, high, color="tab:blue", alpha=0.15, label="90 % of the other days")
        out = (np.arange(len(frame)) == len(frame) - 1) & days.unusual
    else:
        values, name = 100 * frame["moved.share"], "rows that moved, %"
        ax.fill_between(
            range(len(frame)), 100 * frame["moved.low"], 100 * frame["moved.high"],
            color="tab:blue", alpha=0.15, label="its interval",
        )  # fmt: skip
        out = frame["drift"] == True  # noqa: E712
    at = np.arange(len(frame))
    ax.plot(at, values, marker="o", markersize=4, linewidth=1.2, color="tab:blue")
    ax.plot(
        at[out], values[out], marker="o", markersize=11, fillstyle="none", color="tab:red",
        linestyle="none", label="unusual" if "score" in frame else "called changed",
    )  # fmt: skip
    names = frame["name"] if "name" in frame else frame["file"].fillna("")
    every = max(1, len(frame) // 30)
    ax.set_xticks(at[::every], [str(n) for n in names[::every]], rotation=90)
    ax.set_ylabel(name)
    ax.legend(frameon=False)
    return ax


def plot_explained_variance(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of variance along each principal component, and the cumulative share.

    Parameters
    ----------
    model : Model
        The result of ``Sketch.fit_pca``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, nysketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> model = nysketch.Plan.from_data(X).sketch(X).fit_pca(3)
    >>> axes = nysketch.plot_explained_variance(model)  # doctest: +SKIP
    """
    if getattr(model, "task", None) != "pca":
        raise ValueError("only principal components (fit_pca) explain variance; use plot_clusters")
    ax = _axes(ax)
    shares = 100 * model.explained_variance_ratio
    numbers = np.arange(1, len(shares) + 1)
    ax.bar(numbers, shares, color="tab:blue", label="each")
    ax.plot(numbers, shares.cumsum(), marker="o", markersize=4, color="tab:red", label="together")
    _count_whole(ax)
    ax.set_ylim(0, 105)
    ax.set_xlabel("principal component")
    ax.set_ylabel("share of the variance, %")
    # The legend is above the picture, because the curve may be anywhere in it.
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    return ax
