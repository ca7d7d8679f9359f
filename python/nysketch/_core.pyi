from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nysketch.results import CrossValidation, Explanation, Intervals, Result, Theory

_Path = str | PathLike[str]
_Sampling = Literal["dsquared", "uniform", "leverage", "greedy", "rpcholesky"]
_Decoder = Literal["auto", "cells", "kernel", "clompr", "clomp"]
_Covariance = Literal["full", "tied", "diag", "spherical"]
_Sums = Literal["kernel", "cells", "moments"]
_Part = Literal["time", "hour", "weekday", "month"]
_Dates = str | Sequence[str] | Mapping[str, _Part | Sequence[_Part] | None]

__all__ = [
    "KCurve",
    "Model",
    "Plan",
    "Release",
    "Sketch",
    "_Draft",
    "__version__",
    "_attribute",
    "_default_landmarks",
    "_diff",
    "_distant_part",
    "_inspect",
    "_plan_sample_rows",
    "_join_left_work",
    "_merge_distant_parts",
    "_merge_survey_parts",
    "_read",
    "_read_number",
    "_report",
    "_survey_part",
    "_unusual",
    "_watch",
    "main",
    "private_plan",
    "set_max_work",
]

__version__: str

@final
class Plan:
    @staticmethod
    def from_data(
        X: Any,
        *,
        landmarks: int | Literal["auto"] | None = None,
        clusters: int | None = None,
        sampling: _Sampling | None = None,
        leverage_lambda: float | None = None,
        landmarks_from: ArrayLike | _Path | None = None,
        features: Literal["nystrom", "fourier", "adapted-fourier"] | None = None,
        frequencies: int | None = None,
        kernel: Literal["gaussian", "laplace"] | None = None,
        bandwidth: float | Sequence[float] | None = None,
        scale: Literal["none", "standard", "robust"] | None = None,
        categorical: str | Sequence[str] | None = None,
        numeric: str | Sequence[str] | None = None,
        dates: _Dates | None = None,
        missing: Literal["auto", "error", "skip", "partial"] | None = None,
        log: str | Sequence[str] | None = None,
        weight_columns: Mapping[str, float] | None = None,
        unit: str | Sequence[str] | None = None,
        sample_rows: int | Literal["all"] | None = None,
        witnesses: int | None = None,
        collect: _Sums | Sequence[_Sums] | None = None,
        columns: Sequence[str] | Literal["all"] | None = None,
        exclude: str | Sequence[str] | None = None,
        weights: str | ArrayLike | None = None,
        weight_unit: float | None = None,
        skip_invalid: bool = False,
        seed: int = 0,
        threads: int | None = None,
        verbose: bool = False,
        warn: bool = True,
    ) -> Plan: ...
    def sketch(
        self,
        X: Any,
        *,
        weights: str | ArrayLike | None = None,
        skip_invalid: bool = False,
        threads: int | None = None,
        device: str = "auto",
        verbose: bool = False,
        allow_empty: bool = False,
        folds: int | None = None,
        fold_by: str | None = None,
    ) -> Sketch: ...
    def sketch_groups(
        self,
        X: Any,
        by: str,
        *,
        weights: str | ArrayLike | None = None,
        skip_invalid: bool = False,
        max_groups: int | None = None,
        threads: int | None = None,
        device: str = "auto",
        verbose: bool = False,
        folds: int | None = None,
    ) -> dict[str, Sketch]: ...
    def empty(self) -> Sketch: ...
    def transform(
        self, X: Any, *, bandwidth: float | None = None, threads: int | None = None
    ) -> NDArray[np.float64]: ...
    def n_features(self, *, bandwidth: float | None = None) -> int: ...
    def save(self, path: _Path) -> None: ...
    @staticmethod
    def load(path: _Path) -> Plan: ...
    def to_bytes(self, *, embed_witnesses: bool = True) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Plan: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def categories(self) -> dict[str, list[str]]: ...
    @property
    def landmark_levels(self) -> dict[str, list[str]]: ...
    @property
    def missing(self) -> Literal["partial", "error"]: ...
    @property
    def log(self) -> list[str]: ...
    @property
    def _times(self) -> list[str]: ...
    @property
    def landmarks(self) -> NDArray[np.float64] | None: ...
    @property
    def witnesses(self) -> NDArray[np.float64] | None: ...
    @property
    def frequencies(self) -> NDArray[np.float64] | None: ...
    @property
    def features(self) -> Literal["nystrom", "fourier", "adapted-fourier"]: ...
    @property
    def sampling(self) -> str | None: ...
    @property
    def kernel(self) -> Literal["gaussian", "laplace"]: ...
    @property
    def bandwidths(self) -> list[float]: ...
    @property
    def collect(self) -> list[_Sums]: ...
    @property
    def centre(self) -> NDArray[np.float64]: ...
    @property
    def scale(self) -> NDArray[np.float64]: ...
    @property
    def weight_unit(self) -> float | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def private_plan(
    bounds: Mapping[str, tuple[float, float]],
    *,
    public: Any = None,
    release: Release | None = None,
    landmarks: int | None = None,
    clusters: int | None = None,
    scale: Literal["none", "standard", "robust"] | None = None,
    collect: str | Sequence[str] | None = None,
    radius: float | None = None,
    max_rows_per: tuple[str, int] | None = None,
    seed: int = 0,
) -> Plan: ...

