"""The feature map behind a sketch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nysketch._core import Plan
from nysketch.estimators._base import Rows, Sketching, _float_type

if TYPE_CHECKING:
    from typing_extensions import Self


class NystromSketcher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Sketching):
    """The feature map whose mean over the rows is the sketch.

    Inner products of the transformed rows approximate the Gaussian kernel
    ``exp(-||x - y||² / 2σ²)``, so linear methods on them are kernel methods.

    Parameters
    ----------
    landmarks : int, optional
        Number of landmarks; by default 400, or all distinct rows if there are fewer.
    sampling : {'dsquared', 'uniform', 'leverage', 'greedy', 'rpcholesky'}, default='dsquared'
        The method of choosing landmarks.
    bandwidth : float, optional
        Kernel bandwidth σ²; by default chosen from the rows.
    scale : {'none', 'standard', 'robust'}, optional
        Whether columns are divided by their standard deviation, or by the width of their middle
        half; by default they are not scaled.
    witnesses : int, optional
        Number of rows of X that the plan retains if the sketch contains cells; 20,000 by default, 0
        for none.
    collect : sequence of {'kernel', 'cells', 'moments'}, optional
        The sums to collect; kernel sums by default.
    plan : Plan, optional
        An existing plan, which may have Fourier features.
    columns : sequence of str, optional
        Columns to use, by name; by default all, which must be numeric.
    skip_invalid : bool, default=False
        Leave out rows with NaN, infinity or null from the sketch, instead of raising. They have no
        features: ``transform`` refuses them.
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
    plan_ : Plan
        The plan of the sketch.
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
        Names of features, if X has names.

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
        witnesses=None,
        collect=None,
        plan=None,
        columns=None,
        skip_invalid=False,
        random_state=None,
        threads=None,
        device="auto",
        verbose=0,
    ):
        self.landmarks = landmarks
        self.sampling = sampling
        self.bandwidth = bandwidth
        self.scale = scale
        self.witnesses = witnesses
        self.collect = collect
        self.plan = plan
        self.columns = columns
        self.skip_invalid = skip_invalid
        self.random_state = random_state
        self.threads = threads
        self.device = device
        self.verbose = verbose

    def _collect(self) -> list[Any]:
        return ["kernel"]

    def _make_plan(self, rows: Rows, common: dict[str, Any]) -> Plan:
        plan = super()._make_plan(rows, common)
        # Some inputs show their columns only when rows are read, so categories are detected here.
        for name in plan.categories:
            raise ValueError(f"column '{name}' holds text, not numbers")
        return plan

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks and sketch X.

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
        self
        """
        _, plan, sketch = self._sketched(X, sample_weight, first=True)
        self.plan_, self.sketch_ = plan, sketch
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sketch. The feature map of the first call is kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
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
        _, plan, sketch = self._sketched(X, sample_weight, first=first)
        if first:
            self._check_first_rows(plan)
        else:
            sketch = self.sketch_ + sketch
            self._warn_unsuited(sketch)
        self.plan_, self.sketch_ = plan, sketch
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
        return self.plan_.n_features()

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = self._checked(X, first=False)
        features = self.plan_.transform(X, threads=self.threads)
        return features.astype(_float_type(X), copy=False)
