"""Where the benchmark keeps things, and the environment of its pinned packages."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "target" / "peers"


def enter(program: Path) -> None:
    """Continues with the program in the environment, which it makes if it is missing."""
    environment, wanted = FOLDER / "environment", (HERE / "requirements.txt").read_text()
    python, mark = environment / "bin" / "python", environment / "requirements.txt"
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        install = [python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"]
        subprocess.run(install, check=True)
        mark.write_text(wanted)
    if Path(sys.prefix) != environment:
        os.execv(python, [str(python), str(program), *sys.argv[1:]])
