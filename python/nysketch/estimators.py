"""Estimators of scikit-learn's kind that learn from a sketch of X.

``fit`` makes a plan from X, sketches X, and learns from the sketch; ``partial_fit`` adds rows to
the sketch, and the model is learned anew when it is next asked for. Beside what scikit-learn takes,
X may be anything with the Arrow stream interface, which is read batch by batch.
"""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nysketch import _input
from nysketch._core import Model, Plan

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "CompressiveKMedians",
    "NystromSketcher",
]

# Landmarks for each cluster at least, where the user names no number.
_LANDMARKS_PER_CLUSTER = 10
_DEFAULT_LANDMARKS = 400


class _Sketching(BaseEstimator):
    """What the estimators share: from X to a plan and a sketch."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sketch_")

    def _collect(self) -> list[str]:
        raise NotImplementedError

    def _landmarks(self, rows: int | None) -> int | None:
        return self.landmarks

    def _plan_options(self) -> dict[str, Any]:
        return {"sampling": self.sampling}

    def _sketch_rows(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any]:
        """Adds X to the sketch, a new one if ``reset``; the checked X and its weights."""
        self._check_parameters()
        X = self._checked(X, reset=reset)
        given = self.plan is not None
        plan = self.plan if given else None if reset else self.plan_
        if plan is not None and sample_weight is not None and plan.weight_unit is None:
            raise ValueError(
                "sample_weight must be given at the first call or never, and with a plan only "
                "where it was made with weights"
            )
        unit = None if plan is None else plan.weight_unit
        if unit is not None and sample_weight is None:
            sample_weight = np.ones(X.shape[0]) if isinstance(X, np.ndarray) else None
        weights, unit = _whole(sample_weight, X, unit)
        common = {"weights": weights, "threads": self.threads, "verbose": bool(self.verbose)}
        if reset:
            self._seed = _seed(self.random_state)
        if plan is None:
            plan = Plan.from_data(
                X,
                columns=_input.column_names(X, without=sample_weight),
                landmarks=self._landmarks(X.shape[0] if isinstance(X, np.ndarray) else None),
                bandwidth=self.bandwidth,
                scale=self.scale,
                collect=self.collect if self.collect is not None else self._collect(),
                weight_unit=unit,
                seed=self._seed,
                warn=False,
                **self._plan_options(),
                **common,
            )
        sketch = plan.sketch(X, **common)
        if not isinstance(X, np.ndarray):
            self.n_features_in_ = len(plan.columns)
            self.feature_names_in_ = np.asarray(plan.columns, dtype=object)
        self.plan_ = plan
        self.sketch_ = sketch if reset else self.sketch_ + sketch
        return X, weights

    def _check_first_rows(self, least: int = 1) -> None:
        """Landmarks stay those of the first rows: too few of them would spoil all that follows."""
        found, wanted = len(self.plan_.landmarks), self._landmarks(None) or _DEFAULT_LANDMARKS
        if found >= wanted:
            return
        message = (
            f"landmarks are chosen from the rows of the first call, which hold only {found} "
            f"different ones, fewer than {least if found < least else wanted}; pass more rows "
            "first, or a plan"
        )
        if found < least:
            del self.sketch_
            raise ValueError(f"n_samples={found}: {message}")
        warnings.warn(message, UserWarning, stacklevel=3)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as an array, or as it is where it comes in batches, whose columns have names."""
        if _input.is_arrow(X) and not _input.is_pandas(X):
            if reset and hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return X
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])

    def _check_parameters(self) -> None:
        _check_count(self, "landmarks", optional=True)
        _check_count(self, "threads", optional=True)
        if self.plan is not None and not isinstance(self.plan, Plan):
            raise TypeError(f"plan must be a nysketch.Plan, got {type(self.plan).__name__}")


