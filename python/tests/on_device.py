"""Rows in GPU memory, and rows in host memory that a GPU sketches.

Needs a GPU: `test_device.py` runs this file in a process with a real or an emulated GPU.
"""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gpu_arrays import Driver, OnlyInterface, WithDlpack, WithInterface, bfloat16, widened

from nysketch import CompressiveKMeans, NystromSketcher, Plan, Sketch
from nysketch.cluster import partial

# The emulated GPU compiles and runs slowly.
ROWS = 400


@pytest.fixture(scope="session")
def gpu() -> Driver:
    return Driver()


@pytest.fixture(scope="session")
def few(rows) -> np.ndarray:
    """Return rows that single precision represents exactly."""
    return rows[:ROWS].astype(np.float32).astype(np.float64)


@pytest.fixture(scope="session")
def plan(few) -> Plan:
    return Plan.from_data(few, landmarks=20)


@pytest.mark.parametrize("kind", ["f8", "f4", "f2"])
@pytest.mark.parametrize("array", [WithInterface, WithDlpack])
def test_arrays_of_any_precision_give_the_bytes_of_the_host(gpu, plan, few, array, kind):
    X = few.astype(kind)
    assert plan.sketch(array(gpu, X)).to_bytes() == plan.sketch(X).to_bytes()


def test_bfloat16_gives_the_bytes_of_the_host(gpu, plan, few):
    there = WithDlpack(gpu, bfloat16(few))
    there.kind = 4
    assert plan.sketch(there).to_bytes() == plan.sketch(widened(bfloat16(few))).to_bytes()


