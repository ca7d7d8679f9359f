"""Realistic tables of any kind: categories, dates, missing values and vectors."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import OneHotEncoder

from nysketch import (
    CompressiveGaussianMixture,
    CompressiveKMeans,
    CompressiveKMedians,
    Plan,
    Sketch,
)

ROWS = 3000
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return np.random.default_rng(5).integers(3, size=ROWS)


@pytest.fixture(scope="module")
def frame(truth) -> pd.DataFrame:
    """Return three clusters that need numbers and categories to separate, with missing values."""
    rng = np.random.default_rng(6)

    def noisy(levels):
        seen = np.where(rng.random(ROWS) < 0.85, truth, rng.integers(3, size=ROWS))
        return np.array(levels, dtype=object)[seen]

    frame = pd.DataFrame(
        {
            "x": rng.normal(size=ROWS) + 4 * truth,
            "y": np.exp(rng.normal(size=ROWS) - truth),
            "colour": noisy(["red", "green", "blue"]),
            "flag": rng.random(ROWS) < 0.5,
            "when": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(10_000_000, size=ROWS), unit="s"),
            "size": pd.Categorical(noisy(["S", "M", "L"])),
            "name": [f"row {i}" for i in range(ROWS)],
        }
    )
    frame.loc[rng.random(ROWS) < 0.1, "x"] = np.nan
    frame.loc[rng.random(ROWS) < 0.05, "colour"] = None
    return frame


@pytest.fixture(scope="module")
def tables(frame, tmp_path_factory) -> dict:
    """Return the same rows as tables of every kind."""
    folder = tmp_path_factory.mktemp("tables")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pyarrow.csv.write_csv(
        table.set_column(5, "size", table["size"].cast("string")), folder / "t.csv"
    )
    pq.write_table(table, folder / "t.parquet", row_group_size=700)
    pq.write_table(table, folder / "plain.parquet", store_schema=False)
    whole = pl.from_arrow(table)
    return {
        "pandas": frame,
        "nullable": frame.convert_dtypes(),
        "arrow strings": frame.convert_dtypes(dtype_backend="pyarrow"),
        "shuffled": frame[frame.columns[::-1]].set_index(np.arange(ROWS)[::-1]),
        "arrow": table,
        "batches": pa.Table.from_batches(table.to_batches(max_chunksize=17)),
        "function": lambda: table.to_reader(100),
        "polars": whole,
        "enums": whole.with_columns(
            pl.col("colour").cast(pl.Enum(["blue", "red", "green", "pink"])),
            pl.col("size").cast(pl.String),
            pl.col("when").cast(pl.Datetime("ms")),
        ),
        "lazy": whole.lazy(),
        "dictionaries": table.set_column(2, "colour", table["colour"].dictionary_encode()),
        "dataset": ds.dataset(folder / "plain.parquet"),
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
    }


OPTIONS = [
    {},
    {"dates": "when", "exclude": ["name"]},
    {"dates": {"when": ["hour", "month"]}, "log": "y", "scale": "robust"},
    {"categorical": "flag", "weight_columns": {"colour": 2.0, "x": 0.5}},
    {"missing": "skip", "columns": ["x", "size", "y"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o) or "defaults")
def test_the_same_rows_are_the_same_plan_and_sketch(frame, tables, options):
    plan = Plan.from_data(frame, landmarks=40, **options)
    skip = options.get("missing") == "skip"
    sketch = plan.sketch(frame, skip_invalid=skip)
    for kind, X in tables.items():
        # With columns in a different order, the plan measures them in that order.
        if kind != "shuffled":
            assert Plan.from_data(X, landmarks=40, **options) == plan, kind
        assert plan.sketch(X, skip_invalid=skip).to_bytes() == sketch.to_bytes(), kind
    parts = [frame[:1000], tables["polars"][1000:1500], tables["arrow"][1500:]]
    assert sum(plan.sketch(part, skip_invalid=skip) for part in parts) == sketch


def test_the_command_line_makes_the_same_bytes(frame, tables, command, tmp_path):
    for path in (tables["csv"], tables["parquet"]):
        command("plan", path, "-o", tmp_path / "p.nys", "--landmarks", 40, "--dates", "when=hour",
                "--log", "y", "--categorical", "flag", "--weight-column", "size=3")  # fmt: skip
        command("sketch", path, "--plan", tmp_path / "p.nys", "-o", tmp_path / "s.nys")
        plan = Plan.from_data(
            frame,
            landmarks=40,
            dates={"when": "hour"},
            log=["y"],
            categorical=["flag"],
            weight_columns={"size": 3},
        )
        assert plan.to_bytes() == (tmp_path / "p.nys").read_bytes()
        assert plan.sketch(frame) == Sketch.load(tmp_path / "s.nys")


def test_what_becomes_of_columns_is_told(frame):
    with pytest.warns(UserWarning) as told:
        plan = Plan.from_data(frame, landmarks=40)
    text = " ".join(str(warning.message) for warning in told)
    for part in (
        "column 'name' is left out: it has 3000 different texts, as an id has",
        "1 column has missing values ('x'",
        "dates='when' would read: when",
        "scale='none' keeps them unscaled",
    ):
        assert part in text
    assert plan.columns == ["x", "y", "flag"] and plan.inputs == [
        "x",
        "y",
        "flag",
        "colour",
        "size",
    ]
    assert plan.missing == "partial"
    assert sorted(plan.categories["colour"]) == ["blue", "green", "red"]
    levels = plan.landmark_levels["colour"]
    assert len(levels) == 40 and set(levels) <= {"blue", "green", "red", "(missing)"}
    sketch = plan.sketch(frame)
    counts = sketch.cell_levels["colour"]
    assert counts.shape == (40, 5) and counts.sum() == ROWS
    names = [*plan.categories["colour"], "(other)", "(missing)"]
    seen = frame["colour"].fillna("(missing)").value_counts()
    assert dict(zip(names, counts.sum(axis=0).tolist(), strict=True)) == {
        name: int(seen.get(name, 0)) for name in names
    }
    assert sketch.cell_rows.sum() == ROWS
    rows = sketch.cell_rows[:, None] * np.nan_to_num(sketch.cell_means)
    assert np.isclose(rows[:, 1].sum() / ROWS, frame["y"].mean())


def test_levels_that_were_not_seen_count_as_other(frame):
    plan = Plan.from_data(frame, landmarks=40)
    later = frame.assign(colour="pink")
    counts = plan.sketch(later).cell_levels["colour"].sum(axis=0)
    assert counts[3] == ROWS and counts.sum() == ROWS


def test_arrays_with_holes(frame):
    X = frame[["x", "y"]].to_numpy()
    plan = Plan.from_data(X, landmarks=40)
    assert plan.missing == "partial" and plan.sketch(X).rows == ROWS
    assert plan.sketch(np.ma.masked_invalid(X)) == plan.sketch(X)
    assert Plan.from_data(X, landmarks=40, missing="skip").missing == "error"
    with pytest.raises(ValueError, match="X: row [0-9]+, column 'c0': the value is missing"):
        Plan.from_data(X, landmarks=40, missing="error")
    complete = np.nan_to_num(X)
    assert Plan.from_data(complete, landmarks=40, missing="partial").missing == "partial"
    with pytest.raises(ValueError, match="the value is missing"):
        Plan.from_data(complete, landmarks=40).sketch(X)
    # Numbers that are read as categories have their texts as levels.
    codes = np.column_stack([complete, np.arange(ROWS) % 3])
    plan = Plan.from_data(codes, categorical="c2", landmarks=40)
    assert plan.columns == ["c0", "c1"] and sorted(plan.categories["c2"]) == ["0", "1", "2"]
    named = pd.DataFrame(codes, columns=["c0", "c1", "c2"])
    assert Plan.from_data(named, categorical="c2", landmarks=40) == plan
    assert plan.sketch(codes) == plan.sketch(named) == plan.sketch(named.astype({"c2": int}))


def test_ids_stay_in_arrays_and_go_from_tables(rows):
    ids = np.column_stack([np.arange(3000.0), rows])
    assert Plan.from_data(ids).columns == ["c0", "c1", "c2", "c3", "c4"]
    table = pa.table({"id": np.arange(3000), "x": rows[:, 0]})
    with pytest.warns(UserWarning, match="'id' is left out.*numeric='id' keeps it"):
        assert Plan.from_data(table).columns == ["x"]
    for keywords in ({"numeric": "id"}, {"columns": ["id", "x"]}, {"columns": "all"}):
        assert Plan.from_data(table, **keywords).columns == ["id", "x"]


def test_categories_of_numbers_are_categories(rows):
    codes = np.arange(3000) % 4
    for categories in (codes, codes / 1.0, codes.astype(str), codes % 2 == 0):
        X = pd.DataFrame({"x": rows[:, 0], "code": pd.Categorical(categories)})
        plan = Plan.from_data(X)
        levels = ["false", "true"] if categories.dtype == bool else ["0", "1", "2", "3"]
        assert sorted(plan.categories["code"]) == levels


def test_vectors_are_columns(rows, tmp_path):
    X = rows[:, :3]
    plain = pa.table({f"v[{j}]": X[:, j] for j in range(3)})
    plan = Plan.from_data(plain, landmarks=40)
    lists = pa.array(list(X), pa.list_(pa.float64()))
    pq.write_table(pa.table({"v": lists}), tmp_path / "v.parquet")
    for vectors in (
        pa.table({"v": lists}),
        pa.table({"v": lists.cast(pa.list_(pa.float64(), 3))}),
        pl.DataFrame({"v": X}, schema={"v": pl.Array(pl.Float64, 3)}),
        pl.DataFrame({"v": X.tolist()}),
        pl.DataFrame({"v": X.tolist()}).lazy(),
        pd.DataFrame({"v": list(X)}),
        pd.DataFrame({"other": "a", "v": X.tolist()})[["v"]],
        lambda: pa.table({"v": lists}).to_reader(100),
        tmp_path / "v.parquet",
    ):
        assert Plan.from_data(vectors, landmarks=40) == plan
        assert plan.sketch(vectors) == plan.sketch(plain)
    unit = Plan.from_data(pa.table({"v": lists}), unit="v", landmarks=40)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    assert np.allclose(np.linalg.norm(unit.landmarks, axis=1), 1, atol=1e-6)
    assert np.allclose(unit.sketch(pa.table({"v": lists})).mean, (X / lengths).mean(axis=0))
    ragged = pa.table({"v": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0]])})
    with pytest.raises(ValueError, match="X: row 2, column 'v': a vector of 1 numbers, where.* 2"):
        Plan.from_data(ragged)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"dates": "x"}, "column 'x' holds .*, not dates"),
        ({"dates": {"when": "minute"}}, "dates must be one of time, hour"),
        ({"categorical": "shape"}, "X has no column 'shape'; it has x, y"),
        ({"categorical": "x", "numeric": "x"}, "categorical and numeric both name 'x'"),
        ({"exclude": "colour", "categorical": "colour"}, "exclude leaves out 'colour', which cat"),
        ({"numeric": "colour"}, "X: column 'colour' holds text, not numbers"),
        ({"log": "colour"}, "log must be columns of numbers"),
        ({"log": "shape"}, "no column 'shape'"),
        ({"weight_columns": {"x": 0.0}}, "weight of 'x' between 1e-6 and 1e6"),
        ({"unit": "x"}, "unit must be names of vectors"),
        ({"missing": "drop"}, "missing must be one of auto, error, skip, partial, got drop"),
        ({"missing": "error", "skip_invalid": True}, "missing='error' refuses"),
        ({"columns": ["colour", "size"]}, "no numeric column"),
        ({"columns": "all"}, "column 'when' holds .*dates='when'"),
        ({"columns": "all", "dates": "when"}, "column 'name' cannot be used: it has 3000 diff"),
    ],
)
def test_bad_roles_are_told(frame, keywords, message):
    for X in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=message):
            Plan.from_data(X, **keywords)


def test_mixed_objects_are_told():
    frame = pd.DataFrame({"x": [1.0, 2.0], "odd": ["a", 1]})
    with pytest.raises(ValueError, match="X cannot be read.*column odd"):
        Plan.from_data(frame)
    assert Plan.from_data(frame, columns=["x"]).columns == ["x"]


@pytest.fixture(scope="module")
def mixed(frame) -> pd.DataFrame:
    return frame.drop(columns=["when", "name"])


@pytest.mark.parametrize("kind", [CompressiveKMeans, CompressiveKMedians])
def test_estimators_take_mixed_frames(mixed, truth, kind):
    estimator = kind(3, log="y", random_state=0).fit(mixed)
    labels = estimator.labels_
    assert adjusted_rand_score(labels, truth) > 0.8
    assert list(estimator.feature_names_in_) == ["x", "y", "colour", "flag", "size"]
    assert estimator.n_features_in_ == 5
    assert estimator.model_.columns == ["x", "y", "flag"]
    assert estimator.cluster_centers_.shape == (3, 3)
    shares = estimator.level_shares_["colour"]
    assert shares.shape == (3, len(estimator.levels_["colour"])) == (3, 5)
    assert np.allclose(shares.sum(axis=1), 1)
    for cluster in range(3):
        here = mixed["colour"][labels == cluster].fillna("(missing)")
        seen = [np.mean(here == level) for level in estimator.levels_["colour"]]
        assert np.allclose(shares[cluster], seen, atol=0.05)
    backwards = mixed[mixed.columns[::-1]]
    for X in (mixed, backwards, pl.from_pandas(backwards), pa.Table.from_pandas(mixed)):
        assert np.array_equal(estimator.predict(X), labels)
    assert np.isclose(estimator.score(mixed), -estimator.inertia_)
    assert estimator.transform(mixed).shape == (ROWS, 3)
    again = kind(3, log="y", random_state=0).fit(pl.from_pandas(mixed))
    assert list(again.feature_names_in_) == list(estimator.feature_names_in_)
    assert np.array_equal(again.labels_, labels)
    odd = mixed.head(3).assign(colour=["pink", None, "red"], x=np.nan)
    assert estimator.predict(odd).shape == (3,)
    with pytest.raises(ValueError, match="does not have the column 'size'"):
        estimator.predict(mixed.drop(columns="size"))
    with pytest.raises(ValueError, match="infinite|inf cannot be used"):
        estimator.predict(mixed.head(3).assign(x=np.inf))
    with pytest.raises(ValueError, match="category"):
        estimator.predict(np.ones((3, 5)))
    assert estimator.partial_fit(mixed).sketch_.rows == 2 * ROWS
    weighted = kind(3, log="y", random_state=0).fit(mixed, sample_weight=np.ones(ROWS))
    assert adjusted_rand_score(weighted.labels_, labels) > 0.95


def test_mixtures_take_mixed_frames(mixed, truth):
    mixture = CompressiveGaussianMixture(3, log="y", random_state=0).fit(mixed.drop(columns="flag"))
    X = mixed.drop(columns="flag")
    assert adjusted_rand_score(mixture.predict(X), truth) > 0.8
    assert mixture.means_.shape == (3, 2) and set(mixture.level_shares_) == {"colour", "size"}
    proba = mixture.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.isclose(mixture.lower_bound_, mixture.score(X), atol=0.2)
    assert set(mixture.predict_outliers(X)) <= {-1, 1}
    assert np.isfinite(mixture.bic(X))


def test_categorical_features(mixed, rows):
    codes = np.arange(3000) % 3
    X = np.column_stack([rows[:, :2], codes])
    by_place = CompressiveKMeans(3, categorical_features=[2], random_state=0).fit(X)
    assert sorted(by_place.levels_["c2"]) == ["(missing)", "(other)", "0", "1", "2"]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for said, table in [
        (["c"], frame),
        ([False, False, True], frame),
        (np.array([2]), pl.from_pandas(frame)),
        ("from_dtype", frame.astype({"c": "category"})),
        ("from_dtype", frame.astype({"c": str})),
        ("from_dtype", pl.from_pandas(frame.astype({"c": int}).astype({"c": str}))),
    ]:
        other = CompressiveKMeans(3, categorical_features=said, random_state=0).fit(table)
        assert list(other.levels_) == ["c"]
        assert np.array_equal(other.labels_, by_place.labels_)
    many = mixed.assign(code=pd.Categorical(np.arange(ROWS) % 80))
    assert len(CompressiveKMeans(3, random_state=0).fit(many).levels_["code"]) == 82
    text = many.assign(code=many["code"].astype(str))
    with pytest.raises(ValueError, match="column 'code' cannot be used: it has 80 different texts"):
        CompressiveKMeans(3).fit(text)
    all_of_them = ["code", "colour", "size"]
    called = CompressiveKMeans(3, categorical_features=all_of_them, random_state=0).fit(text)
    assert len(called.levels_["code"]) == 82
    for said, message in [
        (None, "column 'colour' holds text, not numbers"),
        (["x"], "column 'colour' holds text, not numbers"),
        ("auto", "must be 'from_dtype', None"),
        (["shape"], "names 'shape', but X has x, y"),
        ([7], r"places in \[0, 4\]"),
        ([True], "a mask of 1 columns, but X has 5"),
        ([0.5], "names, places or a mask"),
    ]:
        with pytest.raises(ValueError, match=message):
            CompressiveKMeans(3, categorical_features=said).fit(mixed)
    with pytest.raises(ValueError, match="column 'when' holds .*dates='when'"):
        CompressiveKMeans(3).fit(mixed.assign(when=pd.Timestamp("2024-01-01")))


def test_dates_of_estimators(frame):
    X = frame.drop(columns="name")
    estimator = CompressiveKMeans(3, dates={"when": ["weekday"]}, random_state=0).fit(X)
    assert estimator.model_.columns[-2:] == ["when.weekday.sin", "when.weekday.cos"]
    zoned = X.assign(when=X["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    assert np.array_equal(estimator.predict(zoned), estimator.labels_)


def test_missing_values_of_estimators(rows):
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    whole = CompressiveKMeans(5, random_state=0).fit(rows)
    partial = CompressiveKMeans(5, random_state=0).fit(holes)
    assert partial.plan_.missing == "partial" and partial.__sklearn_tags__().input_tags.allow_nan
    assert adjusted_rand_score(partial.labels_, whole.labels_) > 0.85
    assert np.array_equal(partial.predict(holes), partial.labels_)
    assert -partial.score(rows) < 1.05 * whole.inertia_
    frame = pd.DataFrame(holes).convert_dtypes()
    frame.columns = [f"c{j}" for j in range(4)]
    nullable = CompressiveKMeans(5, random_state=0).fit(frame)
    assert np.array_equal(nullable.labels_, partial.labels_)
    skipping = CompressiveKMeans(5, missing="skip", random_state=0).fit(holes)
    assert np.array_equal(skipping.labels_ == -1, np.isnan(holes).any(axis=1))
    for missing in ("auto", "partial"):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            CompressiveKMeans(2, missing=missing).fit(np.where(rows > 9, np.inf, rows))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        CompressiveKMeans(2, missing="error").fit(holes)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        CompressiveKMeans(2, decoder="kernel").fit(holes)
    with pytest.raises(ValueError, match="'missing' parameter of CompressiveKMeans must be one"):
        CompressiveKMeans(2, missing="drop").fit(holes)
    with pytest.raises(ValueError, match="the value is missing.*missing='partial'"):
        whole.predict(holes)


def test_rows_that_lack_too_much_have_no_label(truth):
    frame = pl.DataFrame({"a": [1.0, 9.0, None, 2.0] * 50, "b": ["x", "y", None, None] * 50})
    kmeans = CompressiveKMeans(2, random_state=0).fit(frame)
    assert (kmeans.sketch_.rows, kmeans.sketch_.skipped) == (150, 50)
    assert np.array_equal(kmeans.labels_ == -1, [False, False, True, False] * 50)
    assert np.array_equal(kmeans.predict(frame), kmeans.labels_)
    assert np.array_equal(np.isnan(kmeans.transform(frame)[:, 0]), kmeans.labels_ == -1)
    assert np.isclose(kmeans.score(frame), -kmeans.inertia_)
    assert kmeans.model_.evaluate(frame)["rows"] == 150
    with pytest.raises(ValueError, match="inf cannot be used"):
        kmeans.predict(frame.with_columns(a=pl.lit(np.inf)))
    mixture = CompressiveGaussianMixture(2, random_state=0).fit(frame)
    assert np.array_equal(np.isnan(mixture.score_samples(frame)), kmeans.labels_ == -1)


def test_odd_columns_of_pandas(rows):
    sparse = pd.DataFrame({"x": rows[:, 0], "y": pd.arrays.SparseArray(np.arange(3000) % 2)})
    dense = sparse.astype({"y": int})
    assert Plan.from_data(sparse, landmarks=9) == Plan.from_data(dense, landmarks=9)
    listed = [[1.0, None], [2.0, 3.0], [8.0, 9.0]] * 9
    assert CompressiveKMeans(2, random_state=0).fit(listed).plan_.missing == "partial"


def test_one_hot_matrices_are_told_the_better_way(mixed):
    X = mixed[["colour", "size"]].fillna("none").astype(str)
    encoded = OneHotEncoder().fit_transform(X)
    for call in (Plan.from_data, CompressiveKMeans(2, random_state=0).fit):
        with pytest.warns(UserWarning, match="OneHotEncoder: every row has 2 ones.*as they are"):
            call(encoded)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X is sparse")
        warnings.filterwarnings("ignore", "column|the rows looked at")
        Plan.from_data(scipy.sparse.random(50, 9, 0.3, random_state=0, format="csr"))
