"""K-means and k-medians."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight

from nysketch import _device, _input
from nysketch._core import Model, Sketch
from nysketch.estimators._base import Learning, Rows, _float_type


class Centres(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Learning):
    """Base class for centres of clusters."""

    _k_name = "n_clusters"
    _IGNORED = {
        "init": "k-means++",
        "n_init": "auto",
        "max_iter": 300,
        "tol": 1e-4,
        "copy_x": True,
        "algorithm": "lloyd",
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        copy_x=True,
        algorithm="lloyd",
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
        compute_labels=True,
        random_state=None,
        threads=None,
        device="auto",
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.copy_x = copy_x
        self.algorithm = algorithm
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
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.threads = threads
        self.device = device
        self.verbose = verbose

    def _k(self) -> int:
        return self.n_clusters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if callable(self.init):
            raise ValueError(
                "init must be 'k-means++', 'random' or an array of centres; a function of the rows "
                "cannot be used, since no rows are kept"
            )
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(
                f"init must be 'k-means++', 'random' or an array of centres, got {self.init!r}"
            )

    def _start(self, k: int) -> dict[str, Any]:
        if isinstance(self.init, str) or self.init is None:
            return {}
        init = np.array(self.init, dtype=np.float64)
        if init.ndim != 2 or len(init) != self.n_clusters:
            raise ValueError(
                f"The shape of the initial centers {init.shape} does not match the number of "
                f"clusters {self.n_clusters}."
            )
        if k != len(init):
            return {}
        logs = init[:, self._logs]
        init[:, self._logs] = np.copysign(np.log1p(np.abs(logs)), logs)
        return {"init": init}

    def _assigned(self, rows: Rows, model: Model) -> tuple[np.ndarray, float]:
        return model._assign(rows.X, rows.weights, self.threads, self._skips())

    def _after_fit(self, rows: Rows, model: Model, sketch: Sketch) -> None:
        if not self.compute_labels:
            return
        labels, inertia = self._assigned(rows, model)
        if rows.weights is None and len(labels) != sketch.rows + sketch.skipped:
            raise ValueError(
                f"X gave {sketch.rows} rows for the sketch and {len(labels)} for the labels; a "
                "stream can be read only once: pass a table, a dataset, or a function that "
                "returns a new stream, or compute_labels=False"
            )
        self._labels, self._inertia = labels, inertia

    def _after_partial_fit(self, rows: Rows) -> None:
        # Keeps rows that can be read again, in case labels_ is used. An array is copied, because
        # the caller may overwrite it.
        if not _input.is_batches(rows.X) or _input.files(rows.X) is not None:
            array = isinstance(rows.X, np.ndarray) and self.compute_labels
            self._last = rows._replace(X=rows.X.copy()) if array else rows

    def _before_drop(self) -> None:
        # Labels of the last rows, and what the centres leave, where there are any.
        for name in ("labels_", "inertia_"):
            value = getattr(self, name, None)
            if value is not None:
                setattr(self, f"_{name[:-1]}", value)

    @property
    def labels_(self) -> np.ndarray:
        """Label of every row of ``fit``, or of the last ``partial_fit``."""
        if hasattr(self, "_labels"):
            return self._labels
        last = getattr(self, "_last", None)
        if last is None or not self.compute_labels:
            raise AttributeError(f"this {type(self).__name__} has no labels; use predict")
        self._labels = self._assigned(last, self.model_)[0]
        return self._labels

    @property
    def inertia_(self) -> float:
        """Sum of (squared) distances to the nearest centre over all rows.

        After ``partial_fit`` it is estimated from the sketch.
        """
        if hasattr(self, "_inertia"):
            return self._inertia
        wanted = self.compute_labels and hasattr(self, "sketch_")
        risk = self.sketch_.estimated_risk(self.model_) if wanted else None
        if risk is None:
            raise AttributeError(f"this {type(self).__name__} has no inertia; use score")
        return risk * self.sketch_.weight

    @property
    def cluster_centers_(self) -> np.ndarray:
        """Centres in the units of X."""
        centres = self.model_.centres
        logs = centres[:, self._logs]
        centres[:, self._logs] = np.copysign(np.expm1(np.abs(logs)), logs)
        return centres.astype(self._dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.model_.k

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
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if self.compute_labels else self.predict(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the distances of every row to the centres.

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
        values = model.transform(X, threads=self.threads, skip_invalid=self._skips())
        return values.astype(_float_type(X), copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of the rows; larger is better.

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
        batches = _input.is_batches(X) or _input.is_pandas(X)
        if sample_weight is not None and not batches:
            array = X.array if isinstance(X, _input.Named) else X
            sample_weight = _device.on_host(sample_weight)
            sample_weight = _check_sample_weight(sample_weight, array, dtype=np.float64)
        return -self._assigned(Rows(X, sample_weight), model)[1]


class CompressiveKMeans(Centres):
    """K-means from a sketch of the rows.

    Learns the centres with the smallest mean squared distance from one small sketch. The rows are
    read a few times in order, and they are never all held in memory.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres.
    init : {'k-means++', 'random'} or array-like, default='k-means++'
        Initial centres, as an array of shape (n_clusters, n_features); otherwise several starts are
        drawn.
    n_init : 'auto' or int, default='auto'
        Accepted for compatibility with scikit-learn's ``KMeans``. This parameter and the next four
        are ignored, with a warning if a value differs from the default in scikit-learn.
    max_iter : int, default=300
        Ignored, for compatibility.
    tol : float, default=1e-4
        Ignored, for compatibility.
    copy_x : bool, default=True
        Ignored, for compatibility.
    algorithm : {'lloyd', 'elkan'}, default='lloyd'
        Ignored, for compatibility.
    landmarks : int, optional
        Number of landmarks; by default 400, or ten per cluster if that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        The method of choosing landmarks.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums; by default chosen from the
        rows.
    scale : {'none', 'standard', 'robust'}, optional
        Whether columns are divided by their standard deviation, or by the width of their middle
        half; by default they are not scaled, unless there are categories or dates.
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
        The decoder: by default centres are learned from cell moments; the others use kernel sums,
        and 'clompr' is the paper's decoder.
    plan : Plan, optional
        An existing plan. It determines landmarks, sampling, bandwidth, scale and collect.
    columns : sequence of str, optional
        Columns to use, by name; by default all columns, without exception.
    skip_invalid : bool, default=False
        Leave out rows with NaN, infinity or null, instead of raising; their label is -1.
    compute_labels : bool, default=True
        Whether ``fit`` reads the rows again for ``labels_`` and ``inertia_``.
    random_state : int, RandomState instance or None, default=None
        An integer makes the result reproducible.
    threads : int, optional
        Number of threads; one per core by default. It does not change the result.
    device : str, default='auto'
        Where the rows are sketched: 'cpu', 'cuda' for all GPUs, or 'cuda:1' for one of them;
        'auto' uses a GPU if that saves time. The result is the same in every case.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres; fewer if X has fewer distinct rows. If X has other columns than numbers, the
        centres contain only the numeric ones, named in ``model_.columns``.
    labels_ : ndarray of shape (n_samples,)
        Label of every row of ``fit``, or of the last ``partial_fit``.
    inertia_ : float
        Sum of squared distances to the nearest centre over all rows; estimated from the sketch
        after ``partial_fit``.
    level_shares_ : dict of str to ndarray of shape (n_clusters, n_levels)
        The share of each level in each cluster, by category.
    levels_ : dict of str to list of str
        The levels of each category, in the same order; the last two are '(other)' and '(missing)'.
    n_iter_ : int
        Iterations of the decoder.
    sketch_ : Sketch
        The sketch of all rows so far. Sketches of one plan can be added.
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
    """K-medians from a sketch of the rows: centres with the smallest mean distance.

    Distant rows have less influence than in k-means. ``inertia_`` is the sum of distances, not
    squared.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres.
    init : {'k-means++', 'random'} or array-like, default='k-means++'
        Initial centres, as an array of shape (n_clusters, n_features); otherwise several starts are
        drawn.
    n_init : 'auto' or int, default='auto'
        Accepted for compatibility with scikit-learn's ``KMeans``. This parameter and the next four
        are ignored, with a warning if a value differs from the default in scikit-learn.
    max_iter : int, default=300
        Ignored, for compatibility.
    tol : float, default=1e-4
        Ignored, for compatibility.
    copy_x : bool, default=True
        Ignored, for compatibility.
    algorithm : {'lloyd', 'elkan'}, default='lloyd'
        Ignored, for compatibility.
    landmarks : int, optional
        Number of landmarks; by default 400, or ten per cluster if that is more.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        The method of choosing landmarks.
    bandwidth : float or sequence of float, optional
        Kernel bandwidths σ², for the decoders that use kernel sums.
    scale : {'none', 'standard', 'robust'}, optional
        Whether columns are divided by their standard deviation, or by the width of their middle
        half; by default they are not scaled, unless there are categories or dates.
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
    compute_labels : bool, default=True
        Whether ``fit`` reads the rows again for ``labels_`` and ``inertia_``.
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
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres.
    labels_ : ndarray of shape (n_samples,)
        Label of every row of ``fit``, or of the last ``partial_fit``.
    inertia_ : float
        Sum of distances to the nearest centre over all rows; estimated from the sketch after
        ``partial_fit``.
    level_shares_ : dict of str to ndarray of shape (n_clusters, n_levels)
        The share of each level in each cluster, by category.
    levels_ : dict of str to list of str
        The levels of each category, in the same order; the last two are '(other)' and '(missing)'.
    n_iter_ : int
        Iterations of the decoder.
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
    >>> from nysketch import CompressiveKMedians
    >>> X = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0]])
    >>> centres = CompressiveKMedians(n_clusters=2, random_state=0).fit(X).cluster_centers_
    >>> np.sort(centres.ravel())
    array([  1., 101.])
    """

    _task = "kmedians"
