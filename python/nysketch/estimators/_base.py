"""Shared by the estimators: from X to a plan and a sketch, and from the sketch to a model."""

from __future__ import annotations

import numbers
import re
import warnings
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nysketch import _device, _input
from nysketch._core import Model, Plan, Sketch, _default_landmarks

if TYPE_CHECKING:
    from typing_extensions import Self


class Rows(NamedTuple):
    """Checked rows and their weights."""

    X: Any
    weights: Any


class Sketching(BaseEstimator):
    """An estimator with a plan and a sketch."""

    #: Parameters of scikit-learn's estimators that have no effect here, with their defaults there.
    _IGNORED: ClassVar[dict[str, Any]] = {}

    # Options that estimators of numbers alone do not offer.
    categorical_features: Any = None
    missing: Any = "error"
    dates: Any = None
    log: Any = None
    weight_columns: Any = None
    unit: Any = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        init = cls.__init__
        if "__init__" not in vars(cls) and isinstance(init, FunctionType):
            # An unknown keyword is reported with the name of the class that was called, not of its
            # base.
            own = FunctionType(
                init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__
            )
            own.__kwdefaults__, own.__module__ = init.__kwdefaults__, cls.__module__
            own.__qualname__ = f"{cls.__qualname__}.__init__"
            cls.__init__ = own  # type: ignore[method-assign]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sketch_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_nan()
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_last", None)
        return state

    def _collect(self) -> list[Any]:
        """Return the sums that are needed."""
        raise NotImplementedError

    def _sums(self) -> list[Any]:
        return self.collect if self.collect is not None else self._collect()

    def _skips(self) -> bool:
        """Return whether unusable rows are left out."""
        return bool(self.skip_invalid) or self.missing == "skip"

    def _allows_nan(self) -> bool:
        """Return whether missing values are allowed."""
        if hasattr(self, "_allowed_nan"):
            return self._allowed_nan
        if self.plan is not None:
            return self._skips() or self.plan.missing == "partial"
        return self._skips() or (self.missing in ("auto", "partial") and "cells" in self._sums())

    def _clusters(self) -> int | None:
        """Return the number of clusters that will be learned."""
        return None

    def _forget(self) -> None:
        """Forget the last fit, so that the estimator is not fitted if the new fit fails."""
        for name in (
            "sketch_",
            "plan_",
            "_labels",
            "_inertia",
            "_lower_bound",
            "_last",
            "_model",
            "_allowed_nan",
        ):
            self.__dict__.pop(name, None)

    def _sketched(self, X: Any, sample_weight: Any, *, first: bool) -> tuple[Rows, Plan, Sketch]:
        """Return X, its plan, which is made in the ``first`` call, and its sketch."""
        self._check_parameters()
        if first:
            self._warn_ignored()
            self._forget()
            self._seed = _seed(self.random_state)
            self._unsuited = False
        plan = self.plan if self.plan is not None else None if first else self.plan_
        rows = self._rows(X, sample_weight, plan, first=first)
        common = {
            "weights": rows.weights,
            "skip_invalid": self._skips(),
            "threads": self.threads,
            "verbose": bool(self.verbose),
        }
        if plan is None:
            plan = self._make_plan(rows, common)
        sketch = plan.sketch(rows.X, device=self.device, **common)
        if first and _input.is_batches(rows.X):
            self._mixed = bool(plan.categories or plan._times)
            names = _features(rows, plan, self.columns)
            self.n_features_in_ = len(names)
            named = _input.has_names(rows.X)
            if named is None:
                named = names != [f"c{j}" for j in range(len(names))]
            if named:
                self.feature_names_in_ = np.asarray(names, dtype=object)
        self._width = len(plan.columns)
        self._logs = [plan.columns.index(name) for name in plan.log]
        return rows, plan, sketch

    def _rows(self, X: Any, sample_weight: Any, plan: Plan | None, *, first: bool) -> Rows:
        weighted = sample_weight is not None
        if plan is not None and weighted != (plan.weight_unit is not None):
            made = "the plan was made" if self.plan is not None else "the first call was"
            raise ValueError(
                f"{made} without weights; leave sample_weight out, or start with weights"
                if weighted
                else f"{made} with weights; pass sample_weight, np.ones(len(X)) for ordinary rows"
            )
        X = self._checked(X, first=first)
        if first and _input.is_iterator(X):
            X = _input.spooled(X)
        return Rows(X, _checked_weights(sample_weight, X))

    def _make_plan(self, rows: Rows, common: dict[str, Any]) -> Plan:
        return Plan.from_data(
            rows.X,
            columns="all" if self.columns is None else self.columns,
            **self._roles(rows),
            dates=self.dates,
            missing=None if self.missing == "skip" else self.missing,
            log=self.log,
            weight_columns=self.weight_columns,
            unit=self.unit,
            landmarks=self.landmarks,
            clusters=self._clusters(),
            sampling=self.sampling,
            bandwidth=self.bandwidth,
            scale=self.scale,
            witnesses=self.witnesses,
            collect=self._sums(),
            seed=self._seed,
            warn=False,
            **common,
        )

    def _roles(self, rows: Rows) -> dict[str, Any]:
        """Return which columns are categories, and which are always read as numbers."""
        said, X = self.categorical_features, rows.X
        if isinstance(said, str):
            if said != "from_dtype":
                raise ValueError(
                    "categorical_features must be 'from_dtype', None, or names, places or a mask "
                    f"of columns, got {said!r}"
                )
            return {"categorical": _input.categories_of(X)}
        names = self.columns if self.columns is not None else _input.names_of(X)
        if names is not None:
            weight = rows.weights if isinstance(rows.weights, str) else None
            names = [str(name) for name in names if name != weight]
        chosen = [] if said is None else _chosen(said, names)
        if names is None or not _input.is_table(X):
            return {"categorical": chosen}
        dates = [self.dates] if isinstance(self.dates, str) else list(self.dates or [])
        numbers = [name for name in names if name not in chosen and name not in dates]
        return {"categorical": chosen, "numeric": numbers}

    def _check_first_rows(self, plan: Plan, least: int = 1) -> None:
        """Check that the first rows gave enough landmarks, because later rows do not change
        them."""
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
        """Return X as an array, with names if it has some, or unchanged if it comes in batches."""
        _input.refuse(X)
        X = _device.on_host(X)
        if _input.is_batches(X):
            if first:
                self.__dict__.pop("feature_names_in_", None)
                self._dtype, self._mixed = np.dtype(np.float64), False
            return X
        if self.columns is not None and _input.is_pandas(X):
            if missing := [name for name in self.columns if name not in X.columns]:
                raise ValueError(f"X does not have the column '{missing[0]}'")
            X = X[list(self.columns)]
        if first:
            self._mixed = _input.is_mixed(X) or (self.dates is not None and _input.is_pandas(X))
        if self._mixed and _input.is_pandas(X):
            return self._checked_frame(X, first=first)
        finite: Any = True
        if self._allows_nan():
            finite = False if self._skips() else "allow-nan"
        array = validate_data(
            self,
            _input.unmasked(X),
            reset=first,
            dtype="numeric",
            accept_sparse="csr",
            ensure_all_finite=finite,
        )
        if array.dtype.kind == "O":  # A list that contains None.
            array = array.astype(np.float64)
        if first:
            self._dtype = _float_type(array)
        if _input.is_sparse(array):
            return _input.Sparse(array)
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            return _input.Named(array, [str(name) for name in self.feature_names_in_])
        return array

    def _checked_frame(self, X: Any, *, first: bool) -> Any:
        """Return a frame with columns that are not numeric; its columns are found by name."""
        names = [str(name) for name in X.columns]
        if first:
            self.n_features_in_, self._dtype = len(names), np.dtype(np.float64)
            self.feature_names_in_ = np.asarray(names, dtype=object)
        if missing := [name for name in self.feature_names_in_ if name not in names]:
            raise ValueError(
                f"X does not have the column '{missing[0]}'; it has {', '.join(names)}"
            )
        if len(X) == 0:
            raise ValueError("Found array with 0 sample(s); a minimum of 1 is required")
        return X

    def _check_parameters(self) -> None:
        if self.missing not in ("auto", "error", "skip", "partial"):
            raise ValueError(
                f"The 'missing' parameter of {type(self).__name__} must be one of 'auto', 'error', "
                f"'skip', 'partial'. Got {self.missing!r} instead."
            )
        _check_count(self, "landmarks", optional=True)
        _check_count(self, "threads", optional=True)
        if isinstance(self.columns, str):
            raise ValueError(f"columns must be names in a list, got {self.columns!r}")
        if self.plan is not None and not isinstance(self.plan, Plan):
            raise TypeError(f"plan must be a nysketch.Plan, got {type(self.plan).__name__}")

    def _warn_ignored(self) -> None:
        given = {name: getattr(self, name) for name in self._IGNORED}
        other = [
            f"{name}={value!r}"
            for name, value in given.items()
            # An array is used, not ignored.
            if np.ndim(value) == 0 and value != self._IGNORED[name]
        ]
        if other:
            warnings.warn(
                f"{type(self).__name__} ignores {', '.join(other)}: a sketch is decoded from many "
                "starts, until nothing changes",
                UserWarning,
                stacklevel=4,
            )

    def _warn_unsuited(self, sketch: Sketch) -> None:
        """Warn once if the plan, possibly made from the first rows, does not suit the rows."""
        if self._unsuited:
            return
        for note in sketch._plan_notes(self.plan is not None):
            self._unsuited = True
            warnings.warn(note, UserWarning, stacklevel=3)


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
            The rows. Any object with the Arrow stream interface is read batch by batch, several
            times. A pyarrow dataset, or a function that returns a new stream, may be larger than
            memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Row weights, rounded to a small unit unless they are whole numbers; or the name of a
            column of an Arrow table or of files.

        Returns
        -------
        self
        """
        rows, plan, sketch = self._sketched(X, sample_weight, first=True)
        if self.plan is not None:
            self._warn_unsuited(sketch)
        model = self._learn(plan, sketch)
        self._after_fit(rows, model, sketch)
        self.plan_, self.sketch_, self._model = plan, sketch, model
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sketch.

        Unless a plan is given, it is made in the first call: scales and landmarks come from the
        first rows, and a warning is given if later rows are too different. The model is learned
        when it is next used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            More rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or str, optional
            Row weights; either all calls have them or none. The unit is that of the first call.

        Returns
        -------
        self
        """
        if self._dropped():
            raise ValueError(
                "partial_fit adds rows to a sketch, which drop_rows has removed; call fit with all "
                "rows, or drop_rows after the last call"
            )
        first = not hasattr(self, "sketch_")
        rows, plan, sketch = self._sketched(X, sample_weight, first=first)
        if first:
            self._check_first_rows(plan, self._k())
        else:
            sketch = self.sketch_ + sketch
            self._warn_unsuited(sketch)
        self._forget()
        self.plan_, self.sketch_, self._model = plan, sketch, None
        self._after_partial_fit(rows)
        return self

    def _after_fit(self, rows: Rows, model: Model, sketch: Sketch) -> None:
        pass

    def _after_partial_fit(self, rows: Rows) -> None:
        pass

    @property
    def model_(self) -> Model:
        """The model, learned again if rows were added."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        if self._model is None:
            self._model = self._learn(self.plan_, self.sketch_)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sketch_") or self._dropped()

    def _dropped(self) -> bool:
        """Whether ``drop_rows`` has left the model alone."""
        return getattr(self, "_model", None) is not None and not hasattr(self, "sketch_")

    def drop_rows(self) -> Self:
        """Keep the model, and drop everything that contains rows of the data.

        A sketch and its plan contain rows: landmarks, retained rows and cells of a single row. Of a
        small table these are all its rows, and a pickle of the estimator contains them. After this
        call neither does: ``sketch_`` and ``plan_`` are removed, and the parameter ``plan`` becomes
        None. ``model_``, ``predict``, ``transform``, ``score`` and labels work as before.
        ``partial_fit`` needs the sketch and is refused; ``fit`` starts anew. The texts of
        categories stay, because they are part of the model.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, pickle
        >>> from nysketch import CompressiveKMeans
        >>> X = np.arange(20.0).reshape(10, 2)
        >>> kmeans = CompressiveKMeans(2, random_state=0).fit(X).drop_rows()
        >>> len(pickle.loads(pickle.dumps(kmeans)).predict(X))
        10
        >>> hasattr(kmeans, "sketch_")
        False
        """
        check_is_fitted(self)
        if self._dropped():
            return self
        self._before_drop()
        # The model is learned first, and which rows it takes is known from the plan.
        model, allowed_nan = self.model_, self._allows_nan()
        for name in ("sketch_", "plan_", "_last"):
            self.__dict__.pop(name, None)
        self._model, self._allowed_nan, self.plan = model, allowed_nan, None
        return self

    def _before_drop(self) -> None:
        """Computes what is asked of the sketch later."""

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
        return getattr(sketch, f"fit_{self._task}")(
            k,
            decoder=self.decoder,
            seed=self._seed,
            verbose=bool(self.verbose),
            **self._start(k),
        )

    def _start(self, k: int) -> dict[str, Any]:
        """Return the initial model, if it is known."""
        return {}

    def _too_few(self, rows: int) -> str:
        return f"n_samples={rows} should be >= {self._k_name}={self._k()}."

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_count(self, self._k_name)

    def _fitted(self, X: Any) -> tuple[Model, Any]:
        check_is_fitted(self)
        return self.model_, self._checked(X, first=False)

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centre or most likely component of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), path or Arrow
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        model, X = self._fitted(X)
        return model.predict(X, threads=self.threads, skip_invalid=self._skips())

    @property
    def levels_(self) -> dict[str, list[str]]:
        """The levels of each category; the last two are '(other)' and '(missing)'."""
        return self.model_.levels

    @property
    def level_shares_(self) -> dict[str, np.ndarray]:
        """The share of each level in each cluster, by category."""
        return self.model_.level_shares

    @property
    def n_iter_(self) -> int:
        """Iterations of the decoder."""
        return max(1, self.model_.report["iterations"])


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
    """Return an integer unchanged, so that it has the same effect as ``--seed`` of the command."""
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _checked_weights(sample_weight: Any, X: Any) -> Any:
    """Return weights as doubles, or the name of their column."""
    if sample_weight is None or isinstance(sample_weight, str):
        return sample_weight
    sample_weight = _device.on_host(sample_weight)
    if _input.is_batches(X) or _input.is_pandas(X):
        w = _input.weights(sample_weight)
    else:
        array = X.array if isinstance(X, _input.Named) else X
        w = _check_sample_weight(sample_weight, array, dtype=np.float64)
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise ValueError("Negative values in data passed to `sample_weight`, or not finite ones")
    if not np.any(w > 0):
        raise ValueError("sample_weight is zero for every row")
    return w


def _features(rows: Rows, plan: Plan, columns: list[str] | None) -> list[str]:
    """Return the columns of a table that were read, in its order; a vector is one column."""
    inputs = list(dict.fromkeys(re.sub(r"\[\d+\]$", "", name) for name in plan.inputs))
    order = columns if columns is not None else _input.names_of(rows.X)
    return (
        inputs
        if order is None or not set(inputs) <= set(order)
        else [name for name in order if name in inputs]
    )


def _chosen(said: Any, names: list[str] | None) -> list[str]:
    """Return the names of columns that are given by name, place or mask."""
    said = np.asarray(said)
    if said.size == 0:
        return []
    if said.dtype.kind not in "biuUO" or said.ndim != 1:
        raise ValueError(
            "categorical_features must be names, places or a mask of columns, "
            f"got {said.dtype} of shape {said.shape}"
        )
    if said.dtype.kind in "UO":
        chosen = [str(name) for name in said]
        if names is not None and (other := [name for name in chosen if name not in names]):
            raise ValueError(
                f"categorical_features names '{other[0]}', but X has {', '.join(names)}"
            )
        return chosen
    if names is None:
        raise ValueError(
            "categorical_features must name columns where X comes in batches, whose columns are "
            "found by name"
        )
    if said.dtype.kind == "b":
        if len(said) != len(names):
            raise ValueError(
                f"categorical_features is a mask of {len(said)} columns, but X has {len(names)}"
            )
        return [name for name, marked in zip(names, said, strict=True) if marked]
    if said.min() < 0 or said.max() >= len(names):
        raise ValueError(
            f"categorical_features must be places in [0, {len(names) - 1}], got {said.tolist()}"
        )
    return [names[j] for j in said]


def _float_type(X: Any) -> np.dtype:
    """Return single precision for rows in single precision, as scikit-learn does, or double."""
    X = X.array if isinstance(X, _input.Named) else X
    single = getattr(X, "dtype", None) == np.float32
    return np.dtype(np.float32 if single else np.float64)
