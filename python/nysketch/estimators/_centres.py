"""K-means and k-medians."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight

from nysketch import _input
from nysketch._core import Model, Sketch
from nysketch.estimators._base import Learning, Rows


class Centres(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learning):
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

    def _after_fit(self, rows: Rows, model: Model, sketch: Sketch) -> None:
        if not self.compute_labels:
            return
        labels, inertia = model._assign(rows.X, rows.weights, self.threads)
        if rows.weights is None and len(labels) != sketch.rows:
            raise ValueError(
                f"X gave {sketch.rows} rows for the sketch and {len(labels)} for the labels; a "
                "stream can be read only once: pass a table, a dataset, or a function that "
                "returns a new stream, or compute_labels=False"
            )
        self.labels_, self.inertia_ = labels, inertia

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
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if self.compute_labels else self.predict(X)

    def transform(self, X: Any) -> np.ndarray:
        """Distances of every row to the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
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
        X : array-like of shape (n_samples, n_features), path or Arrow
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
        array = _input.array_of(X)
        if sample_weight is not None and array is not None:
            sample_weight = _check_sample_weight(sample_weight, array, dtype=np.float64)
        return -model._assign(X, sample_weight, self.threads)[1]


class CompressiveKMeans(Centres):
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


class CompressiveKMedians(Centres):
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
