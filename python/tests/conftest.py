"""Shared data. The tests run with the installed wheel, never with the source tree."""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

# Not among the user's.
os.environ["NYSKETCH_LEDGERS"] = tempfile.mkdtemp(prefix="nysketch-ledgers-")


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    """Return 3,000 rows around 5 centres in 4 dimensions."""
    rng = np.random.default_rng(7)
    centres = rng.normal(scale=6, size=(5, 4))
    return centres[rng.integers(5, size=3000)] + rng.normal(size=(3000, 4))


@pytest.fixture(scope="session")
def command():
    """Return a function that runs the command line, if it has been built."""
    binary = os.environ.get("NYSKETCH_BIN")
    if not binary:
        pytest.skip("NYSKETCH_BIN does not name the command")

    def run(*arguments: object) -> str:
        line = [binary, *(str(a) for a in arguments)]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout

    return run