class _Learning(_Sketching):
    """An estimator that learns a model of ``self._k()`` centres or components."""

    _task: str

    def _collect(self) -> list[str]:
        return ["cells"] if self.decoder in ("auto", "cells") else ["kernel"]

    def _k(self) -> int:
        raise NotImplementedError

    def _landmarks(self, rows: int | None) -> int | None:
        wanted = _LANDMARKS_PER_CLUSTER * self._k()
        if self.landmarks is not None or wanted <= _DEFAULT_LANDMARKS:
            return self.landmarks
        return wanted if rows is None else min(wanted, rows)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Sketch X and learn from the sketch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows. Anything with the Arrow stream interface is read batch by batch, several
            times; a pyarrow dataset or a function that returns a new stream may be larger than
            memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, rounded to a millionth of the largest unless they are whole numbers.

        Returns
        -------
        self
        """
        X, weights = self._sketch_rows(X, sample_weight, reset=True)
        self._model = self._learn()
        self._after_fit(X, weights)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sketch.

        The plan is that of the first call, unless one is given: landmarks are chosen from its
        rows. The model is learned when it is next asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            More rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights; all calls have them, or none.

        Returns
        -------
        self
        """
        first = not hasattr(self, "sketch_")
        self._sketch_rows(X, sample_weight, reset=first)
        if first and self.plan is None:
            self._check_first_rows(self._k())
        self._model = None
        for name in ("labels_", "inertia_"):
            self.__dict__.pop(name, None)
        return self

    def _after_fit(self, X: Any, weights: Any) -> None:
        pass

    @property
    def model_(self) -> Model:
        """The model, learned anew where rows were added."""
        if not hasattr(self, "sketch_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        if self._model is None:
            self._model = self._learn()
        return self._model

    def _learn(self) -> Model:
        k, sketch = self._k(), self.sketch_
        if self.plan_.weight_unit is None and sketch.rows < k:
            raise ValueError(self._too_few(sketch.rows))
        if self.decoder in ("auto", "cells") and sketch.cell_rows is not None:
            found = int(np.count_nonzero(sketch.cell_rows))
        else:
            found = k if sketch.kernel_means is None else sketch.kernel_means.shape[1]
        if found < k:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than {self._k_name} ({k}). "
                "Possibly due to duplicate points in X, or to few landmarks.",
                ConvergenceWarning,
                stacklevel=3,
            )
            k = found
        return getattr(sketch, f"fit_{self._task}")(k, decoder=self.decoder, seed=self._seed)

    def _too_few(self, rows: int) -> str:
        return f"n_samples={rows} should be >= {self._k_name}={self._k()}."

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_count(self, self._k_name)

    def _fitted(self, X: Any) -> tuple[Model, Any]:
        check_is_fitted(self)
        return self.model_, self._checked(X, reset=False)

    def predict(self, X: Any) -> np.ndarray:
        """The nearest centre or most likely component of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        return model.predict(X, threads=self.threads)


class _Centres(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, _Learning):
    """Centres of clusters."""

    _k_name = "n_clusters"

    def __init__(
        self,
        n_clusters=8,
        *,
        landmarks=None,
        sampling="dsquared",
        bandwidth=None,
        scale=None,
        collect=None,
        decoder="auto",
        plan=None,
        compute_labels=True,
        random_state=None,
        threads=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.collect = collect
        self.decoder = decoder
        self.plan = plan
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def _k(self) -> int:
        return self.n_clusters

    def _after_fit(self, X: Any, weights: Any) -> None:
        if self.compute_labels:
            self.labels_, self.inertia_ = self.model_._assign(X, weights, self.threads)

    @property
    def cluster_centers_(self) -> np.ndarray:
        """Centres in the units of X."""
        return self.model_.centres

    @property
    def _n_features_out(self) -> int:
        return self.model_.k

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the label of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        self.fit(X, sample_weight=sample_weight)
        if self.compute_labels:
            return self.labels_
        return self._fitted(X)[0].predict(X, threads=self.threads)

    def transform(self, X: Any) -> np.ndarray:
        """Distances of every row to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Between scaled columns with ``scale='standard'``.
        """
        model, X = self._fitted(X)
        return model.transform(X, threads=self.threads)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of the rows: larger is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        score : float
        """
        model, X = self._fitted(X)
        if sample_weight is not None and isinstance(X, np.ndarray):
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return -model._assign(X, sample_weight, self.threads)[1]


