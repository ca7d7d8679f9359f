"""Gaussian mixtures: covariances, starts, minimum variance, intervals and outliers."""

import warnings

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from nysketch import CompressiveGaussianMixture, Plan

KINDS = ["full", "tied", "diag", "spherical"]


@pytest.fixture(scope="module")
def slanted():
    """Return three clusters of 4,000 rows with correlated columns."""
    rng = np.random.default_rng(3)
    shape = np.array([[1.0, 0.8, 0.0], [0.0, 0.5, 0.3], [0.2, 0.0, 0.4]])
    means = np.array([[0.0, 0.0, 0.0], [6.0, 1.0, 0.0], [0.0, -5.0, 4.0]])
    return np.concatenate([rng.normal(size=(4000, 3)) @ shape + mean for mean in means])


@pytest.fixture(scope="module")
def sketch(slanted):
    return Plan.from_data(slanted, witnesses=3000, seed=0).sketch(slanted)


@pytest.mark.parametrize("kind", KINDS)
def test_every_covariance_is_as_good_as_scikit_learns(slanted, kind):
    given = {"n_components": 3, "covariance_type": kind, "random_state": 0}
    ours = CompressiveGaussianMixture(**given, witnesses=3000).fit(slanted)
    theirs = GaussianMixture(**given, n_init=3).fit(slanted)
    assert ours.covariance_type_ == kind
    assert ours.score(slanted) > theirs.score(slanted) - 0.02
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.covariances_ = ours.covariances_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    assert np.allclose(ours.score_samples(slanted), theirs.score_samples(slanted))
    assert np.isclose(ours.bic(slanted), theirs.bic(slanted))
    assert np.isclose(ours.aic(slanted), theirs.aic(slanted))


def test_the_default_is_what_the_witnesses_carry(slanted):
    def fitted(**given):
        return CompressiveGaussianMixture(3, random_state=0, **given).fit(slanted)

    assert fitted().covariance_type_ == "full"
    # Three full components have 29 parameters, for which 100 rows are too few.
    few = fitted(witnesses=100)
    assert few.covariance_type_ == "diag"
    assert "too many for" in few.model_.report["notes"][0]
    assert fitted(witnesses=0).covariance_type_ == "diag"


def test_the_likelihood_has_an_interval(slanted, sketch):
    model = sketch.fit_gmm(3)
    said = model.report["likelihood"]
    assert said["low"] < model.log_density(slanted).mean() < said["high"]
    assert sketch.estimated_risk(model) == -said["mean"]
    estimator = CompressiveGaussianMixture(3, plan=sketch.plan, random_state=0).fit(slanted)
    assert estimator.lower_bound_ == said["mean"]
    assert "full" in model._repr_html_() and "estimated" in model._repr_html_()


def test_settings_reach_the_search(slanted, sketch):
    one = sketch.fit_gmm(3, restarts=1, max_iterations=1, threads=2)
    assert one.report["status"] == "IterationLimit" and one.report["iterations"] == 1
    assert sketch.fit_gmm(3, threads=1) == sketch.fit_gmm(3, threads=2)
    with pytest.warns(UserWarning, match=r"min_variance=0\.5 allows"):
        wide = sketch.fit_gmm(3, covariance="diag", min_variance=0.5)
    # A few distant rows do not affect the variance of a column.
    assert np.all(wide.variances >= 0.49 * slanted.var(axis=0))
    assert wide.report["min_variance"] == 0.5
    ours = CompressiveGaussianMixture(3, plan=sketch.plan, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = ours.set_params(n_init=1, max_iter=1, tol=0.1, init_params="k-means++").fit(slanted)
    assert short.n_iter_ == 1 and not short.converged_
    curve = sketch.k_curve(2, 4, task="gmm", covariance="tied")
    assert {m.covariance_type for m in curve.models} == {"tied"}
    assert np.all(np.array(curve.icls) >= np.array(curve.bics)) and "ICL" in curve._repr_html_()
    assert curve.suggested == curve.ks[int(np.argmin(curve.bics))]
    assert sketch.k_curve(2, 3).bics == [None, None]
    with pytest.raises(ValueError, match="restarts must be left out unless a gmm is learned"):
        sketch.k_curve(2, 3, restarts=4)


def test_collapse_is_a_warning():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(3000) % 3, rng.normal(size=3000)]).astype(float)
    match = "3 of 3 components are no wider in some direction than min_variance=0.0001 allows"
    with pytest.warns(UserWarning, match=match):
        mixture = CompressiveGaussianMixture(3, random_state=0).fit(X)
    assert mixture.model_.report["collapsed"] == 3
    least = mixture.covariances_[:, 0, 0] / X[:, 0].var()
    assert np.allclose(least, 1e-4, rtol=0.02)
    with pytest.warns(UserWarning, match=r"min_variance=0\.01 allows"):
        mixture.set_params(min_variance=0.01).fit(X)
    with pytest.warns(UserWarning, match=r"ignores reg_covar=0\.001.*use min_variance"):
        CompressiveGaussianMixture(1, reg_covar=1e-3).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_starts_where_it_is_told(slanted, kind):
    plan = Plan.from_data(slanted, witnesses=3000, scale="standard", seed=0)
    given = {"n_components": 3, "covariance_type": kind, "plan": plan, "random_state": 0}
    first = CompressiveGaussianMixture(**given).fit(slanted)
    # Without scaling, the spherical variance is in the units of X.
    precisions = first.precisions_ if kind != "spherical" else np.ones(3)
    start = {
        "means_init": first.means_,
        "weights_init": first.weights_,
        "precisions_init": precisions,
    }
    again = CompressiveGaussianMixture(**given, **start).fit(slanted)
    # Component i remains component i.
    assert np.allclose(again.means_, first.means_, atol=0.05)
    assert np.allclose(again.weights_, first.weights_, atol=0.01)
    if kind != "spherical":
        assert again.n_iter_ <= 3
    turned = CompressiveGaussianMixture(**given, means_init=first.means_[::-1]).fit(slanted)
    assert np.allclose(turned.means_[::-1], first.means_, atol=0.05)
    warm = CompressiveGaussianMixture(**given, warm_start=True).fit(slanted)
    cold = warm.n_iter_
    assert warm.fit(slanted).n_iter_ <= min(3, cold)
    assert np.allclose(warm.means_, first.means_, atol=0.05)
    # A fit with a different number of components starts from scratch.
    assert warm.set_params(n_components=4).fit(slanted).means_.shape == (4, 3)


