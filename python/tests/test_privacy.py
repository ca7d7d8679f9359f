"""Private plans and releases."""

import pickle
import warnings

import numpy as np
import pytest

import nysketch
from nysketch import Plan, Release, private_plan

BOUNDS = {"c0": (-9, 9), "c1": (-9, 9)}


def rows(n=30_000, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[-4.0, 0.0], [4.0, 1.0], [0.0, 5.0]])
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 2))


def test_from_public_rows_to_a_model(tmp_path):
    X = rows()
    plan = private_plan(BOUNDS, public=rows(1000, 1), landmarks=60)
    release = Release(plan.sketch(X), epsilon=1.0, delta=1e-6)
    assert abs(release.rows - len(X)) < 1000
    assert (release.epsilon, release.delta, release.person_rows) == (1.0, 1e-6, None)
    assert "ε = 1" in release.promise
    assert [m["name"] for m in release.mechanisms] == ["counts", "sums", "squares"]
    centres = release.estimate().fit_kmeans(3).centres
    exact = plan.sketch(X).fit_kmeans(3).centres
    assert np.allclose(np.sort(centres, 0), np.sort(exact, 0), atol=0.3)
    # Save the release in the format of the command, and read it back.
    release.save(tmp_path / "r.nys")
    assert Release.load(tmp_path / "r.nys").to_bytes() == release.to_bytes()
    assert isinstance(nysketch.read(tmp_path / "r.nys"), Release)
    assert pickle.loads(pickle.dumps(release)).to_bytes() == release.to_bytes()
    # The ledger knows the sketch by its sums, and can be left out.
    with pytest.warns(UserWarning, match="released 2 times"):
        again = Release(plan.sketch(X), epsilon=1.0, delta=1e-6)
    assert again.to_bytes() != release.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Release(plan.sketch(X), epsilon=1.0, delta=1e-6, ledger=False)


def test_broken_rows_leave_no_trace_and_far_ones_are_brought_in():
    plan = private_plan(BOUNDS, landmarks=20)
    X = np.array([[np.nan, 1.0], [1e300, -1e300], [0.0, 0.0]])
    sketch = plan.sketch(X)
    assert sketch.rows == 2
    assert sketch == plan.sketch(np.array([[np.nan, 1.0], [9.0, -9.0], [0.0, 0.0]]))


def test_two_rounds_share_a_budget():
    X = rows()
    first = Release(private_plan(BOUNDS, landmarks=100).sketch(X), epsilon=0.5, delta=1e-6)
    plan = private_plan(BOUNDS, release=first, landmarks=60)
    assert Release(plan.sketch(X), epsilon=1.0, delta=1e-6).rows > 0
    with pytest.raises(ValueError, match="epsilon"):
        Release(plan.sketch(X), epsilon=0.5, delta=1e-6)


def test_people_are_protected_with_all_their_rows():
    pa = pytest.importorskip("pyarrow")
    X, users = rows(1000), [f"u{i % 100}" for i in range(1000)]
    table = pa.table({"c0": X[:, 0], "c1": X[:, 1], "user": users})
    plan = private_plan(BOUNDS, landmarks=20, max_rows_per=("user", 4))
    sketch = plan.sketch(table)
    assert sketch.rows == 400
    assert Release(sketch, epsilon=1.0, delta=1e-6).person_rows == 4
    assert Release(sketch + sketch, epsilon=1.0, delta=1e-6).person_rows == 8
    with pytest.raises(ValueError, match="user"):
        sketch - sketch


def test_what_cannot_be_promised_is_refused():
    X = rows(100)
    open_plan = Plan.from_data(X, landmarks=10)
    with pytest.raises(ValueError, match="not private"):
        Release(open_plan.sketch(X), epsilon=1.0, delta=1e-6)
    plan = private_plan(BOUNDS, landmarks=10)
    for wrong in ({"epsilon": 0.0, "delta": 1e-6}, {"epsilon": 1.0, "delta": 0.0}):
        with pytest.raises(ValueError, match="epsilon|delta"):
            Release(plan.sketch(X), **wrong)
    with pytest.raises(TypeError):
        Release(plan.sketch(X))
    for bounds in ({}, {"c0": (1, 0), "c1": (0, 1)}, {"c0": (0, np.inf), "c1": (0, 1)}):
        with pytest.raises(ValueError, match="bounds"):
            private_plan(bounds)
    with pytest.raises(ValueError, match="max_rows_per"):
        private_plan(BOUNDS, max_rows_per=("user", 0))
