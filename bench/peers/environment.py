"""The folders of the benchmark, and the environments of its pinned packages."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "target" / "peers"


def make(name: str = "") -> Path:
    """Returns the Python of an environment with the packages of a list, made if missing."""
    suffix = f"-{name}" if name else ""
    listed, environment = HERE / f"requirements{suffix}.txt", FOLDER / f"environment{suffix}"
    wanted = listed.read_text()
    python, mark = environment / "bin" / "python", environment / "requirements.txt"
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", listed], check=True)
        mark.write_text(wanted)
    return python


def enter(program: Path, name: str = "") -> None:
    """Restarts the program in the environment, which is made if missing."""
    python = make(name)
    if Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), str(program), *sys.argv[1:]])