def test_given_starts_that_do_not_fit(slanted):
    means = np.zeros((2, 3)) + [[0], [1]]
    for given, message in [
        ({"weights_init": [0.5, 0.5]}, "weights_init goes with means_init"),
        ({"precisions_init": [1, 1]}, "precisions_init goes with means_init"),
        ({"means_init": means[:, :2]}, r"'means_init' should have the shape of \(2, 3\)"),
        ({"means_init": means, "weights_init": [1, 1]}, "shares of one"),
        ({"means_init": means, "weights_init": [1]}, "'weights_init' should have the shape"),
        ({"means_init": means, "precisions_init": [1, 1]}, "other than 'auto'"),
        (
            {"means_init": means, "precisions_init": [1, -1], "covariance_type": "spherical"},
            "should be positive",
        ),
        (
            {"means_init": means, "precisions_init": -np.eye(3), "covariance_type": "tied"},
            "symmetric, positive-definite",
        ),
        ({"covariance_type": "round"}, "must be one of 'auto', 'full'"),
        ({"init_params": "random"}, "must be one of 'kmeans', 'k-means"),
        ({"n_init": 0}, "'n_init' parameter"),
        ({"max_iter": 2.5}, "'max_iter' parameter"),
        ({"tol": -1}, "'tol' parameter"),
        ({"min_variance": 0}, "'min_variance' parameter"),
        ({"contamination": 0.6}, "'contamination' parameter"),
    ]:
        with pytest.raises(ValueError, match=message):
            CompressiveGaussianMixture(2, random_state=0, **given).fit(slanted)
    sketch = Plan.from_data(slanted).sketch(slanted)
    with pytest.raises(ValueError, match="init_covariances must be positive definite"):
        sketch.fit_gmm(2, init=means, init_covariances=-np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"got an array of shape \[2\]"):
        sketch.fit_gmm(2, init=means, init_covariances=[1, 2])
    with pytest.raises(ValueError, match="init_weights must be positive"):
        sketch.fit_gmm(2, init=means, init_weights=[1, -1])


def test_outliers_as_in_scikit_learns_detectors(slanted, sketch):
    rng = np.random.default_rng(5)
    far = rng.uniform(-30, 30, size=(200, 3))
    mixture = CompressiveGaussianMixture(3, contamination=0.02, random_state=0).fit(slanted)
    share = (mixture.predict_outliers(slanted) == -1).mean()
    assert abs(share - 0.02) < 0.006
    assert (mixture.predict_outliers(far) == -1).mean() > 0.9
    score = mixture.decision_function(far)
    assert np.array_equal(score, mixture.score_samples(far) - mixture.offset_)
    assert np.array_equal(score < 0, mixture.predict_outliers(far) == -1)
    # A different share does not require a new fit.
    assert mixture.set_params(contamination=0.1).offset_ == mixture.model_.threshold(0.1)
    holes = np.where(np.arange(3) == 0, np.nan, far[:2])
    skipping = CompressiveGaussianMixture(3, skip_invalid=True, random_state=0).fit(slanted)
    assert np.array_equal(skipping.predict_outliers(holes), [0, 0])

    model = sketch.fit_gmm(3)
    densities = model.densities
    assert np.all(np.diff(densities["share"]) > 0) and np.all(
        np.diff(densities["log_density"]) >= 0
    )
    assert densities["witnesses"] > 2000
    below = (model.log_density(slanted) < model.threshold(0.05)).mean()
    assert abs(below - 0.05) < 2 * np.sqrt(0.05 * 0.95 / densities["witnesses"])
    for share in (1e-5, 0.99, float("nan")):
        with pytest.raises(ValueError, match=r"share must be between 0\.0001 and 0\.9"):
            model.threshold(share)
    with pytest.raises(ValueError, match="threshold needs a mixture"):
        sketch.fit_kmeans(3).threshold(0.01)
    by_kernel = CompressiveGaussianMixture(3, decoder="kernel", random_state=0).fit(slanted)
    assert by_kernel.model_.densities is None and not hasattr(by_kernel, "offset_")
