"""Folds: sums of disjoint parts of the rows, and the intervals of models."""

import numpy as np
import pytest

import nysketch

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return rng.normal(size=(3000, 2)) + 8.0 * rng.integers(2, size=(3000, 1))


@pytest.fixture(scope="module")
def sketch(rows):
    return nysketch.Plan.from_data(rows, landmarks=40).sketch(rows, folds=8)


def test_folds_add_up_to_the_sketch(rows, sketch):
    assert (sketch.folds.count, sketch.folds.by) == (8, None)
    plain = sketch.plan.sketch(rows)
    assert sketch.without_folds() == plain and plain.folds is None
    assert sum(sketch.fold(f) for f in range(8)) == plain
    assert sketch.without_fold(3) + sketch.fold(3) == plain
    parts = sketch.plan.sketch(rows[:1000], folds=8) + sketch.plan.sketch(rows[1000:], folds=8)
    assert parts.to_bytes() == sketch.to_bytes()
    again = nysketch.Sketch.from_bytes(sketch.to_bytes())
    assert again.update(rows[:10]).rows == 3010 and again.folds.count == 8


def test_folds_by_a_column(rows):
    users = np.arange(3000) % 100
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "user": users})
    plan = nysketch.Plan.from_data(table, columns=["x", "y"], landmarks=40)
    sketch = plan.sketch(table, folds=4, fold_by="user")
    assert sketch.folds.by == "user" and sketch.folds.smallest % 30 == 0
    assert sketch.fold(0) != plan.sketch(table, folds=4).fold(0)


def test_what_cannot_be_folded(rows, sketch):
    plan = sketch.plan
    for folds in (1, 65, 10**12):
        with pytest.raises(ValueError, match="folds must be between 2 and 64"):
            plan.sketch(rows, folds=folds)
    with pytest.raises(ValueError, match="fold_by needs folds"):
        plan.sketch(rows, fold_by="user")
    with pytest.raises(ValueError, match="there is no fold 8 of 8"):
        sketch.fold(8)
    plain = plan.sketch(rows)
    with pytest.raises(ValueError, match="8 folds by content and one without folds"):
        sketch + plain
    for ask in (
        lambda: plain.with_intervals(plain.fit_kmeans(2)),
        lambda: plain.cross_validate(1, 3),
    ):
        with pytest.raises(ValueError, match="needs a sketch with folds"):
            ask()


def test_intervals(sketch):
    model = sketch.fit_kmeans(2)
    assert model.intervals is None
    found = sketch.with_intervals(model).intervals
    assert (found.folds, found.confidence, found.by) == (8, 0.95, None)
    assert found.stability == (1.0, 1.0)
    wide = sketch.with_intervals(model, confidence=0.99).intervals
    for share, wider, centre in zip(found.weights, wide.weights, found.centres, strict=True):
        assert wider[0] < share[0] < 0.5 < share[1] < wider[1]
        # 1,500 rows of unit variance: standard errors of 0.026, and Student's t with 7 degrees.
        assert all(0.01 < high - low < 0.3 for low, high in centre)
    kept = nysketch.Model.from_bytes(sketch.with_intervals(model).to_bytes())
    assert kept.intervals == found
    pca = sketch.with_intervals(sketch.fit_pca(2)).intervals
    assert all(low < high for low, high in pca.explained_variance)


def test_cross_validation(sketch):
    found = sketch.cross_validate(1, 4, task="gmm", covariance="full", restarts=4)
    assert [p.k for p in found.points] == [1, 2, 3, 4]
    assert found.points[found.within_error].k == 2
    with pytest.raises(ValueError, match="task must be one of"):
        sketch.cross_validate(1, 2, task="pca")
