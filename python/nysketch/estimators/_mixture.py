"""Gaussian mixtures."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysketch._core import Model
from nysketch.estimators._base import Learning, _check_count, _float_type

_KINDS = ("full", "tied", "diag", "spherical")


class CompressiveGaussianMixture(DensityMixin, Learning):
    """A Gaussian mixture from a sketch of the rows.

    Parameters have the same names as in scikit-learn's ``GaussianMixture``, and the same meaning
    unless stated otherwise.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {'auto', 'full', 'tied', 'diag', 'spherical'}, default='auto'
        Type of the covariances. 'auto' chooses 'full' if there are four retained rows for each
        parameter of the mixture, otherwise 'diag'. ``covariance_type_`` is the choice.
    tol : float, optional
        EM ends when the mean log-likelihood grows by less than this in a step; 0.0001 by default.
    reg_covar : None
        In scikit-learn, a constant added to variances, in squared units of X. Use ``min_variance``
        instead; a value is ignored with a warning.
    min_variance : float, optional
        Minimum variance of a component in any direction, as a share of the column's variance;
        0.0001 by default. It prevents components from collapsing to repeated values; a warning is
        given if some reach the minimum.
    max_iter : int, optional
        Maximum number of steps of EM; 200 by default.
    n_init : int, optional
        Number of starts of EM; 36 by default, most of which are abandoned early.
    init_params : {'kmeans', 'k-means++'}, default='kmeans'
        With either value, starts are drawn by k-means++. Random responsibilities and random rows
        give worse results and are not supported.
    weights_init : array-like of shape (n_components,), optional
        Initial weights, with ``means_init``.
    means_init : array-like of shape (n_components, n_features), optional
        The only initial means.
    precisions_init : array-like, optional
        Inverses of the initial covariances, with ``means_init``, in the shape of ``precisions_``.
    warm_start : bool, default=False
        Start from the mixture of the last fit, if it has the same number of components and
        features.
    contamination : float, default=0.01
        Share of the rows that count as outliers; sets ``offset_``. It does not affect learning.
    landmarks : int, optional
        Number of landmarks; by default 400, or ten per component if that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        The method of choosing landmarks.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums.
    scale : {'none', 'standard', 'robust'}, optional
        Whether columns are divided by their standard deviation, or by the width of their middle
        half, while sketching. Parameters and densities are in the units of X in every case. By
        default columns are not scaled, unless there are categories or dates.
    categorical_features : 'from_dtype', None or array-like, default='from_dtype'
        The categorical columns: by type (text, categoricals and enums of data frames), none, or
        columns given by names, places or a mask, all others being numbers. Text with more than 50
        distinct values is categorical only if it is listed here.
    missing : {'auto', 'error', 'skip', 'partial'}, default='auto'
        How rows with missing values are treated: 'error' raises, 'skip' leaves them out, and with
        'partial' they contribute the values they have. 'auto' is 'partial' if values are missing
        in ``fit``, and 'error' otherwise.
    dates : str, sequence of str, or dict of str to parts, optional
        Columns of dates and times, and the parts to measure: any of 'time', 'hour', 'weekday' and
        'month'.
    log : str or sequence of str, optional
        Columns to measure by their logarithm, ``sign(x) * log(1 + abs(x))``.
    weight_columns : dict of str to float, optional
        Weights of columns in squared distances; by default 1 for numbers, 2 for categories.
    unit : str or sequence of str, optional
        Vectors to scale to unit length in every row; '*' means all numeric columns.
    witnesses : int, optional
        Number of rows of X that the plan retains to show the shape of clusters; 20,000 by default,
        0 for none.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        The sums to collect; by default the ones that the decoder needs.
    decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
        The decoder, as in :class:`CompressiveKMeans`.
    plan : Plan, optional
        An existing plan.
    columns : sequence of str, optional
        Columns to use, by name; by default all columns, without exception.
    skip_invalid : bool, default=False
        Leave out rows with NaN, infinity or null, instead of raising; their label is -1.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Number of threads; one per core by default.
    device : str, default='auto'
        Where the rows are sketched: 'cpu', 'cuda' for all GPUs, or 'cuda:1' for one of them;
        'auto' uses a GPU if that saves time. The result is the same in every case.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariance_type_ : {'full', 'tied', 'diag', 'spherical'}
        Type of the covariances.
    covariances_ : ndarray
        Covariances, in scikit-learn's shapes: (n_components, n_features, n_features) for 'full',
        (n_features, n_features) for 'tied', (n_components, n_features) for 'diag' and
        (n_components,) for 'spherical'. A spherical component has one variance in scaled columns.
        With ``scale='standard'`` this attribute contains that variance, although the variances in
        the units of X differ between columns.
    precisions_ : ndarray
        Inverses of the covariances, in the same shape.
    precisions_cholesky_ : ndarray
        Roots of the precisions: upper triangular U with ``precisions_ = U @ U.T``, or square roots.
    converged_ : bool
        Whether the decoder has converged.
    level_shares_ : dict of str to ndarray of shape (n_components, n_levels)
        The share of each level in each component, by category.
    levels_ : dict of str to list of str
        The levels of each category, in the same order; the last two are '(other)' and '(missing)'.
    n_iter_ : int
        Iterations of the decoder.
    lower_bound_ : float
        Mean log-likelihood of the rows, estimated from the sketch; NaN if the sketch does not
        contain the necessary sums. ``model_.report['likelihood']`` has its 95 % interval.
    lower_bounds_ : ndarray of shape (1,)
        ``lower_bound_`` as an array; the values of earlier iterations are not kept.
    offset_ : float
        The log density below which the share ``contamination`` of the rows lies, estimated from the
        sketch.
    sketch_ : Sketch
        The sketch of all rows so far.
    plan_ : Plan
        The plan of the sketch.
    model_ : Model
        The model itself, which can be saved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from nysketch import CompressiveGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (500, 2)), rng.normal(9, 2, (500, 2))])
    >>> mixture = CompressiveGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(mixture.means_[:, 0]).round()
    array([-0.,  9.])
    >>> mixture.covariance_type_
    'full'
    >>> mixture.predict_outliers([[0.0, 0.0], [9.0, 9.0], [4.0, -8.0]])
    array([ 1,  1, -1])
    """

    _task = "gmm"
    _k_name = "n_components"

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="auto",
        tol=None,
        reg_covar=None,
        min_variance=None,
        max_iter=None,
        n_init=None,
        init_params="kmeans",
        weights_init=None,
        means_init=None,
        precisions_init=None,
        warm_start=False,
        contamination=0.01,
        landmarks=None,
        sampling="dsquared",
        bandwidth=None,
        scale=None,
        categorical_features="from_dtype",
        missing="auto",
        dates=None,
        log=None,
        weight_columns=None,
        unit=None,
        witnesses=None,
        collect=None,
        decoder="auto",
        plan=None,
        columns=None,
        skip_invalid=False,
        random_state=None,
        threads=None,
        device="auto",
        verbose=0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.min_variance = min_variance
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.warm_start = warm_start
        self.contamination = contamination
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.categorical_features = categorical_features
        self.missing = missing
        self.dates = dates
        self.log = log
        self.weight_columns = weight_columns
        self.unit = unit
        self.witnesses = witnesses
        self.collect = collect
        self.decoder = decoder
        self.plan = plan
        self.columns = columns
        self.skip_invalid = skip_invalid
        self.random_state = random_state
        self.threads = threads
        self.device = device
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
        _check_count(self, "max_iter", optional=True)
        _check_count(self, "n_init", optional=True)
        _check_range(self, "tol", 0, math.inf, "[0, inf)", optional=True)
        _check_range(self, "min_variance", 0, 1, "(0, 1)", optional=True)
        _check_range(self, "contamination", 1e-4, 0.5, "[0.0001, 0.5]")
        _check_choice(self, "covariance_type", ("auto", *_KINDS))
        _check_choice(self, "init_params", ("kmeans", "k-means++"))
        if self.means_init is None:
            for name in ("weights_init", "precisions_init"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} goes with means_init, which says which component is which"
                    )

    def _warn_ignored(self) -> None:
        if self.reg_covar is not None:
            warnings.warn(
                f"CompressiveGaussianMixture ignores reg_covar={self.reg_covar!r}, which is added "
                "to variances in the squared units of X; use min_variance, the least variance as a "
                "share of the column's",
                UserWarning,
                stacklevel=4,
            )

    def _forget(self) -> None:
        before = self.__dict__.get("_model") or self.__dict__.get("_before")
        super()._forget()
        if self.warm_start:
            self._before = before

    def _start(self, k: int) -> dict[str, Any]:
        said = {
            "covariance": None if self.covariance_type == "auto" else self.covariance_type,
            "min_variance": self.min_variance,
            "restarts": self.n_init,
            "max_iterations": self.max_iter,
            "tolerance": self.tol,
            "threads": self.threads,
        }
        before = self.__dict__.get("_before") if self.warm_start else None
        size = (k, self._width)
        if before is not None and (before.k, len(before.columns)) == size:
            return said | _mixture_of(before)
        if self.means_init is None or k != self.n_components:
            return said
        return said | self._given()

    def _given(self) -> dict[str, Any]:
        """Return the initial mixture that was given."""
        k, means = self.n_components, np.asarray(self.means_init, dtype=np.float64)
        d = self._width
        _check_shape("means_init", means, (k, d))
        given = {"init": means}
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
            _check_shape("weights_init", weights, (k,))
            if np.any(weights < 0) or not np.isclose(weights.sum(), 1):
                raise ValueError(f"weights_init must be shares of one, got {weights.tolist()}")
            given["init_weights"] = weights
        if self.precisions_init is not None:
            if self.covariance_type == "auto":
                raise ValueError("precisions_init goes with a covariance_type other than 'auto'")
            given["init_covariances"] = _inverses(self.precisions_init, self.covariance_type, k, d)
        return given

    @property
    def covariance_type_(self) -> str:
        """Type of the covariances."""
        return self.model_.covariance_type

    @property
    def weights_(self) -> np.ndarray:
        """Shares of the components."""
        return self.model_.weights.astype(self._dtype, copy=False)

    @property
    def means_(self) -> np.ndarray:
        """Means."""
        return self.model_.means.astype(self._dtype, copy=False)

    @property
    def covariances_(self) -> np.ndarray:
        """Covariances."""
        return self.model_.covariances.astype(self._dtype, copy=False)

    @property
    def precisions_(self) -> np.ndarray:
        """Inverses of the covariances."""
        root = self._precision_roots()
        precisions = root @ np.swapaxes(root, -1, -2) if self._has_matrices() else root**2
        return precisions.astype(self._dtype, copy=False)

    @property
    def precisions_cholesky_(self) -> np.ndarray:
        """Roots of the inverses."""
        return self._precision_roots().astype(self._dtype, copy=False)

    def _has_matrices(self) -> bool:
        return self.model_.covariance_type in ("full", "tied")

    def _precision_roots(self) -> np.ndarray:
        covariances = self.model_.covariances
        if self._has_matrices():
            return np.swapaxes(np.linalg.inv(np.linalg.cholesky(covariances)), -1, -2)
        return 1.0 / np.sqrt(covariances)

    def _before_drop(self) -> None:
        self._lower_bound = self.lower_bound_

    @property
    def converged_(self) -> bool:
        """Whether the decoder has converged."""
        return self.model_.report["status"] == "Converged"

    @property
    def lower_bound_(self) -> float:
        """Mean log-likelihood, estimated from the sketch."""
        if hasattr(self, "_lower_bound"):
            return self._lower_bound
        likelihood = self.model_.report["likelihood"]
        if likelihood is not None:
            return likelihood["mean"]
        risk = self.sketch_.estimated_risk(self.model_)
        return float("nan") if risk is None else -risk

    @property
    def lower_bounds_(self) -> np.ndarray:
        """``lower_bound_`` as an array; the values of earlier iterations are not kept."""
        return np.array([self.lower_bound_])

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the label of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
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
        """Return the probability of every component for every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
        """
        model, X = self._fitted(X)
        values = model.transform(X, threads=self.threads, skip_invalid=self._skips())
        return values.astype(_float_type(X), copy=False)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log density of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        values = model.log_density(X, threads=self.threads, skip_invalid=self._skips())
        return values.astype(_float_type(X), copy=False)

    @property
    def offset_(self) -> float:
        """The log density below which the share ``contamination`` of the rows lies."""
        if self.model_.densities is None:
            raise AttributeError(
                f"this {type(self).__name__} has no offset_: without cells, the sketch does not "
                "tell how dense the rows lie"
            )
        return self.model_.threshold(self.contamination)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log density of every row minus ``offset_``; negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        score : ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_

    def predict_outliers(self, X: Any) -> np.ndarray:
        """Return whether rows are outliers, in the form of scikit-learn's outlier detectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        is_inlier : ndarray of shape (n_samples,)
            -1 for outliers, 1 for others; with ``skip_invalid``, 0 for unusable rows.
        """
        score = self.decision_function(X)
        return np.where(np.isnan(score), 0, np.where(score < 0, -1, 1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return float(self._log_densities(X).mean())

    def _log_densities(self, X: Any) -> np.ndarray:
        """Return the log densities of the rows that are not skipped."""
        found = self.score_samples(X)
        return found[~np.isnan(found)]

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

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
        noise = rng.standard_normal((n_samples, self._width))
        if self._has_matrices():
            shape = (self.model_.k, self._width, self._width)
            roots = np.broadcast_to(np.linalg.cholesky(self.model_.covariances), shape)
            for component, root in enumerate(roots):
                noise[y == component] = noise[y == component] @ root.T
        else:
            noise *= np.sqrt(self.model_.variances)[y]
        return (self.means_[y] + noise).astype(self._dtype, copy=False), y

    def _n_parameters(self) -> int:
        return self.model_.n_parameters

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        bic : float
        """
        log_density = self._log_densities(X)
        return float(-2 * log_density.sum() + self._n_parameters() * np.log(len(log_density)))

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion on X; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        aic : float
        """
        return float(-2 * self._log_densities(X).sum() + 2 * self._n_parameters())


def _mixture_of(model: Model) -> dict[str, Any]:
    """Return a mixture as initial values."""
    covariances = model.variances
    if model.covariance_type in ("full", "tied"):
        d = len(model.columns)
        covariances = np.broadcast_to(model.covariances, (model.k, d, d))
    # The minimum weight allows a component without rows to get some again.
    weights = np.maximum(model.weights, 1e-6)
    return {"init": model.means, "init_weights": weights, "init_covariances": covariances}


def _inverses(precisions: Any, kind: str, k: int, d: int) -> np.ndarray:
    """Convert precisions, in the shape of their type, to covariances (k, d, d) or (k, d)."""
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    precisions = np.asarray(precisions, dtype=np.float64)
    _check_shape("precisions_init", precisions, shapes[kind])
    if kind in ("full", "tied"):
        symmetric = np.allclose(precisions, np.swapaxes(precisions, -1, -2))
        if not symmetric or np.any(np.linalg.eigvalsh(precisions) <= 0):
            raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
        return np.broadcast_to(np.linalg.inv(precisions), (k, d, d))
    if np.any(precisions <= 0):
        raise ValueError(f"'{kind} precision' should be positive")
    return np.broadcast_to(1 / precisions.reshape(k, -1), (k, d))


def _check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(
            f"The parameter '{name}' should have the shape of {shape}, but got {array.shape}"
        )


def _check_range(
    estimator: Any, name: str, low: float, high: float, text: str, *, optional: bool = False
) -> None:
    """Check that a number is in a range; the brackets of the text show which ends belong to it."""
    value = getattr(estimator, name)
    if optional and value is None:
        return
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    above = number and (value >= low if text.startswith("[") else value > low)
    if not (above and (value <= high if text.endswith("]") else value < high)):
        kind = "None or a float" if optional else "a float"
        raise ValueError(
            f"The '{name}' parameter of {type(estimator).__name__} must be {kind} in the range "
            f"{text}. Got {value!r} instead."
        )


def _check_choice(estimator: Any, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(estimator, name)
    if not (isinstance(value, str) and value in choices):
        raise ValueError(
            f"The '{name}' parameter of {type(estimator).__name__} must be one of "
            f"{', '.join(map(repr, choices))}. Got {value!r} instead."
        )