class CompressiveKMeans(_Centres):
    """K-means from a sketch of the rows.

    Centres of least mean squared distance, learned from one small sketch: the rows are read a few
    times in order, never all held in memory.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres.
    landmarks : int, optional
        Points of the sketch; 400, or ten for each cluster where that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        How landmarks are chosen.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums; chosen from the rows by
        default.
    scale : {None, 'standard'}, default=None
        Whether columns are divided by their standard deviation before distances are taken.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        Which sums the sketch keeps; those that the decoder needs by default.
    decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
        How centres are learned: from cell moments (the default), from kernel sums, or by the
        paper's decoder.
    plan : Plan, optional
        What to measure, made before; landmarks, sampling, bandwidth, scale and collect are then the
        plan's.
    compute_labels : bool, default=True
        Whether ``fit`` reads the rows once more for ``labels_`` and ``inertia_``.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Threads to use; one a core. They do not change the result.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres; fewer where X has fewer different rows.
    labels_ : ndarray of shape (n_samples,)
        Label of every row of ``fit``.
    inertia_ : float
        Sum of squared distances to the nearest centre over the rows of ``fit``.
    sketch_ : Sketch
        The sketch of all rows so far. Sketches of one plan can be added up.
    plan_ : Plan
        What it measures.
    model_ : Model
        The model as such, which can be saved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from nysketch import CompressiveKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> kmeans = CompressiveKMeans(n_clusters=2, random_state=0).fit(X)
    >>> bool(kmeans.labels_[0] != kmeans.labels_[3])
    True
    >>> np.sort(kmeans.cluster_centers_[:, 0])
    array([ 1., 10.])
    """

    _task = "kmeans"


class CompressiveKMedians(_Centres):
    """K-medians from a sketch of the rows: centres of least mean distance.

    Far rows pull less than in k-means. ``inertia_`` is the sum of distances, not squared.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres.
    landmarks : int, optional
        Points of the sketch; 400, or ten for each cluster where that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        How landmarks are chosen.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums.
    scale : {None, 'standard'}, default=None
        Whether columns are divided by their standard deviation.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        Which sums the sketch keeps; those that the decoder needs by default.
    decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
        How centres are learned.
    plan : Plan, optional
        What to measure, made before.
    compute_labels : bool, default=True
        Whether ``fit`` reads the rows once more for ``labels_`` and ``inertia_``.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Threads to use; one a core.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres.
    labels_ : ndarray of shape (n_samples,)
        Label of every row of ``fit``.
    inertia_ : float
        Sum of distances to the nearest centre over the rows of ``fit``.
    sketch_ : Sketch
        The sketch of all rows so far.
    plan_ : Plan
        What it measures.
    model_ : Model
        The model as such.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from nysketch import CompressiveKMedians
    >>> X = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0]])
    >>> centres = CompressiveKMedians(n_clusters=2, random_state=0).fit(X).cluster_centers_
    >>> np.sort(centres.ravel())
    array([  1., 101.])
    """

    _task = "kmedians"


