"""Contents of the pictures."""

import importlib.metadata

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nysketch import (
    CompressiveGaussianMixture,
    CompressiveKMeans,
    Plan,
    plot_clusters,
    plot_explained_variance,
    plot_k_curve,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


def test_clusters(rows):
    for estimator in (CompressiveKMeans(5, random_state=0), CompressiveGaussianMixture(5)):
        axes = plot_clusters(estimator.fit(rows), rows, max_points=500)
        points, centres = axes.collections
        assert len(points.get_offsets()) == 500 and len(centres.get_offsets()) == 5
        assert len(axes.lines) == (5 if hasattr(estimator, "means_") else 0), "ellipses"
        listed = [text.get_text() for text in axes.get_legend().get_texts()]
        model = estimator.model_
        assert listed == [f"{c}: {100 * w:.1f} %" for c, w in enumerate(model.weights)]
        sizes = centres.get_sizes()
        assert sizes.argmax() == model.weights.argmax() and sizes.min() < sizes.max()
        assert axes.get_xlabel().endswith("% of the variance)")
    one = CompressiveKMeans(2, random_state=0).fit(rows[:, :1])
    assert plot_clusters(one.model_, rows[:, :1]).get_title() == "kmeans, k = 2"
    with pytest.raises(ValueError, match="4 are expected"):
        plot_clusters(estimator, rows[:, :2])
    with pytest.raises(ValueError, match="not clusters"):
        plot_clusters(Plan.from_data(rows).sketch(rows).fit_pca(2), rows)


def test_ellipses_are_covariances_in_the_plane(rows):
    matrix = 0.7 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    sketch = Plan.from_data(rows, scale="standard", landmarks=60).sketch(rows)
    for covariance in (matrix, np.diag(matrix)):
        model = sketch.fit_gmm(5, known_covariance=covariance)
        drawn = plot_clusters(model, rows)
        full = covariance if covariance.ndim == 2 else np.diag(covariance)
        scaled = (rows - rows.mean(axis=0)) / model.scale
        axes = np.linalg.svd(scaled, full_matrices=False)[2][:2] / model.scale
        inverse = np.linalg.inv(axes @ full @ axes.T)
        for line, centre in zip(drawn.lines, drawn.collections[1].get_offsets(), strict=True):
            outline = np.column_stack(line.get_data()) - centre
            # Ellipses show two standard deviations.
            assert np.allclose(np.einsum("ni,ij,nj->n", outline, inverse, outline), 4)


def test_rows_of_a_picture_are_in_memory(rows):
    names = ["a", "b", "c", "d"]
    frame = pl.DataFrame(rows, schema=names)
    model = CompressiveKMeans(3, random_state=0).fit(frame).model_
    places = plot_clusters(model, frame).collections[0].get_offsets()
    for X in (rows, frame.select(names[::-1]), frame.to_arrow(), frame.to_pandas()):
        assert np.allclose(plot_clusters(model, X).collections[0].get_offsets(), places)
    for X, message in [
        (frame.lazy(), r"a LazyFrame; pass X.collect\(\)"),
        ("x.parquet", "rows in memory"),
        (iter([rows]), "rows in memory"),
    ]:
        with pytest.raises(TypeError, match=message):
            plot_clusters(model, X)
    with pytest.raises(ValueError, match="does not have the column d"):
        plot_clusters(model, frame.drop("d"))


def test_rows_with_categories_and_holes_are_drawn_by_their_numbers(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    frame["colour"] = np.array(["red", "blue"])[np.arange(3000) % 2]
    frame.loc[:99, "a"] = np.nan
    drawn = plot_clusters(CompressiveKMeans(3, random_state=0).fit(frame), frame)
    assert len(drawn.collections[0].get_offsets()) == 2900


def test_explained_variance(rows):
    pca = Plan.from_data(rows).sketch(rows).fit_pca(4)
    axes = plot_explained_variance(pca)
    assert np.allclose(
        [bar.get_height() for bar in axes.patches], 100 * pca.explained_variance_ratio
    )
    assert np.isclose(axes.lines[0].get_ydata()[-1], 100)
    with pytest.raises(ValueError, match="use plot_clusters"):
        plot_explained_variance(Plan.from_data(rows).sketch(rows).fit_kmeans(2))


def test_no_matplotlib_names_the_extra(rows, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    model = CompressiveKMeans(2, random_state=0).fit(rows).model_
    with pytest.raises(ImportError, match=r"pip install 'nysketch\[plot\]'"):
        plot_clusters(model, rows)
    extras = importlib.metadata.metadata("nysketch").get_all("Provides-Extra")
    assert {"plot", "spark"} <= set(extras)


def test_k_curve(rows):
    curve = Plan.from_data(rows).sketch(rows).k_curve(2, 8)
    figure, axes = matplotlib.pyplot.subplots()
    assert plot_k_curve(curve, ax=axes) is axes
    line, mark = axes.lines
    assert np.array_equal(line.get_xdata(), range(2, 9))
    assert mark.get_xdata()[0] == curve.suggested
    axes.set_xlim(2, 4)
    assert all(tick == round(tick) for tick in axes.get_xticks()), "whole numbers"