VIEWS = {
    "every other row": lambda whole: whole[::2],
    "backwards": lambda whole: whole[::-1, ::-1],
    "transposed": lambda whole: whole.reshape(4, -1).T,
    "inner": lambda whole: whole.reshape(-1, 8)[3:, 1:5],
    "the same row": lambda whole: np.broadcast_to(whole[7], (50, 4)),
    "one row": lambda whole: whole[3:4],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("array", [WithInterface, WithDlpack])
def test_views_are_read_where_they_lie(gpu, plan, few, array, view):
    there = array(gpu, few, view)
    assert plan.sketch(there).to_bytes() == plan.sketch(there.host).to_bytes()


def test_a_sketch_grows_batch_by_batch(gpu, plan, few):
    sketch = plan.empty()
    for at in range(0, ROWS, 100):
        assert sketch.update(WithDlpack(gpu, few[at : at + 100])) is sketch
    assert sketch.to_bytes() == plan.sketch(few).to_bytes()
    batches = [WithInterface(gpu, few[:100]), few[100:300], WithDlpack(gpu, few[300:])]
    assert Sketch.from_bytes(partial(batches, plan)) == sketch


def test_a_thread_that_has_not_worked_with_the_gpu_reads_there_too(gpu, plan, few):
    there = WithInterface(gpu, few)
    with ThreadPoolExecutor(1) as worker:
        sketch = worker.submit(plan.sketch, there).result()
    assert sketch.to_bytes() == plan.sketch(few).to_bytes()


def test_dlpack_is_asked_as_its_standard_says(gpu, plan, few):
    expected = plan.sketch(few).to_bytes()
    for version, offset, device in [(None, 0, 2), ((1, 0), 0, 2), ((1, 3), 16, 2), (None, 8, 13)]:
        there = WithDlpack(gpu, few)
        there.version, there.offset, there.device = version, offset, device
        assert plan.sketch(there).to_bytes() == expected
        # The default stream waits for the work that wrote X, and the memory is released afterwards.
        assert (there.asked, there.alive) == ([1], [])
    there.version = (2, 0)
    with pytest.raises(BufferError, match=r"X comes by DLPack 2\.0, not 1"):
        plan.sketch(there)


def test_streams_of_the_interface_are_waited_for(gpu, plan, few):
    expected = plan.sketch(few).to_bytes()
    there = WithInterface(gpu, few)
    for version, stream in [(3, None), (3, 1), (3, 2), (3, gpu.stream()), (2, None)]:
        there.version, there.stream = version, stream
        assert plan.sketch(there).to_bytes() == expected


def test_weights_are_an_array_of_the_host(gpu, few):
    weights = np.random.default_rng(0).integers(5, size=ROWS)
    plan = Plan.from_data(few, weights=weights, landmarks=20)
    there = WithDlpack(gpu, few)
    expected = plan.sketch(few, weights=weights)
    assert plan.sketch(there, weights=weights).to_bytes() == expected.to_bytes()
    assert plan.sketch(there, weights=WithInterface(gpu, weights)) == expected
    for wrong, message in [
        (None, "the plan was made with weights; pass weights"),
        (weights[1:], f"weights has {ROWS - 1} values, but X has {ROWS} rows"),
        ("w", "give an array of numbers beside an array"),
        (-1.0 * weights, "row 0, column .weights.: the weight -4 is not between 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            plan.sketch(there, weights=wrong)


def test_invalid_rows_are_refused_and_skipped_alike(gpu, plan, few):
    X = few.copy()
    X[17, 3], X[18, 0], X[300:330, 1] = np.nan, np.inf, 1e30
    there = WithInterface(gpu, X)
    with pytest.raises(ValueError) as here:
        plan.sketch(X)
    with pytest.raises(ValueError, match="row 17, column 'c3'.*skip_invalid=True") as other:
        plan.sketch(there)
    assert str(other.value) == str(here.value).replace("X:", "rows in GPU memory:")
    told = []
    for rows in (X, there):
        with pytest.warns(UserWarning, match="32 of 400 rows are skipped as invalid") as warned:
            sketch = plan.sketch(rows, skip_invalid=True)
        told.append((str(warned[0].message), sketch.skipped, sketch.to_bytes()))
    assert told[0] == told[1]
    sketch = plan.empty()
    with pytest.raises(ValueError, match="row 17"):
        sketch.update(there)
    assert sketch == plan.empty(), "where it raises, the sketch is as it was"
    with pytest.raises(ValueError, match="all 2 were skipped"):
        plan.sketch(WithInterface(gpu, X[17:19]), skip_invalid=True)


def test_rows_with_holes_count_by_what_they_have(gpu, few):
    X = few.copy()
    X[::3, 1] = np.nan
    plan = Plan.from_data(X, landmarks=20)
    assert plan.missing == "partial"
    assert plan.sketch(WithDlpack(gpu, X)).to_bytes() == plan.sketch(X).to_bytes()


def test_columns_of_an_array_have_their_default_names(gpu, few):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(few, columns=["c0", "c1", "c2", "c3"])[["c2", "c0", "c3", "c1"]]
    plan = Plan.from_data(frame, landmarks=20)
    assert plan.sketch(WithInterface(gpu, few)) == plan.sketch(few) == plan.sketch(frame)


def test_no_rows(gpu, plan, few):
    for there in (WithInterface(gpu, few[:0]), WithDlpack(gpu, few[:0])):
        with pytest.raises(ValueError, match="X has no rows.*allow_empty=True"):
            plan.sketch(there)
        assert plan.sketch(there, allow_empty=True) == plan.empty()


def test_verbose_shows_progress(gpu, plan, few, capsys):
    plan.sketch(WithInterface(gpu, few), verbose=True)
    assert "sketching" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["i4", "i8", "u1", "?", "c8", ">f4"])
@pytest.mark.parametrize("array", [WithInterface, WithDlpack])
def test_other_types_are_refused_with_what_to_do(gpu, plan, few, array, kind):
    there = array(gpu, few.astype(kind))
    there.kind = {"i": 0, "u": 1, "b": 6, "c": 5, "f": 7}[np.dtype(kind).kind]
    name = kind if kind.startswith(">") else str(np.dtype(kind))
    if kind == ">f4" and array is WithDlpack:
        name = "numbers of DLPack's type 7"
    with pytest.raises(TypeError) as error:
        plan.sketch(there)
    assert str(error.value) == (
        f"X holds {name}; in GPU memory, values are float64, float32, float16 or bfloat16: "
        f"pass X.astype('{'float64' if 'int' in name else 'float32'}')"
    )


@pytest.mark.parametrize("array", [WithInterface, WithDlpack])
def test_other_shapes_are_refused_as_on_the_host(gpu, plan, few, array):
    for view in (
        lambda whole: whole[0],
        lambda whole: whole[0, 0, ...],
        lambda whole: whole[:, :, None],
        lambda whole: whole[:, :0],
        lambda whole: whole[:, :3],
    ):
        there = array(gpu, few, view)
        with pytest.raises(ValueError) as here:
            plan.sketch(there.host)
        with pytest.raises(ValueError) as other:
            plan.sketch(there)
        assert str(other.value) == str(here.value)


def test_odd_interfaces_are_refused(gpu, plan, few):
    there = WithInterface(gpu, few)
    for more, message in [
        ({"mask": there}, "X has a mask; fill in NaN"),
        ({"strides": (31, 8)}, r"values of 8 bytes at \(31, 8\); pass a copy"),
    ]:
        there.more = more
        with pytest.raises(TypeError, match=message):
            plan.sketch(there)


def test_an_address_that_no_gpu_has(gpu, plan, few):
    there = WithInterface(gpu, few)
    there.address = few.ctypes.data
    with pytest.raises(ValueError, match="in GPU memory, but no GPU has the address 0x"):
        plan.sketch(there)


def test_plans_that_make_columns_want_rows_of_the_host(gpu, few):
    pa = pytest.importorskip("pyarrow")
    there = WithInterface(gpu, few)
    logs = Plan.from_data(few, landmarks=20, log="c1")
    table = pa.table({"a": few[:, 0], "kind": ["x", "y"] * (ROWS // 2)})
    categories = Plan.from_data(table, landmarks=20)
    plain = Plan.from_data(few, landmarks=20)
    for call, message in [
        (lambda: logs.sketch(there), "where columns are logarithms"),
        (lambda: plain.sketch(there, folds=4), "rows are assigned to folds; device='cpu' copies"),
        (lambda: plain.sketch(there, folds=4, fold_by="user"), "a column of an Arrow table"),
        (lambda: categories.sketch(WithInterface(gpu, few[:, :2])), "kind is a category; pass"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert logs.sketch(there, device="cpu") == logs.sketch(few)
    assert plain.sketch(there, folds=4, device="cpu") == plain.sketch(few, folds=4)


def test_rows_of_the_host_by_a_gpu(gpu, plan, few, tmp_path):
    pa = pytest.importorskip("pyarrow")
    expected = plan.sketch(few, device="cpu")
    table = pa.table({f"c{j}": few[:, j] for j in range(4)} | {"day": ["a", "b"] * (ROWS // 2)})
    np.save(tmp_path / "x.npy", few)
    for X in (few, few.astype(np.float32), table, tmp_path / "x.npy"):
        for device in ("cuda", "cuda:0"):
            assert plan.sketch(X, device=device, threads=2).to_bytes() == expected.to_bytes()
    assert plan.empty().update(few, device="cuda") == expected
    groups = plan.sketch_groups(table, "day", device="cuda")
    assert groups == plan.sketch_groups(table, "day")
    folds = plan.sketch(few, folds=3, device="cuda")
    assert folds.to_bytes() == plan.sketch(few, folds=3).to_bytes()


def test_devices_that_there_are_not(gpu, plan, few):
    for X in (few, WithInterface(gpu, few)):
        with pytest.raises(ValueError, match="device must be auto, cpu, cuda or cuda:N.*got gpu"):
            plan.sketch(X, device="gpu")
    for call in (plan.sketch, plan.empty().update):
        with pytest.raises(ValueError, match="there is no GPU 7.*device='cpu' works without"):
            call(few, device="cuda:7")
    with pytest.raises(ValueError, match=r"X is in the memory of GPU 0, not 1; leave device out"):
        plan.sketch(WithInterface(gpu, few), device="cuda:1")


def test_rows_are_copied_to_the_host_where_they_must_be(gpu, plan, few):
    there = WithInterface(gpu, few)
    assert plan.sketch(there, device="cpu") == plan.sketch(few)
    assert Plan.from_data(there, landmarks=20) == plan
    assert Plan.from_data(few, landmarks_from=WithInterface(gpu, few[:20])) == Plan.from_data(
        few, landmarks_from=few[:20]
    )
    model = plan.sketch(few).fit_kmeans(3)
    assert np.array_equal(model.predict(there), model.predict(few))
    assert np.array_equal(plan.transform(there), plan.transform(few))
    assert plan.sketch(iter([there, there])) == plan.sketch(np.concatenate([few, few]))
    assert plan.sketch(lambda: there) == plan.sketch(few)
    for X in (OnlyInterface(gpu, few), WithDlpack(gpu, few)):
        with pytest.raises(TypeError, match=f"X is a {type(X).__name__} in GPU memory.*a copy"):
            Plan.from_data(X)


def test_estimators_copy_rows_to_the_host(gpu, few):
    there, weights = WithInterface(gpu, few), np.arange(ROWS) % 3
    ours = CompressiveKMeans(3, random_state=0, device="cuda").fit(there)
    theirs = CompressiveKMeans(3, random_state=0).fit(few)
    assert ours.sketch_.to_bytes() == theirs.sketch_.to_bytes()
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert np.array_equal(ours.predict(there), theirs.labels_)
    assert ours.score(there, sample_weight=WithInterface(gpu, weights)) == theirs.score(
        few, sample_weight=weights
    )
    weighted = CompressiveKMeans(3, random_state=0).fit(
        there, sample_weight=WithInterface(gpu, weights)
    )
    assert weighted.sketch_ == theirs.fit(few, sample_weight=weights).sketch_
    partly = CompressiveKMeans(3, random_state=0).partial_fit(there).partial_fit(there)
    assert partly.sketch_.rows == 2 * ROWS
    single = NystromSketcher(20, random_state=0).fit(WithInterface(gpu, few.astype(np.float32)))
    assert single.transform(there).shape == (ROWS, 20)
    with pytest.raises(ValueError, match="device must be auto, cpu"):
        CompressiveKMeans(3, device="gpu").fit(few)


class Frame:
    """A data frame with the interface of cuDF."""

    __module__ = "cudf.core.dataframe"

    def __init__(self, gpu, frame) -> None:
        self.gpu, self.frame = gpu, frame
        self.columns, self.dtypes = frame.columns, frame.dtypes
        self.taken = []

    def __getitem__(self, names: list[str]) -> "Frame":
        chosen = Frame(self.gpu, self.frame[names])
        chosen.taken = self.taken
        return chosen

    def to_cupy(self, dtype: str, na_value: float) -> WithInterface:
        self.taken.append((list(self.columns), dtype))
        array = self.frame.to_numpy(dtype, na_value=na_value)
        return WithInterface(self.gpu, np.asfortranarray(array).T, lambda whole: whole.T)

    def to_pandas(self):
        self.taken.append("all")
        return self.frame


def test_frames_of_cudf(gpu, few):
    pd = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(few, columns=names)
    plan = Plan.from_data(frame, landmarks=20)
    expected = plan.sketch(frame)
    there = Frame(gpu, frame.assign(text="x")[["text", *reversed(names)]])
    assert plan.sketch(there).to_bytes() == expected.to_bytes()
    assert there.taken == [(names, "float64")]
    assert plan.sketch(there, device="cpu") == expected
    assert there.taken[1:] == ["all"]
    single = Frame(gpu, frame.astype("f4"))
    assert plan.sketch(single) == expected and single.taken == [(names, "float32")]
    mixed = frame.assign(b=frame.b.round().astype("Int64"), c=frame.c.astype("f4"))
    assert plan.sketch(Frame(gpu, mixed)) == plan.sketch(mixed)
    mixed.loc[::7, "b"] = pd.NA
    holes = Plan.from_data(Frame(gpu, mixed), landmarks=20)
    there = Frame(gpu, mixed)
    assert holes == Plan.from_data(mixed, landmarks=20) and holes.missing == "partial"
    assert holes.sketch(there) == holes.sketch(mixed) and there.taken == [(names, "float64")]
    with pytest.raises(ValueError, match="X does not have the column b"):
        plan.sketch(Frame(gpu, frame.drop(columns="b")))
    # Columns that the plan does not measure are found by name on the host.
    users = frame.assign(user=np.arange(ROWS) % 7, w=1.0 + np.arange(ROWS) % 3)
    assert plan.sketch(Frame(gpu, users), folds=3, fold_by="user") == plan.sketch(
        users, folds=3, fold_by="user"
    )
    weighted = Plan.from_data(users[[*names, "w"]], weights="w", landmarks=20)
    assert weighted.sketch(Frame(gpu, users), weights="w") == weighted.sketch(users, weights="w")
    kmeans = CompressiveKMeans(3, random_state=0).fit(Frame(gpu, frame.assign(text="x")))
    assert list(kmeans.feature_names_in_) == [*names, "text"]


@pytest.mark.skipif("EMULATED_DRIVER" not in os.environ, reason="needs a GPU that is of no use")
def test_a_gpu_that_cannot_be_used_is_left_alone(gpu, plan, few):
    there = WithInterface(gpu, few)
    with pytest.warns(UserWarning, match="X is copied to the memory of this machine.*too old"):
        assert plan.sketch(there) == plan.sketch(few)
    with pytest.raises(ValueError, match="too old.*device='cpu' works without a GPU"):
        plan.sketch(there, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan.sketch(there, device="cpu") == plan.sketch(few)


# ---- Libraries that need a GPU -------------------------------------------------------------------


@pytest.fixture(scope="session")
def real(gpu) -> Driver:
    if "EMULATED_CACHE" in os.environ:
        pytest.skip("the GPU is emulated")
    return gpu


def test_tensors_of_torch(real, plan, few):
    torch = pytest.importorskip("torch")
    X = torch.tensor(few, device="cuda")
    expected = plan.sketch(few).to_bytes()
    for there in (X, X.float(), X.requires_grad_(), X.detach().T.contiguous().T):
        assert plan.sketch(there).to_bytes() == expected
    X = X.detach()
    for there in (X.half(), X.bfloat16(), X[::2], X.flip(0)):
        assert plan.sketch(there) == plan.sketch(there.double().cpu().numpy())
        assert plan.sketch(there, device="cpu") == plan.sketch(there)
        assert Plan.from_data(there).columns == plan.columns
        host = there.cpu().requires_grad_()
        assert plan.sketch(host) == plan.sketch(there)
    with pytest.raises(TypeError, match=r"X holds int64.*pass X\.double\(\)"):
        plan.sketch(X.long())
    assert CompressiveKMeans(3).fit(X.bfloat16()).predict(X).shape == (ROWS,)


def test_rows_that_are_still_being_written_are_waited_for(real, few):
    torch = pytest.importorskip("torch")
    plan = Plan.from_data(few, landmarks=20)
    plan.sketch(torch.tensor(few, device="cuda"))  # Compiles the kernels.
    expected = plan.sketch(few)
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        for _ in range(5):
            X = torch.full((ROWS, 4), 1e3, dtype=torch.float64, device="cuda")
            source = torch.tensor(few, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100_000_000)
                X.copy_(source)
                assert plan.sketch(X) == expected


def test_arrays_of_cupy(real, plan, few):
    cupy = pytest.importorskip("cupy")
    X = cupy.asarray(few)
    for there in (X, X.astype("f4"), X.astype("f2"), X[::-1], cupy.asfortranarray(X)):
        assert plan.sketch(there) == plan.sketch(there.get())
        assert np.array_equal(
            plan.sketch(there).fit_kmeans(3).predict(there),
            plan.sketch(there).fit_kmeans(3).predict(there.get()),
        )
    # Without DLPack, as for Numba.
    bare = type("Bare", (), {"__cuda_array_interface__": X.__cuda_array_interface__})()
    assert plan.sketch(bare) == plan.sketch(few)
    with pytest.raises(TypeError, match="X holds int64"):
        plan.sketch(X.astype("i8"))


def test_arrays_of_jax(real, plan, few):
    jax = pytest.importorskip("jax")
    X = jax.numpy.asarray(few.astype(np.float32))
    assert plan.sketch(X) == plan.sketch(few)
    half = X.astype("bfloat16")
    expected = np.asarray(half.astype("float32"))
    assert plan.sketch(half) == plan.sketch(expected)
    assert plan.sketch(half, device="cpu") == plan.sketch(expected)
    assert Plan.from_data(X, landmarks=20) == Plan.from_data(np.asarray(X), landmarks=20)
