"""Runs the tests of `on_device.py` in a process with a real or an emulated GPU."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from conftest import ROOT

HERE = Path(__file__).parent
EMULATOR = ROOT / "crates/nysketch-cuda/tests/emulator"
TRY = """
import numpy as np, nysketch
X = np.arange(20.0).reshape(10, 2)
nysketch.Plan.from_data(X).sketch(X, device="cuda")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Return environment variables for a GPU; they must be set before the process starts."""
    folder = tmp_path_factory.mktemp("gpu")
    (folder / "kept").mkdir()
    own = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    if subprocess.run([sys.executable, "-c", TRY], env=own, capture_output=True).returncode == 0:
        return own
    compiler = shutil.which("c++")
    if not sys.platform.startswith("linux") or compiler is None:
        missing = "there is no GPU here, and no c++ on Linux to build an emulated one with"
        warnings.warn(f"rows in GPU memory are not tested: {missing}", stacklevel=2)
        pytest.skip(missing)
    header = f'-DDEVICE_H="{EMULATOR / "device.h"}"'
    build = [compiler, "-O2", "-std=c++17", "-shared", "-fPIC", header]
    library = folder / "libcuda.so.1"
    subprocess.run([*build, "-o", library, EMULATOR / "driver.cpp", "-ldl"], check=True)
    (folder / "libnvrtc.so.12").symlink_to(library)
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        **own,
        "LD_LIBRARY_PATH": os.pathsep.join(paths),
        "EMULATED_DEVICES": "2",
        "EMULATED_CACHE": str(folder / "kept"),
    }


def run(environment: dict[str, str], *arguments: str) -> None:
    line = [sys.executable, "-m", "pytest", str(HERE / "on_device.py"), *arguments]
    done = subprocess.run(line, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_in_gpu_memory(environment):
    run(environment)


def test_a_gpu_that_cannot_be_used(environment):
    if "EMULATED_CACHE" not in environment:
        pytest.skip("the GPU of this machine can be used")
    run({**environment, "EMULATED_DRIVER": "11080"}, "-k", "cannot_be_used")
