"""Pairs of samples for bench/peers/drift.py: the rows of bench/src/drift.rs, and changes of them.

A change has magnitude `size` in samples of 400 rows and √(400/n)·`size` in samples of n rows, so
that large samples are not always distinguished.
"""

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

NONE = "none"
NOISE = 0.2


def clusters(n: int, rng):
    import numpy as np

    label = rng.integers(5, size=n)[:, None]
    return np.sin(label * np.arange(1, 6) * 1.7) * 4 + rng.normal(size=(n, 5))


def heavy(n: int, rng):
    """Draws from Student's t with two degrees of freedom, which has no variance."""
    import numpy as np

    return rng.normal(size=(n, 3)) / np.sqrt(rng.exponential(size=(n, 1)))


def correlated(n: int, rng, noise: float = NOISE):
    """Draws ten normal columns of variance 1.04 that differ only in the noise."""
    shared = sqrt(1.04 - noise**2) * rng.normal(size=(n, 1))
    return shared + noise * rng.normal(size=(n, 10))


def discrete(n: int, rng, yes: float = 0.5):
    """Draws counts, a constant and a binary column."""
    import numpy as np

    counts = np.round(2 * rng.normal(size=n)), np.floor(np.exp(rng.normal(size=n)))
    return np.column_stack([counts[0], np.full(n, 7.0), rng.random(n) < yes, counts[1]])


def skewed(n: int, rng):
    import numpy as np

    return np.exp(rng.normal(size=(n, 20)))


ROWS = {
    "5 clusters": clusters,
    "heavy tails": heavy,
    "correlated columns": correlated,
    "skewed, 20 columns": skewed,
    "discrete columns": discrete,
}


class Change(NamedTuple):
    """How the second sample differs; `sample` takes a number of rows, the size and a generator."""

    rows: str
    name: str
    size: float
    words: str
    sample: Callable

    def says(self, n: int) -> str:
        return self.words.format(size=sized(self.size, n)).replace("%", " %")


def sized(size: float, n: int) -> float:
    return size * sqrt(400 / n)


def moved(rows: Callable, columns: slice = slice(1)) -> Callable:
    def sample(n, size, rng):
        X = rows(n, rng)
        X[:, columns] += size
        return X

    return sample


def some_moved(rows: Callable, column: int, by: float) -> Callable:
    def sample(n, share, rng):
        X = rows(n, rng)
        X[rng.random(n) < share, column] += by
        return X

    return sample


def wider(rows: Callable, column: int) -> Callable:
    def sample(n, size, rng):
        X = rows(n, rng)
        X[:, column] *= 1 + size
        return X

    return sample


def elsewhere(rows: Callable, place: float) -> Callable:
    def sample(n, share, rng):
        X = rows(n, rng)
        other = rng.random(n) < share
        X[other] = place + rng.normal(size=(other.sum(), X.shape[1]))
        return X

    return sample


def noisier(n: int, size: float, rng):
    return correlated(n, rng, NOISE * (1 + size))


def more_yes(n: int, share: float, rng):
    return discrete(n, rng, 0.5 + share)


CLUSTERS, HEAVY, CORRELATED, SKEWED, DISCRETE = ROWS
ALL, SOME = "all rows moved by {size:.2f} in one column", "{size:.1%} of the rows moved by 5"
WIDER, ELSEWHERE = "one column {size:.0%} wider", "{size:.1%} of the rows elsewhere"
CHANGES = [
    Change(CLUSTERS, "moved", 0.6, ALL, moved(clusters)),
    Change(CLUSTERS, "some", 0.1, SOME, some_moved(clusters, 1, 5)),
    Change(CLUSTERS, "wider", 0.2, WIDER, wider(clusters, 2)),
    Change(CLUSTERS, "elsewhere", 0.05, ELSEWHERE, elsewhere(clusters, 8)),
    Change(HEAVY, "moved", 0.25, ALL, moved(heavy)),
    Change(CORRELATED, "moved", 0.15, ALL.replace("one", "every"), moved(correlated, slice(None))),
    Change(CORRELATED, "correlation", 1, "{size:.0%} more noise, each column as before", noisier),
    Change(SKEWED, "wider", 0.3, WIDER, wider(skewed, 0)),
    Change(SKEWED, "elsewhere", 0.05, ELSEWHERE, elsewhere(skewed, 3)),
    Change(DISCRETE, "share", 0.1, "a yes in {size:.1%} more of the rows", more_yes),
]


def pair(n: int, rows: str, change: str, trial: int):
    """Returns the two samples of a trial; they depend only on the arguments."""
    import numpy as np

    rng = np.random.default_rng([n, crc32(f"{rows}/{change}".encode()), trial])
    first = ROWS[rows](n, rng)
    for each in CHANGES:
        if (each.rows, each.name) == (rows, change):
            return first, each.sample(n, sized(each.size, n), rng)
    return first, ROWS[rows](n, rng)


def write(folder: Path, n: int, rows: str, change: str, trials: int) -> None:
    import numpy as np

    folder.mkdir()
    for trial in range(trials):
        for name, X in zip("ab", pair(n, rows, change, trial), strict=True):
            np.save(folder / f"{name}{trial}.npy", X)
