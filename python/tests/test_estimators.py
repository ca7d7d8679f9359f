"""Estimators: scikit-learn's own checks, and what they do not cover."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
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
    NystromSketcher,
    Plan,
)

ALL = [CompressiveKMeans, CompressiveKMedians, CompressiveGaussianMixture, NystromSketcher]


def expected_failures(estimator):
    if estimator.get_params().get("n_components") == 1:
        return {}
    # As for KMeans, MiniBatchKMeans and BisectingKMeans in scikit-learn itself: landmarks and
    # starts are drawn by the position of a row, so that others are drawn when rows are repeated.
    # The sketch of a given plan is the same to the last bit (test_sketch.py).
    reason = "sample_weight is not equivalent to removing/repeating samples"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.filterwarnings("ignore:landmarks are chosen", "ignore:Number of distinct clusters")
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
    theirs = GaussianMixture(5, covariance_type="diag", n_init=3, random_state=0).fit(rows)
    # 0.01 nats, the figure that cells are held to on large tables.
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


def test_partial_fit_is_fit_on_the_same_plan(rows):
    plan = Plan.from_data(rows, landmarks=100, seed=0)
    whole = CompressiveKMeans(5, plan=plan, random_state=0).fit(rows)
    parts = CompressiveKMeans(5, plan=plan, random_state=0)
    for part in np.array_split(rows, 6):
        parts.partial_fit(part)
    assert parts.sketch_ == whole.sketch_
    assert np.array_equal(parts.cluster_centers_, whole.cluster_centers_)
    assert not hasattr(parts, "labels_")
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
    # The unit is a power of two of at most twice a 2**28th of the sum of weights.
    assert weighted.plan_.weight_unit <= weights.sum() / 2**27
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
    with pytest.raises(ValueError, match="first call or never"):
        CompressiveKMeans(5).fit(rows).partial_fit(rows, sample_weight=weights)


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
    with pytest.raises(ValueError, match="lacks the column 'd'"):
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
        (CompressiveGaussianMixture(covariance_type="full"), ValueError, "must be 'diag'"),
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


def test_no_weight_is_lost(rows):
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    weights = np.random.default_rng(0).random(3000)
    by_array = CompressiveKMeans(5, random_state=0).fit(table, sample_weight=weights)
    assert (
        by_array.sketch_
        == CompressiveKMeans(5, random_state=0).fit(rows, sample_weight=weights).sketch_
    )
    started = CompressiveKMeans(5, random_state=0).partial_fit(rows, sample_weight=np.ones(3000))
    with pytest.raises(ValueError, match="the weight 0.4 is lost beside the unit 1"):
        started.partial_fit(rows, sample_weight=np.full(3000, 0.4))
    assert started.sketch_.rows == 3000
    large = CompressiveKMeans(5, random_state=0).partial_fit(rows, sample_weight=1e12 * weights)
    with pytest.raises(ValueError, match="is lost beside the unit"):
        large.partial_fit(rows)


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
    with pytest.raises(ValueError, match="lacks the column 'd'"):
        CompressiveKMeans(3, plan=plan).fit(frame.rename(columns={"d": "e"}))


def test_text_is_an_error_in_whatever_table(rows):
    table = pa.table({"a": rows[:, 0], "name": ["x"] * 3000})
    for X in (table, lambda: table, pl.from_arrow(table), pl.from_arrow(table).lazy()):
        with pytest.raises(ValueError, match="'name' of X holds Utf8"):
            CompressiveKMeans(2).fit(X)
    with pytest.raises(ValueError, match="could not convert string to float"):
        CompressiveKMeans(2).fit(table.to_pandas())


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
        CompressiveKMeans(2).fit(np.ma.masked_greater(rows, 9))


def test_an_extreme_value_is_warned_of(rows):
    far = rows.copy()
    far[0, 1] = 1e6
    mixture = CompressiveGaussianMixture(6, random_state=0).fit(far)
    # The step of the sums is 1e6 * 2**-28 = 0.004: variances near 1 are kept.
    assert np.median(mixture.covariances_[:, 1]) < 3
    far[0, 1] = 1e10
    with pytest.warns(UserWarning, match="column 'c1' reaches from .* only to steps of"):
        CompressiveKMeans(5, random_state=0).fit(far)
