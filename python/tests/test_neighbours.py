"""One row more adds what it adds alone: Python objects under a private plan.

``crates/nysketch-cli/tests/neighbours.rs`` does the same with files."""

import datetime
import decimal
import os
import random
import warnings

import numpy as np
import pytest

import nysketch
from nysketch import private_plan

CASES = int(os.environ.get("NYSKETCH_CASES", 300))
BOUNDS = {"a": (0, 1), "b": (-100, 100)}

pytestmark = pytest.mark.filterwarnings("ignore:.*rows are skipped as invalid")


class Hostile:
    """An object that raises wherever it can."""

    def __float__(self):
        raise RuntimeError("not a number")

    def __str__(self):
        raise RuntimeError("not a text")

    def __iter__(self):
        raise RuntimeError("not a row")


ODD = [
    None, float("nan"), float("inf"), -1e308, True, False, np.True_, "true", "False", "1.5", " 2 ",
    "NA", "unknown", "2013-01-31", "1_000", "\ud800", b"3", b"\xff", 2**53 + 1, -(2**63), 2**64,
    10**400, decimal.Decimal("0.1"), decimal.Decimal("sNaN"), 1 + 2j, datetime.date(2013, 1, 31),
    np.datetime64("2013-01-31"), np.timedelta64(1, "s"), np.float32(0.5), np.uint64(2**64 - 1), [1],
    {}, Hostile(), "٣",
]  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    return private_plan(BOUNDS, landmarks=8)


def value(rng):
    return rng.choice(ODD) if rng.random() < 0.3 else rng.choice([rng.random(), rng.randint(-9, 9)])


def row(rng, ragged):
    length = rng.choice([0, 1, 3]) if ragged and rng.random() < 0.1 else 2
    made = [value(rng) for _ in range(length)]
    # A list of only texts names files.
    return rng.choice([None, b"ab", 7, Hostile()]) if ragged and rng.random() < 0.05 else made


def objects(rows):
    array = np.empty((len(rows), 2), object)
    for i, values in enumerate(rows):
        array[i, 0], array[i, 1] = values
    return array


def frame(rows):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = {name: [values[j] for values in rows] for j, name in enumerate(BOUNDS)}
    return pandas.DataFrame({name: pandas.Series(c, dtype=object) for name, c in columns.items()})


def guessed(part):
    """A frame with the types that pandas guesses, unless a complex number makes all complex."""
    made = part.infer_objects()
    return part if any(dtype.kind == "c" for dtype in made.dtypes) else made


def frames(rows):
    parts = [frame(rows[i : i + 7]) for i in range(0, len(rows), 7)]
    return (guessed(part) if i % 2 else part for i, part in enumerate(parts))


KINDS = {"lists": list, "objects": objects, "frame": frame, "frames": frames}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_adds_what_it_adds_alone(plan, kind):
    make, effective = KINDS[kind], 0
    for seed in range(CASES // len(KINDS)):
        rng = random.Random(seed)
        before = [row(rng, kind == "lists") for _ in range(rng.choice([0, 1, 5, 40]))]
        new = row(rng, kind == "lists")
        after = list(before)
        after.insert(rng.randint(0, len(before)), new)
        sketches = [plan.sketch(make(rows)) for rows in (before, after, [new])]
        assert sketches[0] + sketches[2] == sketches[1], (seed, new)
        assert sketches[1].rows - sketches[0].rows in (0, 1)
        assert sketches[1].skipped == 0
        effective += sketches[2].rows
    # Otherwise the test would show little.
    assert 3 * effective >= CASES // len(KINDS)


def test_values_are_read_as_in_csv_files(plan, tmp_path):
    texts = ["true", " 0.5", "1e400", "9007199254740993", "NA", "unknown", "1_000", "0x1"]
    rows = [[text, "1"] for text in texts] + [["1", text] for text in texts]
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    assert plan.sketch(path) == plan.sketch(rows) == plan.sketch(objects(rows))
    assert plan.sketch(path).rows == 6
    # Whole numbers beyond 2⁵³ are the nearest double, ties to even, in every format.
    wide = private_plan({"a": (2.0**53, 2.0**53 + 8)}, landmarks=3)
    numbers = [2**53 + 1, 2**53 + 3, 2**53 + 7]
    expected = wide.sketch(np.array([2.0**53, 2.0**53 + 4, 2.0**53 + 8])[:, None])
    assert expected != wide.sketch(np.array([2.0**53, 2.0**53 + 2, 2.0**53 + 8])[:, None])
    assert wide.sketch(np.array(numbers)[:, None]) == expected
    assert wide.sketch([[n] for n in numbers]) == expected
    assert wide.sketch([[str(n)] for n in numbers]) == expected
    assert wide.sketch([[decimal.Decimal(n)] for n in numbers]) == expected


def test_persons_are_read_one_by_one():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    plan = private_plan(BOUNDS, landmarks=4, max_rows_per=("who", 1))
    table = pandas.DataFrame({"a": [0.5, 0.25], "b": [1, 2], "who": ["x", "7"]})
    whole = plan.sketch(table)
    assert whole.rows == 2
    for odd in [7, 7.0, "\ud800", None, Hostile(), datetime.date(2013, 1, 31)]:
        row = pandas.DataFrame({"a": ["no"], "b": [0], "who": [odd]}, dtype=object)
        more = pandas.concat([table, row])
        assert plan.sketch(more) == whole, odd
    # 7, 7.0 and "7" are one person.
    seven = pandas.DataFrame(
        {"a": [0.1, 0.2, 0.3], "b": [0, 0, 0], "who": [7, 7.0, "7"]}, dtype=object
    )
    assert plan.sketch(seven).rows == 1


def test_no_rows_are_no_error(plan):
    assert plan.sketch([]).rows == 0
    assert plan.sketch(iter([])).rows == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plan.sketch([["x", "y"]]).rows == 0
    with pytest.raises(ValueError, match="3 features, but 2"):
        plan.sketch(np.zeros((4, 3)))
    assert nysketch.Release(plan.sketch([]), epsilon=1.0, delta=1e-6).rows >= 0
