"""Gaussian mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nysketch.estimators._base import Learning, _float_type


class CompressiveGaussianMixture(DensityMixin, Learning):
    """A Gaussian mixture with diagonal covariances from a sketch of the rows.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {'diag'}, default='diag'
        Covariances are diagonal.
    tol : float, default=1e-3
        As in scikit-learn's ``GaussianMixture``, for scripts written for it. This and the next two
        are ignored; a warning says so where they differ from the defaults there.
    max_iter : int, default=100
        Likewise.
    n_init : int, default=1
        Likewise.
    landmarks : int, optional
        Points of the sketch; 400, or ten for each component where that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        How landmarks are chosen.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums.
    scale : {None, 'standard'}, default=None
        Whether columns are divided by their standard deviation while sketching; parameters and
        densities are in the units of X all the same.
    witnesses : int, optional
        Rows of X that the plan keeps to show the shape of clusters; 5,000, 0 for none.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        Which sums the sketch keeps; those that the decoder needs by default.
    decoder : {'auto', 'cells', 'kernel', 'clompr', 'clomp'}, default='auto'
        How the mixture is learned.
    plan : Plan, optional
        What to measure, made before.
    columns : sequence of str, optional
        Columns to use, by name; all by default, which must hold numbers.
    skip_invalid : bool, default=False
        Leave rows with NaN, infinity or null out, instead of raising; their label is -1.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Threads to use; one per core.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariances_ : ndarray
        Covariances, in scikit-learn's shapes: (n_components, n_features, n_features) for 'full',
        (n_features, n_features) for 'tied', (n_components, n_features) for 'diag' and
        (n_components,) for 'spherical'. Spherical components have one variance in scaled columns:
        with ``scale='standard'`` that is what this holds, and columns of X have different ones.
    precisions_ : ndarray
        Their inverses, in the same shape.
    precisions_cholesky_ : ndarray
        Roots of those: upper triangles U with ``precisions_ = U @ U.T``, or square roots.
    converged_ : bool
        Whether the decoder has converged.
    n_iter_ : int
        Its iterations.
    lower_bound_ : float
        Mean log-likelihood of the rows, estimated from the sketch; NaN where it cannot tell.
    lower_bounds_ : ndarray of shape (1,)
        The same; those of earlier iterations are not kept.
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
    _IGNORED = {"tol": 1e-3, "max_iter": 100, "n_init": 1}

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="diag",
        tol=1e-3,
        max_iter=100,
        n_init=1,
        landmarks=None,
        sampling="dsquared",
        bandwidth=None,
        scale=None,
        witnesses=None,
        collect=None,
        decoder="auto",
        plan=None,
        columns=None,
        skip_invalid=False,
        random_state=None,
        threads=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.witnesses = witnesses
        self.collect = collect
        self.decoder = decoder
        self.plan = plan
        self.columns = columns
        self.skip_invalid = skip_invalid
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

    @property
    def converged_(self) -> bool:
        """Whether the decoder has converged."""
        return self.model_.report["status"] == "Converged"

    @property
    def lower_bound_(self) -> float:
        """Mean log-likelihood, estimated from the sketch."""
        risk = self.sketch_.estimated_risk(self.model_)
        return float("nan") if risk is None else -risk

    @property
    def lower_bounds_(self) -> np.ndarray:
        """The same; those of earlier iterations are not kept."""
        return np.array([self.lower_bound_])

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the label of every row.

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
        """Probability of every component for every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
        """
        model, X = self._fitted(X)
        values = model.transform(X, threads=self.threads, skip_invalid=bool(self.skip_invalid))
        return values.astype(_float_type(X), copy=False)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        values = model.log_density(X, threads=self.threads, skip_invalid=bool(self.skip_invalid))
        return values.astype(_float_type(X), copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows.

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
        """Log densities of the rows that are not skipped."""
        found = self.score_samples(X)
        return found[~np.isnan(found)] if self.skip_invalid else found

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
        if self._has_matrices():
            shape = (self.model_.k, self.n_features_in_, self.n_features_in_)
            roots = np.broadcast_to(np.linalg.cholesky(self.model_.covariances), shape)
            for component, root in enumerate(roots):
                noise[y == component] = noise[y == component] @ root.T
        else:
            noise *= np.sqrt(self.model_.variances)[y]
        return (self.means_[y] + noise).astype(self._dtype, copy=False), y

    def _n_parameters(self) -> int:
        return self.model_.n_parameters

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X: lower is better.

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
        """Akaike information criterion on X: lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        aic : float
        """
        return float(-2 * self._log_densities(X).sum() + 2 * self._n_parameters())
