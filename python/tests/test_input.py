"""Supported and unsupported types of X."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from nysketch import CompressiveKMeans, Files, Plan, Sketch
from nysketch.cluster import partial


@pytest.fixture(scope="module")
def columns(rows):
    return {f"c{j}": rows[:, j] for j in range(4)}


@pytest.fixture(scope="module")
def plan(rows):
    return Plan.from_data(rows, landmarks=50)


def test_arrays_of_any_layout_are_the_same_rows(rows, plan):
    expected = plan.sketch(rows)
    padded = np.zeros((6000, 9))
    padded[::2, 1::2] = rows
    unaligned = np.frombuffer(b"x" + rows.tobytes(), dtype=np.uint8)[1:].view(rows.dtype)
    frozen = rows.copy()
    frozen.setflags(write=False)
    for X in [
        np.asfortranarray(rows),
        rows[::-1][::-1],
        padded[::2, 1::2],
        unaligned.reshape(rows.shape),
        frozen,
        np.asfortranarray(frozen),
        rows.astype(">f8"),
        rows.astype(np.longdouble),
        rows.tolist(),
        np.ma.masked_array(rows),
    ]:
        assert plan.sketch(X) == expected
        assert Plan.from_data(X, landmarks=50) == plan


@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4"])
def test_numbers_of_any_kind_are_read_as_doubles(rows, kind):
    X = np.abs(rows).astype(kind)
    plan = Plan.from_data(X.astype(float), landmarks=4)
    for Y in (X, np.asfortranarray(X), X[::2].repeat(2, axis=0)[: len(X)]):
        assert plan.sketch(Y) == plan.sketch(Y.astype(float))


def test_tables_are_the_same_rows(rows, columns, plan, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = pa.table(columns)
    shuffled_index = pd.DataFrame(columns, index=np.arange(3000)[::-1] * 7)
    for name, part in [("a", table[:1000]), ("b", table[1000:])]:
        pq.write_table(part, tmp_path / f"{name}.parquet")
    again = [
        table,
        pa.Table.from_batches(table.to_batches(max_chunksize=17)),
        pl.DataFrame(columns),
        pl.DataFrame(columns).lazy().with_columns(name=pl.lit("a")).drop("name"),
        shuffled_index,
        duckdb.from_arrow(table),
        ds.dataset(tmp_path),
        lambda: table.to_reader(100),
        pa.record_batch(columns),
    ]
    for X in again:
        assert Plan.from_data(X, landmarks=50) == plan, type(X)
        assert plan.sketch(X) == plan.sketch(rows)
        assert np.array_equal(
            plan.sketch(X).fit_kmeans(3).predict(X), plan.sketch(X).fit_kmeans(3).predict(rows)
        )
    assert plan.sketch(table.to_reader(100)) == plan.sketch(rows), "a stream, once"


def test_columns_are_found_by_name(rows, columns, plan):
    blob = pa.array([b"a"] * 3000)
    table = pa.table({"blob": blob, **dict(reversed(columns.items()))})
    assert plan.sketch(table) == plan.sketch(rows)
    with pytest.warns(UserWarning, match=r"cannot be read as numbers or text: blob \(binary\)"):
        assert Plan.from_data(table).columns == ["c3", "c2", "c1", "c0"]
    assert Plan.from_data(table, columns=["c2", "c0"]).columns == ["c2", "c0"]
    for X, keywords, message in [
        (table, {"columns": ["blob"]}, "X: column 'blob' holds binary, not numbers"),
        (table, {"columns": ["c9"]}, "X has no column 'c9'; it has blob, c3"),
        (table.select(["blob"]), {}, "no numeric column"),
        (pa.Table.from_arrays([table["c0"]] * 2, ["c", "c"]), {}, "two columns are called 'c'"),
    ]:
        with pytest.raises(ValueError, match=message):
            Plan.from_data(X, **keywords)
    with pytest.raises(ValueError, match="X does not have the column c0"):
        plan.sketch(table.drop_columns(["c0"]))
    with pytest.raises(ValueError, match="X has 3 features, but 4 are expected"):
        plan.sketch(rows[:, :3])


def test_only_the_wanted_columns_of_files_are_read(rows, columns, plan, tmp_path):
    table = pa.table({**columns, "blob": [b"a"] * 3000})
    pq.write_table(table, tmp_path / "x.parquet")
    for X in (ds.dataset(tmp_path / "x.parquet"), pl.scan_parquet(tmp_path / "x.parquet")):
        assert plan.sketch(X) == plan.sketch(rows)
        with pytest.warns(UserWarning, match="as numbers or text: blob"):
            assert Plan.from_data(X, landmarks=50) == plan
        with pytest.raises(ValueError, match="no column 'c9'"):
            Plan.from_data(X, columns=["c9"])
        with pytest.raises(ValueError, match="X: column 'blob' holds binary"):
            CompressiveKMeans(2).fit(X)


def test_nulls_decimals_and_dictionaries(rows):
    values = [1.5, None, 3.0, 4.25] * 50
    plain = pa.table({"a": pa.array(values)})
    plan = Plan.from_data(plain, skip_invalid=True)
    sketch = plan.sketch(plain, skip_invalid=True)
    assert (sketch.rows, sketch.skipped) == (150, 50)
    decimal = pa.table({"a": pa.array(values).cast(pa.decimal128(10, 2))})
    assert plan.sketch(decimal, skip_invalid=True) == sketch
    dictionary = pa.table({"a": pa.array(values).dictionary_encode()})
    assert plan.sketch(dictionary, skip_invalid=True) == sketch
    with pytest.raises(ValueError, match="X: row 1, column 'a': the value is missing"):
        plan.sketch(plain)
    with pytest.raises(ValueError, match="X: row 1, column 'a'"):
        plan.sketch(pd.DataFrame({"a": [1.0, np.nan]}))


def test_a_used_up_stream_is_no_empty_table(columns, plan):
    reader = pa.table(columns).to_reader()
    with pytest.raises(ValueError, match="X gave 3000 rows when it was read first and 0"):
        Plan.from_data(reader, sample_rows=100, landmarks=50)
    lies = iter([3000, 2999])
    table = pa.table(columns)
    with pytest.raises(ValueError, match="2999 when it was read again"):
        Plan.from_data(lambda: table[: next(lies)].to_reader(), sample_rows=100, landmarks=50)
    other = iter([table, table.select(["c1", "c0", "c2", "c3"])])
    with pytest.raises(ValueError, match="other columns"):
        Plan.from_data(lambda: next(other).to_reader(), sample_rows=100, landmarks=50)


def test_nothing_is_read_after_an_error(columns, plan):
    table = pa.table(columns)
    bad = table.set_column(0, "c0", pa.array([None] + [0.0] * 2999))
    pulled = []

    def batches():
        for i in range(1000):
            pulled.append(i)
            yield (bad if i == 1 else table).to_batches()[0]

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(ValueError, match="row 3000, column 'c0'"):
        plan.sketch(reader, threads=2)
    assert len(pulled) < 10


def test_rows_that_are_null_as_a_whole_are_refused():
    rows = pa.array([{"a": 1.0}, None, {"a": 2.0}])
    for X in (rows, pa.chunked_array([rows])):
        with pytest.raises(ValueError, match="null as a whole"):
            Plan.from_data(X)


def test_data_frames_do_not_need_pyarrow(rows, columns, plan, monkeypatch):
    frame = pd.DataFrame(columns)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert Plan.from_data(frame, landmarks=50) == plan
    assert plan.sketch(frame[["c3", "c1", "c0", "c2"]]) == plan.sketch(rows)
    assert Plan.from_data(frame, columns=["c2", "c0"]).columns == ["c2", "c0"]
    with pytest.raises(ValueError, match="does not have the column 'c9'"):
        Plan.from_data(frame, columns=["c9"])


def test_groups_are_sketches_of_their_rows(rows, columns, plan):
    names = np.array(["north", "south", "east"])[np.arange(3000) % 3]
    table = pa.table({**columns, "where": names})
    groups = plan.sketch_groups(table, "where")
    assert sorted(groups) == ["east", "north", "south"]
    for name, sketch in groups.items():
        assert sketch == plan.sketch(rows[names == name])
    with pytest.raises(ValueError, match="more than 2 different values.*max_groups"):
        plan.sketch_groups(table, "where", max_groups=2)
    with pytest.raises(ValueError, match="by name"):
        plan.sketch_groups(rows, "where")


def test_errors_of_the_stream_are_raised(columns, plan):
    table = pa.table(columns)

    def broken():
        yield table.to_batches()[0]
        raise OSError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(table.schema, broken())
    with pytest.raises(ValueError, match="the disk is on fire"):
        plan.sketch(reader)

    def no_stream():
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError, match="no network"):
        plan.sketch(no_stream)
    with pytest.raises(TypeError, match="Arrow stream interface"):
        plan.sketch(lambda: 3)
    with pytest.raises(ValueError, match="weights has 2 values, but X has 3000 rows"):
        weighted = Plan.from_data(table, weights=np.ones(3000))
        weighted.sketch(table, weights=[1, 1])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "Expected 2D array, got 1D array"),
        (np.ones((3, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        (np.ones((3, 0)), ValueError, "no columns"),
        (np.ones((0, 3)), ValueError, "no rows"),
        (np.ones((3, 2))[:0], ValueError, "no rows"),
        (np.ones((3, 2)) + 1j, ValueError, "Complex data not supported"),
        (np.array([["a", "b"]]), ValueError, "not numbers"),
        (np.array([[1, "b"]], dtype=object), ValueError, "holds object, not numbers"),
        (np.array([[datetime.datetime(2026, 1, 1)]], dtype="M8[s]"), TypeError, "datetime64"),
        (scipy.sparse.csr_array(np.eye(3) + 1j), ValueError, "Complex data not supported"),
        (scipy.sparse.coo_array(np.ones(3)), ValueError, "Expected 2D array"),
        (pd.Series([1.0, 2.0]), ValueError, r"a Series.*pass X.to_frame\(\)"),
        (pl.Series([1.0, 2.0]), ValueError, r"a Series.*pass X.to_frame\(\)"),
        (None, TypeError, "NoneType"),
        ("no such file.parquet", FileNotFoundError, "no such file.parquet"),
        (b"x.parquet", TypeError, "bytes"),
        (pa.array([1.0, 2.0]), ValueError, "named columns"),
        (np.array([[1.0, np.inf]]), ValueError, "X: row 0, column 'c1': the value is infinite"),
        (np.array([[1e300], [-1e300]]), ValueError, "scale='standard'"),
        (np.ma.masked_greater(np.array([[6.0], [9.0]]), 5), ValueError, "some row of 'c0'"),
    ],
)
def test_bad_tables_are_told(X, error, message):
    with pytest.raises(error, match=message):
        Plan.from_data(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones((3, 2)) + 1j, ValueError, "Complex data not supported"),
        (np.array([["a", "b"]] * 9, dtype=object), ValueError, "could not convert string to float"),
        (pd.Series([1.0, 2.0]), ValueError, r"a Series.*pass X.to_frame\(\)"),
        (np.array([[np.inf]] * 9), ValueError, "Input X contains infinity"),
        (np.array([[np.nan]] * 9), ValueError, "a value in some row of 'c0'"),
        (np.ones((0, 3)), ValueError, "0 sample"),
        (pa.table({"a": ["x"] * 9}), ValueError, "X has no numeric column to read"),
    ],
)
def test_bad_tables_are_told_as_by_scikit_learn(X, error, message):
    with pytest.raises(error, match=message):
        CompressiveKMeans(2).fit(X)


def test_huge_integers_and_far_data_keep_their_differences(rows):
    far = rows + 1e8
    near = Plan.from_data(rows, landmarks=50).sketch(rows).fit_kmeans(5, seed=1)
    away = Plan.from_data(far, landmarks=50).sketch(far).fit_kmeans(5, seed=1)
    # At 1e8 the resolution of a double is 1.5e-8.
    assert np.allclose(away.centres - 1e8, near.centres, atol=1e-6)
    assert np.array_equal(away.predict(far), near.predict(rows))
    integers = np.arange(12, dtype=np.uint64).reshape(-1, 1) + np.uint64(2**52)
    plan = Plan.from_data(integers)
    assert np.array_equal(np.sort(plan.landmarks.ravel()) - 2.0**52, np.arange(12))


def test_odd_columns_that_nobody_wants_do_no_harm(rows, columns, plan):
    frame = pl.DataFrame(columns).with_columns(nothing=pl.lit(None))
    assert plan.sketch(frame) == plan.sketch(rows)
    assert Plan.from_data(frame, columns=["c0", "c1"]).columns == ["c0", "c1"]
    table = pa.table(columns)
    short = (b.select(["c0"]) for b in table.to_batches())
    reader = pa.RecordBatchReader.from_batches(table.schema, short)
    with pytest.raises(ValueError, match="cannot be read"):
        plan.sketch(reader)


def test_batches_of_other_types_are_not_taken_for_what_they_are_not():
    doubles = pa.record_batch({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    whole = pa.record_batch({"a": [1, 2], "b": [3, 4]})
    swapped = doubles.select(["b", "a"])
    plan = Plan.from_data(doubles)
    for other in (whole, swapped):
        reader = pa.RecordBatchReader.from_batches(doubles.schema, iter([doubles, other]))
        with pytest.raises(ValueError, match="a batch has the columns"):
            plan.sketch(reader)
        parts = [doubles, other, doubles]
        together = Sketch.from_bytes(partial(parts, plan))
        assert together == sum(plan.sketch(part) for part in parts)


@pytest.fixture
def folder(columns, tmp_path):
    """Write the rows to files of every format, and to three files in a folder."""
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    pyarrow.csv.write_csv(table, tmp_path / "x.csv")
    pyarrow.feather.write_feather(table, tmp_path / "x.arrow")
    np.save(tmp_path / "x.npy", np.column_stack(list(columns.values())))
    (tmp_path / "days").mkdir()
    for k, at in enumerate((0, 17, 2000)):
        part = table[at : (17, 2000, 3000)[k]]
        pq.write_table(part, tmp_path / "days" / f"{k}.parquet")
    return tmp_path


def test_files_are_the_same_rows(rows, plan, folder):
    expected = plan.sketch(rows)
    days = folder / "days"
    for X in [
        str(folder / "x.parquet"),
        folder / "x.csv",
        folder / "x.arrow",
        folder / "x.npy",
        days,
        str(days / "*.parquet"),
        [days / "0.parquet", str(days / "1.parquet"), days / "2.parquet"],
        (days / "[01].parquet", days / "2.parquet"),
        Files(days),
        Files([folder / "x.csv"], format="csv", delimiter=",", header=True),
    ]:
        assert Plan.from_data(X, landmarks=50) == plan, X
        assert plan.sketch(X) == expected, X
        assert plan.sketch(X, threads=3) == expected, X
    model = expected.fit_kmeans(3)
    assert np.array_equal(model.predict(folder / "x.npy"), model.predict(rows))
    assert np.array_equal(model.predict(days), model.predict(rows))
    assert np.array_equal(plan.transform(folder / "x.csv"), plan.transform(rows))
    given = Plan.from_data(rows, landmarks_from=rows[:60])
    np.save(folder / "landmarks.npy", rows[:60])
    assert Plan.from_data(days, landmarks_from=folder / "landmarks.npy") == given


def test_the_command_line_reads_the_same_files(folder, command):
    plan, sketch = folder / "p.nys", folder / "s.nys"
    for X in (folder / "x.csv", folder / "days", str(folder / "days" / "*.parquet")):
        command("plan", X, "-o", plan, "--landmarks", 70, "--exclude", "c1", "--seed", 3)
        command("sketch", X, "--plan", plan, "-o", sketch)
        ours = Plan.from_data(X, landmarks=70, exclude="c1", seed=3)
        assert ours.to_bytes() == plan.read_bytes()
        theirs = Sketch.load(sketch)
        assert ours.sketch(X) == theirs and theirs.to_bytes() == sketch.read_bytes()
    weighted = folder / "weighted.parquet"
    table = pq.read_table(folder / "x.parquet")
    pq.write_table(table.append_column("n", pa.array(np.arange(3000) % 3)), weighted)
    command("plan", weighted, "-o", plan, "--columns", "c3,c0..c1", "--weights", "n")
    ours = Plan.from_data(weighted, columns=["c3", "c0..c1"], weights="n")
    assert ours.to_bytes() == plan.read_bytes()


def test_columns_of_files_are_chosen_by_pattern(columns, tmp_path):
    table = pa.table({**columns, "blob": [b"a"] * 3000})
    pq.write_table(table, tmp_path / "x.parquet")
    X = tmp_path / "x.parquet"
    with pytest.warns(UserWarning, match=r"as numbers or text: blob \(binary\)"):
        assert Plan.from_data(X).columns == ["c0", "c1", "c2", "c3"]
    # Tables in memory behave in the same way.
    for rows in (X, table, pl.from_arrow(table)):
        plan = Plan.from_data(rows, columns=["c2", "c*"], exclude=["c1"])
        assert plan.columns == ["c2", "c0", "c3"]
        assert Plan.from_data(rows, exclude=["c1..c2", "blob"]).columns == ["c0", "c3"]
    with pytest.raises(ValueError, match="no column 'c9'"):
        Plan.from_data(table, exclude="c9")
    with pytest.raises(ValueError, match="exclude leaves columns out by name"):
        Plan.from_data(np.ones((3, 2)), exclude="c0")
    with pytest.raises(ValueError, match=r"x.parquet: column 'blob' holds binary, not numbers"):
        CompressiveKMeans(2).fit(X)


def test_estimators_read_files(rows, folder):
    ours = CompressiveKMeans(5, random_state=1).fit(folder / "days")
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    theirs = CompressiveKMeans(5, random_state=1).fit(table)
    assert np.array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert list(ours.feature_names_in_) == ["c0", "c1", "c2", "c3"]
    assert np.array_equal(ours.predict(str(folder / "x.npy")), ours.labels_)
    assert ours.score(folder / "x.csv") == ours.score(table)


def test_groups_of_files(plan, columns, tmp_path):
    table = pa.table({**columns, "day": [f"d{i % 3}" for i in range(3000)]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert plan.sketch_groups(tmp_path / "x.parquet", "day") == plan.sketch_groups(table, "day")


def test_bad_files_are_told(rows, plan, folder):
    (folder / "semi.csv").write_text("a;b\n1;2\n3;4\n5;7\n")
    (folder / "numbers.csv").write_text("1,2\n3,4\n5,7\n")
    (folder / "text.csv").write_text("a,b\n1,2\n3,x\n5,7\n4,1\n")
    (folder / "empty.csv").write_text("")
    (folder / "cut.parquet").write_bytes((folder / "x.parquet").read_bytes()[:999])
    (folder / "none").mkdir()
    for X, message in [
        (folder / "semi.csv", r"nysketch.Files\(..., delimiter=';'\)"),
        (folder / "numbers.csv", r"nysketch.Files\(..., header=False\)"),
        (folder / "text.csv", "text.csv: row 2, column 'b': 'x' is not.*skip_invalid=True"),
        (folder / "empty.csv", "empty.csv is empty"),
        (folder / "cut.parquet", "cut.parquet cannot be read"),
        (folder / "none", "holds no tables"),
        (str(folder / "*.xyz"), "no table matches"),
        (Files(folder / "x.csv", format="xlsx"), "format must be one of"),
        (Files(folder / "x.csv", delimiter=";;"), "delimiter must be one"),
    ]:
        with pytest.raises(ValueError, match=message):
            Plan.from_data(X)
    with pytest.raises(FileNotFoundError, match="missing.csv"):
        plan.sketch(folder / "missing.csv")
    with pytest.raises(ValueError, match="weights of files are one of their columns"):
        Plan.from_data(folder / "x.csv", weights=np.ones(3000))
    assert Plan.from_data(Files(folder / "semi.csv", delimiter=";")).columns == ["a", "b"]
    assert Plan.from_data(Files(folder / "numbers.csv", header=False)).columns == ["c0", "c1"]
    sketch = Plan.from_data(folder / "text.csv", skip_invalid=True).sketch(
        folder / "text.csv", skip_invalid=True
    )
    assert (sketch.rows, sketch.skipped) == (3, 1)


def test_arrays_with_labels_are_arrays(rows, plan):
    xarray = pytest.importorskip("xarray")
    # The Arrow stream of X has one row per value.
    X = xarray.DataArray(rows, dims=("time", "sensor"))
    assert plan.sketch(X) == plan.sketch(rows)
    assert Plan.from_data(X, landmarks=50) == plan
    kmeans = CompressiveKMeans(5, random_state=0).fit(X)
    assert kmeans.cluster_centers_.shape == (5, 4) and kmeans.labels_.shape == (3000,)
    with pytest.raises(ValueError, match="Expected 2D array, got 3D"):
        Plan.from_data(xarray.DataArray(np.ones((2, 2, 2))))


def test_frames_of_spark_are_told_where_to_go(rows):
    # Spark Connect frames have different classes from those of a session.
    for module in ("pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe"):
        frame = type("DataFrame", (), {"__module__": module})()
        for call in (Plan.from_data, CompressiveKMeans(2).fit):
            with pytest.raises(TypeError, match=r"nysketch.spark.plan.*X.toArrow\(\)"):
                call(frame)


def test_functions_may_return_rows_of_any_kind(rows, columns, plan):
    table = pa.table(columns)
    for made in (rows, table, table.to_pandas(), ds.dataset(table), pl.DataFrame(columns).lazy()):
        assert Plan.from_data(lambda made=made: made, landmarks=50) == plan
    with pytest.raises(TypeError, match="a function that returns a function"):
        plan.sketch(lambda: lambda: table)


def test_fractional_weights_are_rounded_alike_everywhere(rows, columns, command, tmp_path):
    weights = np.random.default_rng(0).random(3000) * 5
    table = pa.table({**columns, "w": weights})
    pq.write_table(table, tmp_path / "w.parquet")
    plan = Plan.from_data(table, weights="w", landmarks=50)
    assert plan.weight_unit < 1e-4
    sketch = plan.sketch(table, weights="w")
    assert np.isclose(sketch.weight, weights.sum(), rtol=1e-6)
    order = np.random.default_rng(1).permutation(3000)
    parts = [plan.sketch(rows[at], weights=weights[at]) for at in np.array_split(order, 7)]
    assert sum(parts) == sketch, "a row weighs the same wherever it stands"
    command("sketch", tmp_path / "w.parquet", "-o", tmp_path / "w.nys", "--weights", "w",
            "--landmarks", 50)  # fmt: skip
    assert (tmp_path / "w.nys").read_bytes() == sketch.to_bytes()
