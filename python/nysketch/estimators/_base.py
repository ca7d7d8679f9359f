"""What the estimators share: from X to a plan and a sketch, and from the sketch to a model."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nysketch import _input
from nysketch._core import Model, Plan, Sketch, _default_landmarks

if TYPE_CHECKING:
    from typing_extensions import Self


class Rows(NamedTuple):
    """Checked rows and their weights in whole units."""

    X: Any
    weights: Any
    unit: float


class Sketching(BaseEstimator):
    """An estimator with a plan and a sketch."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sketch_")

    def _collect(self) -> list[Any]:
        """The sums that are needed."""
        raise NotImplementedError

    def _clusters(self) -> int | None:
        """How many clusters will be learned."""
        return None

    def _forget(self) -> None:
        """Before a new fit: one that fails leaves an estimator that is not fitted."""
        for name in ("sketch_", "plan_", "labels_", "inertia_", "_model"):
            self.__dict__.pop(name, None)

    def _sketched(self, X: Any, sample_weight: Any, *, first: bool) -> tuple[Rows, Plan, Sketch]:
        """X, its plan, which is made if this is the ``first`` call, and its sketch."""
        self._check_parameters()
        if first:
            self._forget()
            self._seed = _seed(self.random_state)
        plan = self.plan if self.plan is not None else None if first else self.plan_
        rows = self._rows(X, sample_weight, plan, first=first)
        common = {
            "weights": rows.weights,
            "threads": self.threads,
            "verbose": bool(self.verbose),
        }
        try:
            if plan is None:
                plan = self._make_plan(rows, common)
            sketch = plan.sketch(rows.X, **common)
        except ValueError as error:
            # Rows of an estimator get labels, so that none may be skipped.
            message = str(error).replace(", or skip such rows with skip_invalid=True", "")
            raise ValueError(message) from None
        if _input.array_of(rows.X) is None:
            self.n_features_in_ = len(plan.columns)
            self.feature_names_in_ = np.asarray(plan.columns, dtype=object)
        return rows, plan, sketch

    def _rows(self, X: Any, sample_weight: Any, plan: Plan | None, *, first: bool) -> Rows:
        unit = None if plan is None else plan.weight_unit
        if plan is not None and sample_weight is not None and unit is None:
            raise ValueError(
                "sample_weight must be given at the first call or never, and with a plan only "
                "where it was made with weights"
            )
        X = self._checked(X, first=first)
        array = _input.array_of(X)
        if unit is not None and sample_weight is None and array is not None:
            sample_weight = np.ones(len(array))
        return Rows(X, *_in_units(sample_weight, array, unit))

    def _make_plan(self, rows: Rows, common: dict[str, Any]) -> Plan:
        return Plan.from_data(
            rows.X,
            columns="all",
            landmarks=self.landmarks,
            clusters=self._clusters(),
            sampling=self.sampling,
            bandwidth=self.bandwidth,
            scale=self.scale,
            collect=self.collect if self.collect is not None else self._collect(),
            weight_unit=rows.unit,
            seed=self._seed,
            warn=False,
            **common,
        )

    def _check_first_rows(self, plan: Plan, least: int = 1) -> None:
        """Landmarks stay those of the first rows: too few of them would spoil all that follows."""
        if self.plan is not None:
            return
        assert plan.landmarks is not None, "estimators make plans with landmarks"
        found = len(plan.landmarks)
        wanted = self.landmarks or _default_landmarks(self._clusters())
        if found >= wanted:
            return
        message = (
            f"landmarks are chosen from the rows of the first call, which hold only {found} "
            f"different ones, fewer than {least if found < least else wanted}; pass more rows "
            "first, or a plan"
        )
        if found < least:
            raise ValueError(f"n_samples={found}: {message}")
        warnings.warn(message, UserWarning, stacklevel=3)

    def _checked(self, X: Any, *, first: bool) -> Any:
        """X as an array, with names where it has some, or as it is where it comes in batches."""
        if _input.is_batches(X):
            if first:
                self.__dict__.pop("feature_names_in_", None)
            return X
        array = validate_data(self, _input.unmasked(X), reset=first, dtype="numeric")
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            return _input.Named(array, [str(name) for name in self.feature_names_in_])
        return array

    def _check_parameters(self) -> None:
        _check_count(self, "landmarks", optional=True)
        _check_count(self, "threads", optional=True)
        if self.plan is not None and not isinstance(self.plan, Plan):
            raise TypeError(f"plan must be a nysketch.Plan, got {type(self.plan).__name__}")