class CompressiveGaussianMixture(DensityMixin, _Learning):
    """A Gaussian mixture with diagonal covariances from a sketch of the rows.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {'diag'}, default='diag'
        Covariances are diagonal.
    landmarks : int, optional
        Points of the sketch; 400, or ten for each component where that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        How landmarks are chosen.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums.
    scale : {None, 'standard'}, default=None
        Whether columns are divided by their standard deviation while sketching; parameters and
        densities are in the units of X all the same.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        Which sums the sketch keeps; those that the decoder needs by default.
    decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
        How the mixture is learned.
    plan : Plan, optional
        What to measure, made before.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Threads to use; one a core.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariances_ : ndarray of shape (n_components, n_features)
        Variances.
    precisions_ : ndarray of shape (n_components, n_features)
        Their inverses.
    precisions_cholesky_ : ndarray of shape (n_components, n_features)
        Square roots of those.
    converged_ : bool
        Whether the decoder has converged.
    n_iter_ : int
        Its iterations.
    lower_bound_ : float
        Mean log-likelihood of the rows, estimated from the sketch; NaN where it cannot tell.
    sketch_ : Sketch
        The sketch of all rows so far.
    plan_ : Plan
        What it measures.
    model_ : Model
        The model as such.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from nysketch import CompressiveGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(9, 2, (500, 2))])
    >>> mixture = CompressiveGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(mixture.means_[:, 0]).round()
    array([-0.,  9.])
    """

    _task = "gmm"
    _k_name = "n_components"

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="diag",
        landmarks=None,
        sampling="dsquared",
        bandwidth=None,
        scale=None,
        collect=None,
        decoder="auto",
        plan=None,
        random_state=None,
        threads=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.collect = collect
        self.decoder = decoder
        self.plan = plan
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def _k(self) -> int:
        return self.n_components

    def _too_few(self, rows: int) -> str:
        return (
            f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
            f"n_samples = {rows}"
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.covariance_type != "diag":
            raise ValueError(
                f"covariance_type must be 'diag', got {self.covariance_type!r}: other covariances "
                "cannot be learned from this sketch"
            )

    @property
    def weights_(self) -> np.ndarray:
        """Shares of the components."""
        return self.model_.weights

    @property
    def means_(self) -> np.ndarray:
        """Means."""
        return self.model_.means

    @property
    def covariances_(self) -> np.ndarray:
        """Variances."""
        return self.model_.variances

    @property
    def precisions_(self) -> np.ndarray:
        """Inverse variances."""
        return 1.0 / self.covariances_

    @property
    def precisions_cholesky_(self) -> np.ndarray:
        """Inverse standard deviations."""
        return np.sqrt(self.precisions_)

    @property
    def converged_(self) -> bool:
        """Whether the decoder has converged."""
        return self.model_.report["status"] == "Converged"

    @property
    def n_iter_(self) -> int:
        """Iterations of the decoder."""
        return max(1, self.model_.report["iterations"])

    @property
    def lower_bound_(self) -> float:
        """Mean log-likelihood, estimated from the sketch."""
        risk = self.sketch_.estimated_risk(self.model_)
        return float("nan") if risk is None else -risk

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the label of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every component for every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
        """
        model, X = self._fitted(X)
        return model.transform(X, threads=self.threads)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        return model.log_density(X, threads=self.threads)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, component by component.
        y : ndarray of shape (n_samples,)
            Their components.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        rng = check_random_state(self.random_state)
        y = np.repeat(np.arange(self.model_.k), rng.multinomial(n_samples, self.weights_))
        noise = rng.standard_normal((n_samples, self.n_features_in_))
        return self.means_[y] + np.sqrt(self.covariances_)[y] * noise, y

    def _n_parameters(self) -> int:
        k, d = self.means_.shape
        return 2 * k * d + k - 1

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X: lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        bic : float
        """
        log_density = self.score_samples(X)
        return float(-2 * log_density.sum() + self._n_parameters() * np.log(len(log_density)))

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X: lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        aic : float
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())