@final
class Release:
    def __new__(
        cls,
        sketch: Sketch,
        *,
        epsilon: float,
        delta: float,
        spend: Mapping[str, float] | None = None,
        ledger: bool = True,
    ) -> Release: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def rows(self) -> int: ...
    @property
    def person_rows(self) -> int | None: ...
    @property
    def promise(self) -> str: ...
    @property
    def mechanisms(self) -> list[dict[str, Any]]: ...
    def estimate(self) -> Sketch: ...
    def save(self, path: _Path) -> None: ...
    @staticmethod
    def load(path: _Path) -> Release: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Release: ...

@final
class Sketch:
    def __new__(cls, plan: Plan) -> Sketch: ...
    def update(
        self,
        X: Any,
        *,
        weights: str | ArrayLike | None = None,
        skip_invalid: bool = False,
        threads: int | None = None,
        device: str = "auto",
        verbose: bool = False,
        allow_empty: bool = False,
    ) -> Sketch: ...
    def __add__(self, other: Sketch, /) -> Sketch: ...
    def __radd__(self, zero: int, /) -> Sketch: ...
    def __sub__(self, other: Sketch, /) -> Sketch: ...
    def __rsub__(self, other: Sketch, /) -> Sketch: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__ = None  # type: ignore[assignment]
    def fit_kmeans(
        self,
        k: int,
        *,
        decoder: _Decoder = "auto",
        bandwidth: float | None = None,
        separation: float | None = None,
        radius: float | None = None,
        replicates: int | None = None,
        init: ArrayLike | None = None,
        seed: int = 0,
        verbose: bool = False,
    ) -> Model: ...
    def fit_kmedians(
        self,
        k: int,
        *,
        decoder: _Decoder = "auto",
        bandwidth: float | None = None,
        init: ArrayLike | None = None,
        seed: int = 0,
        verbose: bool = False,
    ) -> Model: ...
    def fit_gmm(
        self,
        k: int,
        *,
        decoder: _Decoder = "auto",
        bandwidth: float | None = None,
        known_covariance: ArrayLike | None = None,
        covariance: _Covariance | None = None,
        min_variance: float | None = None,
        restarts: int | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
        init: ArrayLike | None = None,
        init_weights: ArrayLike | None = None,
        init_covariances: ArrayLike | None = None,
        separation: float | None = None,
        radius: float | None = None,
        replicates: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> Model: ...
    def fit_pca(self, k: int) -> Model: ...
    def k_curve(
        self,
        low: int,
        high: int,
        *,
        task: Literal["kmeans", "kmedians", "gmm"] = "kmeans",
        decoder: _Decoder = "auto",
        covariance: _Covariance | None = None,
        min_variance: float | None = None,
        restarts: int | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> KCurve: ...
    def with_intervals(
        self,
        model: Model,
        *,
        confidence: float = 0.95,
        restarts: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> Model: ...
    def cross_validate(
        self,
        low: int,
        high: int,
        *,
        task: Literal["kmeans", "kmedians", "gmm"] = "kmeans",
        covariance: _Covariance | None = None,
        min_variance: float | None = None,
        restarts: int | None = None,
        max_iterations: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> CrossValidation: ...
    @property
    def folds(self) -> Result | None: ...
    def fold(self, fold: int) -> Sketch: ...
    def without_fold(self, fold: int) -> Sketch: ...
    def without_folds(self) -> Sketch: ...
    def estimated_risk(self, model: Model) -> float | None: ...
    def explain(self, model: Model) -> Explanation: ...
    def theory(
        self,
        k: int = 10,
        *,
        bandwidth: float | None = None,
        lambda_: float | None = None,
        delta: float = 0.1,
        known_variance: float = 0.0,
        secants: int = 300,
        seed: int | None = None,
    ) -> Theory: ...
    def embedding(self, *, bandwidth: float | None = None) -> NDArray[np.float64]: ...
    def save(self, path: _Path, *, embed_witnesses: bool = True) -> None: ...
    def with_witnesses(self, plan: Plan) -> Sketch: ...
    @staticmethod
    def load(path: _Path) -> Sketch: ...
    def to_bytes(self, *, embed_witnesses: bool = True) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Sketch: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def rows(self) -> int: ...
    @property
    def weight(self) -> float: ...
    @property
    def skipped(self) -> int: ...
    def _plan_notes(self, part: bool) -> list[str]: ...
    @property
    def kernel_means(self) -> NDArray[np.float64] | None: ...
    @property
    def cell_rows(self) -> NDArray[np.int64] | None: ...
    @property
    def cell_levels(self) -> dict[str, NDArray[np.int64]]: ...
    @property
    def cell_means(self) -> NDArray[np.float64] | None: ...
    @property
    def cell_variances(self) -> NDArray[np.float64] | None: ...
    @property
    def mean(self) -> NDArray[np.float64] | None: ...
    @property
    def covariance(self) -> NDArray[np.float64] | None: ...
    @property
    def missed(self) -> NDArray[np.float64] | None: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Model:
    def predict(
        self,
        X: Any,
        *,
        threads: int | None = None,
        verbose: bool = False,
        skip_invalid: bool = False,
    ) -> NDArray[np.int32]: ...
    def transform(
        self, X: Any, *, threads: int | None = None, skip_invalid: bool = False
    ) -> NDArray[np.float64]: ...
    def log_density(
        self, X: Any, *, threads: int | None = None, skip_invalid: bool = False
    ) -> NDArray[np.float64]: ...
    def evaluate(self, X: Any, *, threads: int | None = None) -> dict[str, float]: ...
    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.float64]: ...
    def save(self, path: _Path) -> None: ...
    @staticmethod
    def load(path: _Path) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Model: ...
    @property
    def task(self) -> Literal["kmeans", "kmedians", "gmm", "pca"]: ...
    @property
    def k(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def rows(self) -> int: ...
    @property
    def plan(self) -> str: ...
    @property
    def scale(self) -> NDArray[np.float64]: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def levels(self) -> dict[str, list[str]]: ...
    @property
    def level_shares(self) -> dict[str, NDArray[np.float64]]: ...
    @property
    def missing(self) -> Literal["partial", "error"]: ...
    @property
    def centres(self) -> NDArray[np.float64]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def means(self) -> NDArray[np.float64]: ...
    @property
    def covariance_type(self) -> _Covariance: ...
    @property
    def covariances(self) -> NDArray[np.float64]: ...
    @property
    def variances(self) -> NDArray[np.float64]: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    @property
    def components(self) -> NDArray[np.float64]: ...
    @property
    def explained_variance(self) -> NDArray[np.float64]: ...
    @property
    def explained_variance_ratio(self) -> NDArray[np.float64]: ...
    @property
    def densities(self) -> dict[str, Any] | None: ...
    @property
    def intervals(self) -> Intervals | None: ...
    def threshold(self, share: float) -> float: ...
    @property
    def report(self) -> dict[str, Any]: ...
    def _column_names(self, flag: float | None = None) -> list[tuple[str, str]]: ...
    def _columns(
        self, X: Any, skip_invalid: bool = False, flag: float | None = None
    ) -> dict[str, NDArray[Any]]: ...
    def _numbers(self, X: Any) -> NDArray[np.float64]: ...
    def _assign(
        self,
        X: Any,
        weights: Any | None = None,
        threads: int | None = None,
        skip_invalid: bool = False,
    ) -> tuple[NDArray[np.int32], float]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__ = None  # type: ignore[assignment]
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class KCurve:
    @property
    def ks(self) -> list[int]: ...
    @property
    def risks(self) -> list[float]: ...
    @property
    def bics(self) -> list[float | None]: ...
    @property
    def icls(self) -> list[float | None]: ...
    @property
    def models(self) -> list[Model]: ...
    @property
    def suggested(self) -> int: ...
    @property
    def best(self) -> Model: ...
    @property
    def clear(self) -> bool: ...
    def _repr_html_(self) -> str: ...

@final
class _Draft:
    def __new__(
        cls,
        columns: dict[str, list[str]],
        part: bytes,
        weights: str | None,
        options: dict[str, Any],
    ) -> _Draft: ...
    @property
    def wants_distant_rows(self) -> tuple[Plan, int] | None: ...
    def finish(self, distant: bytes | None, warn: bool) -> Plan: ...

def _plan_sample_rows(columns: int, weights: str | None, options: dict[str, Any]) -> int: ...
def _survey_part(
    X: Any,
    columns: dict[str, list[str]],
    weights: str | None,
    options: dict[str, Any],
    position: int,
) -> bytes: ...
def _merge_survey_parts(a: bytes, b: bytes) -> bytes: ...
def _distant_part(X: Any, plan: Plan, count: int, weights: str | None, position: int) -> bytes: ...
def _merge_distant_parts(a: bytes, b: bytes) -> bytes: ...
def _join_left_work() -> None: ...
def set_max_work(factor: float) -> None: ...
def _default_landmarks(clusters: int | None = None) -> int: ...
def _inspect(
    what: Plan | Sketch, model: Model | None = None, theory: dict[str, Any] | None = None
) -> str: ...
def _diff(
    baseline: Sketch,
    sketches: Sequence[Sketch],
    options: Mapping[str, Any],
    many: bool,
    top: int | None = None,
) -> list[str]: ...
def _unusual(days: Sequence[tuple[str, Sketch]], today: Sketch, name: str, level: float) -> str: ...
def _watch(
    days: Sequence[tuple[str, Sketch]], groups: Sequence[int] | None, level: float, seed: int
) -> str: ...
def _attribute(
    segments: Sequence[tuple[str, Sketch, Sketch]], most: int, options: Mapping[str, Any]
) -> str: ...
def _report(
    sketch: Sketch,
    name: str,
    models: list[Model],
    baseline: Sketch | None,
    baseline_name: str,
    series: list[tuple[Sketch, str]],
    most_clusters: int,
    seed: int,
    path: _Path | None,
) -> str: ...
def _read(path: _Path) -> Plan | Sketch | Model: ...
def _read_number(text: bytes) -> float: ...
def main(argv: Sequence[str], *, main_program: bool = False) -> int: ...