class Learning(Sketching):
    """An estimator that learns a model of ``self._k()`` centres or components."""

    _task: str
    _k_name: str
    _model: Model | None

    def _collect(self) -> list[Any]:
        return ["cells"] if self.decoder in ("auto", "cells") else ["kernel"]

    def _k(self) -> int:
        raise NotImplementedError

    def _clusters(self) -> int | None:
        return self._k()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Sketch X and learn from the sketch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows. Anything with the Arrow stream interface is read batch by batch, several
            times; a pyarrow dataset or a function that returns a new stream may be larger than
            memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Row weights, rounded to a small unit unless they are whole numbers; or the name of a
            column of an Arrow table with whole numbers.

        Returns
        -------
        self
        """
        rows, plan, sketch = self._sketched(X, sample_weight, first=True)
        model = self._learn(plan, sketch)
        self._after_fit(rows, model, sketch)
        self.plan_, self.sketch_, self._model = plan, sketch, model
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sketch.

        The plan is that of the first call, unless one is given: landmarks are chosen from its
        rows. The model is learned when it is next asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            More rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Row weights; all calls have them, or none. The unit is that of the first call.

        Returns
        -------
        self
        """
        first = not hasattr(self, "sketch_")
        _, plan, sketch = self._sketched(X, sample_weight, first=first)
        if first:
            self._check_first_rows(plan, self._k())
        else:
            sketch = self.sketch_ + sketch
        self._forget()
        self.plan_, self.sketch_, self._model = plan, sketch, None
        return self

    def _after_fit(self, rows: Rows, model: Model, sketch: Sketch) -> None:
        pass

    @property
    def model_(self) -> Model:
        """The model, learned anew where rows were added."""
        if not hasattr(self, "sketch_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        if self._model is None:
            self._model = self._learn(self.plan_, self.sketch_)
        return self._model

    def _learn(self, plan: Plan, sketch: Sketch) -> Model:
        k = self._k()
        if plan.weight_unit is None and sketch.rows < k:
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
        return self.model_, self._checked(X, first=False)

    def predict(self, X: Any) -> np.ndarray:
        """The nearest centre or most likely component of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        return model.predict(X, threads=self.threads)


def _check_count(estimator: Any, name: str, *, optional: bool = False) -> None:
    value = getattr(estimator, name)
    if optional and value is None:
        return
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not (whole and int(value) >= 1):
        kind = "None or an int" if optional else "an int"
        raise ValueError(
            f"The '{name}' parameter of {type(estimator).__name__} must be {kind} in the range "
            f"[1, inf). Got {value!r} instead."
        )


def _seed(random_state: Any) -> int:
    """An integer as it is, so that it means what ``--seed`` of the command line means."""
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _in_units(
    sample_weight: Any, array: np.ndarray | None, unit: float | None
) -> tuple[Any, float]:
    """Weights as whole multiples of a unit, which exact sums need, and the unit."""
    if sample_weight is None or isinstance(sample_weight, str):
        return sample_weight, 1.0 if unit is None else unit
    if array is not None:
        w = _check_sample_weight(sample_weight, array, dtype=np.float64)
    else:
        w = _input.weights(sample_weight)
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ValueError("Negative values in data passed to `sample_weight`, or not finite ones")
    if not np.any(w > 0):
        raise ValueError("sample_weight is zero for every row")
    if unit is None:
        whole = np.all(w == np.floor(w)) and w.max() < 2**32 and w.sum() < 2**37
        # A row counts less than 2**32 units and a sketch 2**38; a thousand times as many rows may
        # follow by partial_fit.
        fine = max(w.max() / 2**31, w.sum() / 2**28)
        unit = 1.0 if whole else float(2.0 ** np.ceil(np.log2(fine)))
    rounded = np.rint(w / unit) * unit
    if np.any((rounded == 0) & (w > 0)):
        least = w[w > 0].min()
        raise ValueError(
            f"the weight {least:g} is lost beside the unit {unit:g} of all weights; scale the "
            "weights of all calls so that none is so small, or leave such rows out"
        )
    return rounded, unit
