"""Pictures show what they should."""

import numpy as np
import pytest

from nysketch import (
    CompressiveGaussianMixture,
    CompressiveKMeans,
    Plan,
    plot_clusters,
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
    one = CompressiveKMeans(2, random_state=0).fit(rows[:, :1])
    assert plot_clusters(one.model_, rows[:, :1]).get_title() == "kmeans, k = 2"
    with pytest.raises(ValueError, match="4 columns"):
        plot_clusters(estimator, rows[:, :2])
    with pytest.raises(ValueError, match="not clusters"):
        plot_clusters(Plan.from_data(rows).sketch(rows).fit_pca(2), rows)


def test_k_curve(rows):
    curve = Plan.from_data(rows).sketch(rows).k_curve(2, 8)
    figure, axes = matplotlib.pyplot.subplots()
    assert plot_k_curve(curve, ax=axes) is axes
    line, mark = axes.lines
    assert np.array_equal(line.get_xdata(), range(2, 9))
    assert mark.get_xdata()[0] == curve.suggested
