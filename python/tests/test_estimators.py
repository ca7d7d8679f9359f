"""Estimators: scikit-learn's own checks, and properties that these do not cover."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nysketch import (
    CompressiveGaussianMixture,
    CompressiveKMeans,
    CompressiveKMedians,
    Model,
    NystromSketcher,
    Plan,
)

ALL = [CompressiveKMeans, CompressiveKMedians, CompressiveGaussianMixture, NystromSketcher]


def expected_failures(estimator):
    failures = {}
    if isinstance(estimator, CompressiveGaussianMixture):
        reason = "takes whatever has predict_proba and takes sparse matrices for a classifier"
        failures |= dict.fromkeys(["check_estimator_sparse_array"], reason)
        failures |= dict.fromkeys(["check_estimator_sparse_matrix"], reason)
    if estimator.get_params().get("n_components") == 1:
        return failures
    # The same checks fail for KMeans, MiniBatchKMeans and BisectingKMeans in scikit-learn:
    # landmarks and starts are drawn by row position, so repeating rows changes them. The sketch for
    # a given plan is equal bit for bit (test_sketch.py).
    reason = "sample_weight is not equivalent to removing/repeating samples"
    for data in ("dense", "sparse"):
        failures[f"check_sample_weight_equivalence_on_{data}_data"] = reason
    return failures


@pytest.mark.filterwarnings(
    "ignore:landmarks are chosen", "ignore:Number of distinct clusters", "ignore:X is sparse"
)
@parametrize_with_checks(
    [kind() for kind in ALL]
    + [
        CompressiveKMeans(decoder="kernel"),
        CompressiveKMeans(scale="standard", sampling="uniform"),
        CompressiveGaussianMixture(n_components=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_k_means_is_as_good_as_scikit_learns(rows):
    ours = CompressiveKMeans(5, random_state=0).fit(rows)
    theirs = KMeans(5, n_init=5, random_state=0).fit(rows)
    assert ours.inertia_ < 1.01 * theirs.inertia_
    assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.99
    assert np.array_equal(ours.labels_, ours.predict(rows))
    assert np.isclose(ours.score(rows), -ours.inertia_)
    assert np.isclose((ours.transform(rows).min(axis=1) ** 2).sum(), ours.inertia_)
    assert np.array_equal(ours.transform(rows).argmin(axis=1), ours.labels_)


def test_the_mixture_is_as_good_as_scikit_learns(rows):
    ours = CompressiveGaussianMixture(5, random_state=0).fit(rows)
    theirs = GaussianMixture(5, n_init=3, random_state=0).fit(rows)
    # 0.01 nats is the limit for cells on large tables.
    assert ours.score(rows) > theirs.score(rows) - 0.01
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.covariances_ = ours.covariances_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    assert np.allclose(ours.score_samples(rows), theirs.score_samples(rows))
    assert np.allclose(ours.predict_proba(rows), theirs.predict_proba(rows))
    assert np.array_equal(ours.predict(rows), theirs.predict(rows))
    assert np.isclose(ours.bic(rows), theirs.bic(rows))
    assert np.isclose(ours.aic(rows), theirs.aic(rows))
    assert np.isclose(ours.lower_bound_, ours.score(rows), atol=0.05)
    assert ours.converged_ and ours.n_iter_ >= 1
    X, y = ours.sample(5000)
    assert X.shape == (5000, 4) and np.array_equal(y, np.sort(y))
    assert np.allclose(X.mean(axis=0), rows.mean(axis=0), atol=0.5)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_covariances_are_those_of_scikit_learn(rows, kind):
    """Replaces the fitted model by one of each type."""
    ours = CompressiveGaussianMixture(3, covariance_type="diag", random_state=0).fit(rows)
    model = json.loads(ours.model_.to_bytes())
    size = 1.0 + np.arange(3)
    correlations = 0.5 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    del model["variances"]
    numbers = {
        "full": ("covariances", size[:, None, None] * correlations),
        "tied": ("covariances", correlations[None]),
        "diag": ("variances", np.add.outer(size, np.arange(4))),
        "spherical": ("variances", np.repeat(size[:, None], 4, axis=1)),
    }
    key, values = numbers[kind]
    model |= {"covariance": kind, key: values.tolist()}
    ours._model = Model.from_bytes(json.dumps(model).encode())
    assert ours.model_.covariance_type == kind
    theirs = GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    assert np.allclose(ours.score_samples(rows), theirs.score_samples(rows))
    assert np.allclose(ours.predict_proba(rows), theirs.predict_proba(rows))
    assert np.isclose(ours.bic(rows), theirs.bic(rows))
    assert np.isclose(ours.aic(rows), theirs.aic(rows))
    if kind in ("full", "tied"):
        assert np.allclose(ours.precisions_ @ ours.covariances_, np.eye(4))
    else:
        assert np.allclose(ours.precisions_ * ours.covariances_, 1.0)
    matrices = values if key == "covariances" else np.apply_along_axis(np.diag, 1, values)
    within = np.einsum("c,cij->ij", ours.weights_, np.broadcast_to(matrices, (3, 4, 4)))
    spread = ours.means_ - ours.weights_ @ ours.means_
    expected = within + (ours.weights_[:, None] * spread).T @ spread
    for X in (ours.sample(20_000)[0], ours.model_.sample(20_000, seed=1)):
        # With 20,000 draws, standard errors are about 1 % of the variances.
        assert np.allclose(np.cov(X.T), expected, atol=0.06 * np.diag(expected).max())


def test_partial_fit_is_fit_on_the_same_plan(rows):
    plan = Plan.from_data(rows, landmarks=100, seed=0)
    whole = CompressiveKMeans(5, plan=plan, random_state=0).fit(rows)
    parts = CompressiveKMeans(5, plan=plan, random_state=0)
    for part in np.array_split(rows, 6):
        parts.partial_fit(part)
    assert parts.sketch_ == whole.sketch_
    assert np.array_equal(parts.cluster_centers_, whole.cluster_centers_)
    last = np.array_split(rows, 6)[-1]
    assert np.array_equal(parts.labels_, whole.predict(last)), "of the last rows"
    # Estimated from the sketch of all rows: well separated clusters divide few cells.
    assert np.isclose(parts.inertia_, whole.inertia_, rtol=0.02)
    assert not hasattr(pickle.loads(pickle.dumps(parts)), "_last"), "rows are not pickled"
    before = parts.cluster_centers_
    parts.partial_fit(rows[:5] + 1000)
    assert not np.array_equal(parts.cluster_centers_, before), "learned anew when asked for"
    first = CompressiveGaussianMixture(2, random_state=0).partial_fit(rows[:1000])
    assert first.partial_fit(rows[1000:]).sketch_.rows == 3000
    sketcher = NystromSketcher(50, random_state=0).partial_fit(rows[:1000]).partial_fit(rows[1000:])
    assert sketcher.sketch_ == sketcher.plan_.sketch(rows)


def test_partial_fit_tells_of_too_few_first_rows(rows):
    with pytest.raises(ValueError, match="hold only 3 different ones, fewer than 5"):
        CompressiveKMeans(5).partial_fit(rows[:3])
    with pytest.warns(UserWarning, match="hold only 30 different ones, fewer than 400"):
        CompressiveKMeans(5).partial_fit(rows[:30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CompressiveKMeans(5).partial_fit(rows[:500]).partial_fit(rows[:3])


def test_sample_weights(rows):
    weights = np.random.default_rng(0).random(len(rows))
    weighted = CompressiveKMeans(5, random_state=0).fit(rows, sample_weight=weights)
    theirs = KMeans(5, n_init=5, random_state=0).fit(rows, sample_weight=weights)
    assert weighted.inertia_ < 1.01 * theirs.inertia_
    # The unit is a power of two, at most twice the sum of weights divided by 2**28.
    assert weighted.plan_.weight_unit <= weights.sum() / 2**27
    assert repr(weighted.sketch_).startswith(f"Sketch(weight={weights.sum():.2f}, columns=4")
    assert np.isclose(weighted.sketch_.rows * weighted.plan_.weight_unit, weights.sum())
    assert np.isclose(weighted.score(rows, sample_weight=weights), -weighted.inertia_, rtol=1e-6)
    whole = CompressiveKMeans(5, random_state=0).fit(rows, sample_weight=np.full(3000, 2))
    assert (whole.plan_.weight_unit, whole.sketch_.rows) == (1.0, 6000)
    none = np.r_[np.zeros(1500), np.ones(1500)]
    half = CompressiveKMeans(5, random_state=0).fit(rows, sample_weight=none)
    assert half.sketch_.rows == 1500
    table = pa.table({**{f"c{j}": rows[:, j] for j in range(4)}, "w": none})
    by_name = CompressiveKMeans(5, random_state=0).fit(table, sample_weight="w")
    assert by_name.sketch_.rows == 1500
    assert list(by_name.feature_names_in_) == ["c0", "c1", "c2", "c3"]
    for bad in (np.zeros(3000), -np.ones(3000), np.full(3000, np.nan), np.ones(7)):
        with pytest.raises(ValueError):
            CompressiveKMeans(5).fit(rows, sample_weight=bad)
    with pytest.raises(ValueError, match="the first call was without weights"):
        CompressiveKMeans(5).fit(rows).partial_fit(rows, sample_weight=weights)
    with pytest.raises(ValueError, match="the first call was with weights; pass sample_weight"):
        CompressiveKMeans(5).partial_fit(rows, sample_weight=weights).partial_fit(rows)
    with pytest.raises(ValueError, match="the plan was made without weights"):
        CompressiveKMeans(5, plan=Plan.from_data(rows)).fit(rows, sample_weight=weights)
    with pytest.raises(ValueError, match="the plan was made with weights; pass sample_weight"):
        CompressiveKMeans(5, plan=weighted.plan_).fit(rows)


@pytest.mark.parametrize("kind", ALL)
def test_data_without_shape(kind, rows):
    k = (
        {}
        if kind is NystromSketcher
        else {next(iter(kind().get_params() & {"n_clusters": 0, "n_components": 0}.keys())): 3}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X in [
            np.ones((50, 3)),
            np.zeros((50, 1)),
            np.full((50, 2), 1e8),
            rows[:, :1],
            np.repeat(rows[:2], 20, axis=0),
            rows[:3],
            rows * 1e-9,
            np.where(np.arange(3000)[:, None] < 2999, 0.0, 1e6) + rows[:, :2] * 0,
        ]:
            estimator = kind(random_state=0, **k).fit(X)
            method = estimator.transform if kind is NystromSketcher else estimator.predict
            assert np.all(np.isfinite(method(X)))


def test_more_clusters_than_different_rows(rows):
    X = np.repeat(rows[:4], 10, axis=0)
    with pytest.warns(
        ConvergenceWarning, match=r"distinct clusters \(4\) found smaller than n_clus"
    ):
        estimator = CompressiveKMeans(7, random_state=0).fit(X)
    assert estimator.cluster_centers_.shape == (4, 4)
    assert np.allclose(np.sort(estimator.cluster_centers_[:, 0]), np.sort(rows[:4, 0]))
    assert (
        estimator.transform(X).shape
        == (40, 4)
        == estimator.set_output(transform="pandas").transform(X).shape
    )
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=7"):
        CompressiveKMeans(7).fit(rows[:3])
    with pytest.raises(ValueError, match="Expected n_samples >= n_components"):
        CompressiveGaussianMixture(7).fit(rows[:3])
    many = CompressiveKMeans(60, random_state=0).fit(rows)
    assert len(many.plan_.landmarks) == 600, "ten for each cluster"


def test_names_of_features(rows):
    names = ["a", "b", "c", "d"]
    for X in (
        pd.DataFrame(rows, columns=names),
        pl.DataFrame(rows, schema=names),
        pa.table(dict(zip(names, rows.T, strict=True))),
    ):
        estimator = CompressiveKMeans(3, random_state=0).fit(X)
        assert list(estimator.feature_names_in_) == names and estimator.n_features_in_ == 4
        assert np.array_equal(estimator.predict(X), estimator.labels_)
        assert np.array_equal(
            estimator.labels_, CompressiveKMeans(3, random_state=0).fit_predict(rows)
        )
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.predict(rows)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(pd.DataFrame(rows, columns=["a", "b", "c", "e"]))
    with pytest.raises(ValueError, match="does not have the column d"):
        estimator.predict(pa.table({"a": [1.0], "b": [1.0], "c": [1.0]}))
    frame = estimator.set_output(transform="pandas").transform(pd.DataFrame(rows, columns=names))
    assert list(frame.columns) == [f"compressivekmeans{c}" for c in range(3)]
    again = estimator.fit(rows)
    assert not hasattr(again, "feature_names_in_")


def test_pipelines_searches_and_clones(rows):
    labels = KMeans(5, n_init=3, random_state=0).fit_predict(rows) % 2
    pipeline = make_pipeline(
        StandardScaler(), NystromSketcher(60, random_state=0), LogisticRegression()
    )
    assert cross_val_score(pipeline, rows, labels, cv=3).mean() > 0.95
    search = GridSearchCV(
        CompressiveGaussianMixture(random_state=0), {"n_components": [1, 3, 5]}, cv=3
    )
    assert search.fit(rows).best_params_ == {"n_components": 5}
    plan = Plan.from_data(rows, landmarks=30)
    estimator = CompressiveKMeans(3, plan=plan, random_state=1)
    copy = clone(estimator)
    assert copy.plan == plan and copy.get_params()["random_state"] == 1
    fitted = pickle.loads(pickle.dumps(estimator.fit(rows)))
    assert np.array_equal(fitted.predict(rows), estimator.predict(rows))


@pytest.mark.parametrize(
    "kind", [CompressiveKMeans, CompressiveKMedians, CompressiveGaussianMixture]
)
def test_drop_rows_leaves_the_model(kind):
    rows = np.random.default_rng(0).normal(size=(120, 3))
    estimator = kind(3, random_state=0).fit(rows)
    files = [estimator.sketch_.to_bytes(), estimator.plan_.to_bytes()]
    assert all(file in pickle.dumps(estimator) for file in files), "a pickle contains rows"
    model, labels = estimator.model_.to_bytes(), estimator.predict(rows)
    shown = [name for name in ("labels_", "inertia_", "lower_bound_") if hasattr(estimator, name)]
    before = [getattr(estimator, name) for name in shown]
    assert estimator.drop_rows() is estimator and estimator.drop_rows() is estimator
    again = pickle.loads(pickle.dumps(estimator))
    assert not any(file in pickle.dumps(estimator) for file in files)
    for dropped in (estimator, again):
        assert not hasattr(dropped, "sketch_") and not hasattr(dropped, "plan_")
        assert dropped.model_.to_bytes() == model
        assert np.array_equal(dropped.predict(rows), labels)
        assert np.isfinite(dropped.score(rows))
        for name, value in zip(shown, before, strict=True):
            assert np.array_equal(getattr(dropped, name), value), name
        with pytest.raises(ValueError, match="drop_rows"):
            dropped.partial_fit(rows)
    assert again.fit(rows).sketch_.rows == len(rows), "fit starts anew"
    again.partial_fit(rows)
    assert again.sketch_.rows == 2 * len(rows)


def test_drop_rows_with_a_plan_and_parts(rows):
    plan = Plan.from_data(rows, landmarks=60)
    estimator = CompressiveKMeans(5, plan=plan, random_state=0)
    with pytest.raises(NotFittedError):
        estimator.drop_rows()
    estimator.partial_fit(rows[:1000]).partial_fit(rows[1000:])
    expected, labels = estimator.inertia_, estimator.labels_
    estimator.drop_rows()
    assert estimator.plan is None and not hasattr(estimator, "_last")
    assert estimator.inertia_ == expected and np.array_equal(estimator.labels_, labels)
    # A sketcher is its landmarks, so that it has no such method.
    assert not hasattr(NystromSketcher(), "drop_rows")


def test_randomness(rows):
    same = [CompressiveKMeans(5, random_state=3, threads=t).fit(rows) for t in (1, 2, 5)]
    assert all(np.array_equal(same[0].cluster_centers_, s.cluster_centers_) for s in same)
    assert same[0].plan_.seed == 3, "the seed of the command line"
    assert all(same[0].inertia_ == s.inertia_ for s in same)
    state = np.random.RandomState(0)
    assert (
        CompressiveKMeans(random_state=state).fit(rows).plan_.seed
        != CompressiveKMeans(random_state=state).fit(rows).plan_.seed
    )


def test_bad_parameters(rows):
    for estimator, error, message in [
        (CompressiveKMeans(0), ValueError, "'n_clusters' parameter of CompressiveKMeans must be"),
        (CompressiveKMeans(2.5), ValueError, "Got 2.5 instead"),
        (CompressiveKMeans(True), ValueError, "Got True instead"),
        (CompressiveKMeans(landmarks=0), ValueError, "'landmarks' parameter"),
        (CompressiveKMeans(threads=-1), ValueError, "'threads' parameter"),
        (CompressiveKMeans(decoder="magic"), ValueError, "decoder must be"),
        (CompressiveKMeans(sampling="magic"), ValueError, "sampling must be"),
        (CompressiveKMeans(scale="magic"), ValueError, "scale must be"),
        (CompressiveKMeans(plan=3), TypeError, "plan must be a nysketch.Plan"),
        (CompressiveKMeans(random_state="x"), ValueError, "cannot be used to seed"),
    ]:
        with pytest.raises(error, match=message):
            estimator.fit(rows)
    for estimator in (CompressiveKMeans(), CompressiveGaussianMixture()):
        with pytest.raises(NotFittedError):
            estimator.predict(rows)
    assert not hasattr(CompressiveKMeans(), "cluster_centers_")
    assert not hasattr(CompressiveGaussianMixture(), "means_")


def test_labels_may_be_left_out(rows):
    estimator = CompressiveKMeans(5, compute_labels=False, random_state=0)
    labels = estimator.fit_predict(rows)
    assert not hasattr(estimator, "labels_")
    assert np.array_equal(labels, CompressiveKMeans(5, random_state=0).fit(rows).labels_)


def test_every_decoder_collects_what_it_needs(rows):
    for decoder, sums in [("auto", ["cells"]), ("cells", ["cells"]), ("kernel", ["kernel"])]:
        estimator = CompressiveKMeans(5, decoder=decoder, random_state=0).fit(rows)
        assert estimator.plan_.collect == sums
    kept = CompressiveKMeans(5, collect=["cells", "moments"], random_state=0).fit(rows)
    assert kept.sketch_.fit_pca(2).k == 2


def test_ordinary_weights_are_rounded(rows):
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    weights = np.random.default_rng(0).random(3000)
    by_array = CompressiveKMeans(5, random_state=0).fit(table, sample_weight=weights)
    assert (
        by_array.sketch_
        == CompressiveKMeans(5, random_state=0).fit(rows, sample_weight=weights).sketch_
    )
    by_name = CompressiveKMeans(5, random_state=0)
    by_name.fit(table.append_column("w", pa.array(weights)), sample_weight="w")
    assert np.array_equal(by_name.cluster_centers_, by_array.cluster_centers_)
    many = np.random.default_rng(1)
    with warnings.catch_warnings():
        # Some of these weights are below one unit, but too few for a warning.
        warnings.simplefilter("error")
        CompressiveKMeans(2).fit(many.normal(size=(100_000, 2)), sample_weight=many.random(100_000))
    started = CompressiveKMeans(5, random_state=0).partial_fit(rows, sample_weight=np.ones(3000))
    mixed = np.where(np.arange(3000) < 1500, 0.3, 1.0)
    with pytest.warns(UserWarning, match="rounded to multiples of 1, which .* by 23.08 % of the"):
        started.partial_fit(rows, sample_weight=mixed)
    assert started.sketch_.rows == 4500
    with pytest.raises(ValueError, match="every weight is rounded to zero"):
        started.partial_fit(rows, sample_weight=np.full(3000, 0.4))
    assert started.sketch_.rows == 4500


def test_columns_go_by_name_where_there_are_names(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    plan = Plan.from_data(frame, landmarks=50)
    backwards = frame[["d", "c", "b", "a"]]
    ordered = CompressiveKMeans(3, plan=plan, random_state=0).fit(frame)
    assert CompressiveKMeans(3, plan=plan, random_state=0).fit(backwards).sketch_ == ordered.sketch_
    alone = CompressiveKMeans(3, random_state=0).fit(frame)
    assert alone.plan_.columns == ["a", "b", "c", "d"]
    labels = alone.labels_
    for X in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), pl.from_pandas(backwards)):
        assert np.array_equal(alone.predict(X), labels)
        assert np.array_equal(alone.model_.predict(X), labels)
    assert alone.partial_fit(pl.from_pandas(backwards)).sketch_.rows == 6000
    with pytest.raises(ValueError, match="does not have the column 'd'"):
        CompressiveKMeans(3, plan=plan).fit(frame.rename(columns={"d": "e"}))


def test_text_is_an_error_in_whatever_table(rows):
    table = pa.table({"a": rows[:, 0], "name": [f"n{i}" for i in range(3000)]})
    for X in (table, lambda: table, pl.from_arrow(table), pl.from_arrow(table).lazy()):
        with pytest.raises(ValueError, match="column 'name' cannot be used: it has 3000 different"):
            CompressiveKMeans(2).fit(X)
    with pytest.raises(ValueError, match="column 'name' cannot be used: it has 3000 different"):
        CompressiveKMeans(2).fit(table.to_pandas())
    table = table.set_column(1, "name", pa.array(["a", "b"] * 1500))
    for X in (table, lambda: table, pl.from_arrow(table), table.to_pandas()):
        with pytest.raises(ValueError, match="column 'name' holds text, not numbers"):
            NystromSketcher(2).fit(X)
        with pytest.raises(ValueError, match="column 'name' holds text, not numbers"):
            CompressiveKMeans(2, categorical_features=None).fit(table)


def test_a_failed_fit_leaves_no_half_fitted_estimator(rows):
    estimator = CompressiveKMeans(5, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="n_samples=3"):
        estimator.fit(rows[:3])
    with pytest.raises(NotFittedError):
        estimator.predict(rows)
    assert not hasattr(estimator, "labels_")
    assert estimator.partial_fit(rows).cluster_centers_.shape == (5, 4)
    before = estimator.sketch_.to_bytes()
    other = Plan.from_data(rows, landmarks=33)
    with pytest.raises(ValueError, match="different plans"):
        estimator.set_params(plan=other).partial_fit(rows)
    assert estimator.sketch_.to_bytes() == before and estimator.plan_ == estimator.sketch_.plan
    estimator.set_params(plan=None, compute_labels=False).fit(rows[:1000])
    assert not hasattr(estimator, "labels_") and not hasattr(estimator, "inertia_")
    with pytest.raises(ValueError, match="X has no rows; a stream"):
        NystromSketcher(10).fit(pa.table({"a": rows[:, 0]}).to_reader())


def test_small_integers_are_not_blown_up(rows):
    X = rows.astype(np.int8)
    estimator = CompressiveKMeans(3, random_state=0).fit(X)
    assert estimator.sketch_ == estimator.plan_.sketch(X.astype(float))


def test_labels_are_of_the_rows_that_were_sketched(rows):
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    plan = Plan.from_data(table, landmarks=50)
    with pytest.raises(ValueError, match="3000 rows for the sketch and 0 for the labels"):
        CompressiveKMeans(2, plan=plan).fit(table.to_reader())
    once = CompressiveKMeans(2, plan=plan, compute_labels=False).fit(table.to_reader())
    assert once.sketch_ == plan.sketch(rows)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        CompressiveKMeans(2, missing="error").fit(np.ma.masked_greater(rows, 9))


def test_an_extreme_value_is_warned_of(rows):
    far = rows.copy()
    far[0, 1] = 1e6
    mixture = CompressiveGaussianMixture(6, random_state=0).fit(far)
    # The resolution of the sums is 1e6 * 2**-28 = 0.004, so variances near 1 are preserved.
    assert np.median(mixture.covariances_[:, 1]) < 3
    far[0, 1] = 1e10
    with pytest.warns(UserWarning, match="column 'c1' reaches from .* only to steps of"):
        CompressiveKMeans(5, random_state=0).fit(far)


def test_a_plan_of_the_first_rows_that_does_not_suit_is_warned_of(rows):
    rng = np.random.default_rng(0)
    # In file order, the second column varies little at first.
    early = rng.normal(size=(2000, 2)) * [1, 0.02]
    late = rng.normal(size=(8000, 2))
    estimator = CompressiveKMeans(3, scale="standard", random_state=0).partial_fit(early)
    with pytest.warns(
        UserWarning, match=r"the column 'c1' by 0\.0\d+, but.*sample of all rows.*\(plan\)"
    ):
        estimator.partial_fit(late)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.partial_fit(late)  # There is only one warning.
        plan = Plan.from_data(np.r_[early, late], scale="standard")
        CompressiveKMeans(3, plan=plan).partial_fit(early).partial_fit(late)
        CompressiveKMeans(3, scale="standard").partial_fit(late[:4000]).partial_fit(late[4000:])
    # Four clusters, one per call.
    centres = np.array([[0, 0, 0], [20, 0, 0], [24, 5, 0], [30, 0, 9]])
    calls = [c + rng.normal(size=(1000, 3)) for c in centres]
    estimator = CompressiveKMeans(4, landmarks=100, random_state=0).partial_fit(calls[0])
    with pytest.warns(UserWarning, match="many rows lie where the plan has no landmarks"):
        for call in calls[1:]:
            estimator.partial_fit(call)
    with pytest.warns(UserWarning, match="no landmarks"):
        CompressiveKMeans(4, plan=estimator.plan_).fit(np.concatenate(calls))


def test_parameters_of_scikit_learn(rows):
    with pytest.warns(UserWarning) as told:
        ours = CompressiveKMeans(
            5, n_init=10, max_iter=50, tol=1e-3, algorithm="elkan", copy_x=False, random_state=0
        ).fit(rows)
    assert len(told) == 1 and "ignores n_init=10, max_iter=50, tol=0.001" in str(told[0].message)
    assert ours.n_iter_ >= 1
    with pytest.warns(UserWarning, match="CompressiveKMedians ignores init='random': a sketch"):
        CompressiveKMedians(5, init="random").fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = CompressiveGaussianMixture(5, n_init=3, max_iter=90, random_state=0).fit(rows)
        assert np.array_equal(mixture.lower_bounds_, [mixture.lower_bound_])
        plain = KMeans(5, n_init=1, random_state=0).fit(rows)
        start = rows[:5]
        again = CompressiveKMeans(5, init=plain.cluster_centers_, random_state=0).fit(rows)
        theirs = KMeans(5, init=start, n_init=1).fit(rows)
        named = CompressiveKMeans(5, init=start, random_state=0).fit(rows)
    # Centre i is the one that started at row i.
    assert np.allclose(again.cluster_centers_, plain.cluster_centers_, atol=0.1)
    assert np.isclose(named.inertia_, theirs.inertia_, rtol=0.05)
    for init, message in [
        (lambda X, k, random_state: X[:k], "a function of the rows cannot be used"),
        ("kmeans", "init must be 'k-means\\+\\+'"),
        (rows[:4], "does not match the number of clusters 5"),
        (rows[:5, :2], "init must be centres of 4 finite numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            CompressiveKMeans(5, init=init).fit(rows)


def test_single_precision_stays_single(rows):
    single = rows.astype(np.float32)
    kmeans = CompressiveKMeans(3, random_state=0).fit(single)
    mixture = CompressiveGaussianMixture(3, random_state=0).fit(single)
    sketcher = NystromSketcher(20, random_state=0).fit(single)
    for found in [
        kmeans.cluster_centers_,
        kmeans.transform(single),
        mixture.means_,
        mixture.weights_,
        mixture.covariances_,
        mixture.predict_proba(single),
        mixture.score_samples(single),
        sketcher.transform(single),
    ]:
        assert found.dtype == np.float32
    assert kmeans.transform(rows).dtype == np.float64
    assert CompressiveKMeans(3).fit(rows).cluster_centers_.dtype == np.float64
    assert isinstance(mixture.score(single), float) and isinstance(kmeans.inertia_, float)


@pytest.mark.filterwarnings("ignore:.*rows are skipped as invalid")
def test_invalid_rows_may_be_skipped(rows):
    holes = rows.copy()
    holes[::10, 1] = np.nan
    bad = np.isnan(holes[:, 1])
    with pytest.raises(ValueError, match="contains NaN"):
        CompressiveKMeans(5, missing="error").fit(holes)
    with pytest.warns(UserWarning, match=r"300 of 3000 rows are skipped.*10.0 %.*column: c1 300"):
        kmeans = CompressiveKMeans(5, skip_invalid=True, random_state=0).fit(holes)
    assert (kmeans.sketch_.rows, kmeans.sketch_.skipped) == (2700, 300)
    assert np.array_equal(kmeans.labels_ == -1, bad)
    assert np.array_equal(kmeans.predict(holes), kmeans.labels_)
    assert np.array_equal(np.isnan(kmeans.transform(holes)).any(axis=1), bad)
    assert np.isclose(kmeans.inertia_, -kmeans.score(rows[~bad]))
    weights = np.ones(3000)
    weighted = CompressiveKMeans(5, skip_invalid=True, random_state=0)
    assert np.array_equal(weighted.fit(holes, sample_weight=weights).labels_, kmeans.labels_)
    mixture = CompressiveGaussianMixture(5, skip_invalid=True, random_state=0).fit(holes)
    assert np.array_equal(np.isnan(mixture.score_samples(holes)), bad)
    assert np.isclose(mixture.score(holes), mixture.score(rows[~bad]))
    assert np.isclose(mixture.bic(holes), mixture.bic(rows[~bad]))
    table = pa.table({"a": [1.0, None, 3.0] * 100})
    assert (CompressiveKMeans(2, skip_invalid=True).fit(table).labels_[1::3] == -1).all()


def test_columns_are_chosen_by_name(rows, tmp_path):
    table = pa.table({**{f"c{j}": rows[:, j] for j in range(4)}, "name": ["x"] * 3000})
    expected = CompressiveKMeans(3, random_state=0).fit(rows[:, [2, 0]])
    pq.write_table(table, tmp_path / "x.parquet")
    for X in (table, table.to_pandas(), pl.from_arrow(table), tmp_path / "x.parquet"):
        some = CompressiveKMeans(3, columns=["c2", "c0"], random_state=0).fit(X)
        assert list(some.feature_names_in_) == ["c2", "c0"]
        assert np.array_equal(some.cluster_centers_, expected.cluster_centers_)
        assert np.array_equal(some.predict(X), expected.labels_)
    with pytest.raises(ValueError, match="does not have the column 'c9'"):
        CompressiveKMeans(3, columns=["c9"]).fit(table.to_pandas())
    with pytest.raises(ValueError, match="names in a list"):
        CompressiveKMeans(3, columns="c1").fit(table)
    with pytest.raises(ValueError, match="columns chooses by name"):
        CompressiveKMeans(3, columns=["c1"]).fit(rows)


def test_batches_of_any_kind(rows):
    whole = CompressiveKMeans(5, random_state=0).fit(rows)
    parts = np.array_split(rows, 7)
    frames = [pd.DataFrame(part, columns=list("abcd")) for part in parts]
    for batches, names in [(parts, False), (frames, True), ([pa.table(f) for f in frames], True)]:
        for X in ((part for part in batches), lambda batches=batches: iter(batches)):
            found = CompressiveKMeans(5, random_state=0).fit(X)
            assert np.array_equal(found.cluster_centers_, whole.cluster_centers_)
            assert np.array_equal(found.labels_, whole.labels_)
            assert hasattr(found, "feature_names_in_") == names
        assert np.array_equal(found.predict(iter(batches)), whole.labels_)
        first = CompressiveKMeans(5, random_state=0).partial_fit(iter(batches[:4]))
        assert first.partial_fit(iter(batches[4:])).sketch_.rows == 3000
    assert whole.plan_.sketch(iter(parts)) == whole.sketch_
    used_up = iter(parts)
    list(used_up)
    with pytest.raises(ValueError, match="read before has none left"):
        CompressiveKMeans(5).fit(used_up)
    with pytest.raises(ValueError, match="a batch has the columns"):
        CompressiveKMeans(5).fit(iter([frames[0], parts[1]]))


def test_sparse_matrices(rows):
    dense = np.where(np.abs(rows) < 4, 0, rows)
    with pytest.warns(UserWarning, match="X is sparse; its rows are made dense, some at a time"):
        found = CompressiveKMeans(5, random_state=0).fit(scipy.sparse.csc_array(dense))
    whole = CompressiveKMeans(5, random_state=0).fit(dense)
    assert found.sketch_ == whole.sketch_ and np.array_equal(found.labels_, whole.labels_)
    with pytest.warns(UserWarning, match="sparse"):
        assert np.array_equal(found.predict(scipy.sparse.coo_matrix(dense)), whole.labels_)
    batches = (scipy.sparse.csr_array(part) for part in np.array_split(dense, 5))
    assert np.array_equal(found.predict(batches), whole.labels_)
    with pytest.warns(UserWarning, match="sparse"):
        plan = Plan.from_data(scipy.sparse.lil_array(dense), landmarks=50, weights=np.ones(3000))
    assert plan == Plan.from_data(dense, landmarks=50, weights=np.ones(3000))


def test_unknown_keywords_name_the_class():
    class Own(CompressiveKMeans):
        pass

    for kind in (*ALL, Own):
        with pytest.raises(TypeError, match=rf"{kind.__name__}.__init__\(\) got an unexpected"):
            kind(clusters=3)
    assert clone(Own(4, init="random")).get_params()["n_clusters"] == 4


def test_few_cells_for_many_clusters_are_a_warning(rows):
    with pytest.warns(UserWarning, match=r"20 cells are few for k = 15: .*clusters=15"):
        CompressiveKMeans(n_clusters=15, landmarks=20, random_state=0).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            len(CompressiveKMeans(n_clusters=60, random_state=0).fit(rows).plan_.landmarks) == 600
        )