class NystromSketcher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Sketching):
    """The feature map whose mean over the rows is the sketch.

    Inner products of the transformed rows approach the Gaussian kernel
    ``exp(-||x - y||² / 2σ²)``, so that linear methods on them are kernel methods.

    Parameters
    ----------
    landmarks : int, optional
        Number of landmarks; 400, or all different rows where there are fewer.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        How landmarks are chosen.
    bandwidth : float, optional
        Kernel bandwidth σ²; chosen from the rows by default.
    scale : {None, 'standard'}, default=None
        Whether columns are divided by their standard deviation.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        Which sums the sketch keeps; kernel sums by default.
    plan : Plan, optional
        What to measure, made before; it may be of Fourier features.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Threads to use; one a core.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    plan_ : Plan
        What is measured.
    sketch_ : Sketch
        The sketch of all rows so far.
    landmarks_ : ndarray of shape (m, n_features), or None
        Landmarks in the units of X.
    bandwidth_ : float
        σ² of the feature map.
    embedding_ : ndarray of shape (n_features_out,)
        Mean of the feature map over the rows: the sketch of eq. (3) of the paper.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from nysketch import NystromSketcher
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> sketcher = NystromSketcher(landmarks=30, bandwidth=1.0, random_state=0)
    >>> features = sketcher.fit_transform(X)
    >>> features.shape
    (200, 30)
    >>> np.allclose(features.mean(axis=0), sketcher.embedding_, atol=1e-4)
    True
    """

    def __init__(
        self,
        landmarks=None,
        *,
        sampling="dsquared",
        bandwidth=None,
        scale=None,
        collect=None,
        plan=None,
        random_state=None,
        threads=None,
        verbose=0,
    ):
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.collect = collect
        self.plan = plan
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def _collect(self) -> list[str]:
        return ["kernel"]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks and sketch X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        self
        """
        self._sketch_rows(X, sample_weight, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sketch; the feature map is that of the first call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            More rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        self
        """
        first = not hasattr(self, "sketch_")
        self._sketch_rows(X, sample_weight, reset=first)
        if first and self.plan is None:
            self._check_first_rows()
        return self

    @property
    def landmarks_(self) -> np.ndarray | None:
        """Landmarks in the units of X."""
        return self.plan_.landmarks

    @property
    def bandwidth_(self) -> float:
        """σ² of the feature map."""
        bandwidths = self.plan_.bandwidths
        return bandwidths[len(bandwidths) // 2]

    @property
    def embedding_(self) -> np.ndarray:
        """Mean of the feature map over the rows."""
        return self.sketch_.embedding()

    @property
    def _n_features_out(self) -> int:
        return len(self.embedding_)

    def transform(self, X: Any) -> np.ndarray:
        """The features of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Arrow
            The rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        return self.plan_.transform(self._checked(X, reset=False), threads=self.threads)


def _check_count(estimator: Any, name: str, *, optional: bool = False) -> None:
    value = getattr(estimator, name)
    if optional and value is None:
        return
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (whole and value >= 1):
        kind = "None or an int" if optional else "an int"
        raise ValueError(
            f"The '{name}' parameter of {type(estimator).__name__} must be {kind} in the range "
            f"[1, inf). Got {value!r} instead."
        )


def _seed(random_state: Any) -> int:
    """An integer as it is, so that it means what ``--seed`` of the command line means."""
    if isinstance(random_state, numbers.Integral) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _whole(sample_weight: Any, X: Any, unit: float | None) -> tuple[Any, float]:
    """Weights as whole multiples of a unit, which exact sums need, and the unit."""
    if sample_weight is None or isinstance(sample_weight, str):
        return sample_weight, 1.0 if unit is None else unit
    if isinstance(X, np.ndarray):
        w = _check_sample_weight(sample_weight, X, dtype=np.float64)
    else:
        w = _input.weights(sample_weight)
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ValueError("Negative values in data passed to `sample_weight`, or not finite ones")
    if not np.any(w > 0):
        raise ValueError("sample_weight is zero for every row")
    if unit is None:
        whole = np.all(w == np.floor(w)) and w.max() < 2**32 and w.sum() < 2**36
        fine = max(w.max() / 2**20, w.sum() / 2**36)
        unit = 1.0 if whole else float(2.0 ** np.ceil(np.log2(fine)))
    return np.rint(w / unit) * unit, unit
