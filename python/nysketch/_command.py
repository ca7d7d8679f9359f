"""The program ``nysketch`` that ``pip install`` adds to the path."""

from __future__ import annotations

import sys

from nysketch._core import main as run

__all__ = ["main"]


def main() -> int:
    """Run the command line and return the exit code."""
    return run(["nysketch", *sys.argv[1:]], main_program=True)


if __name__ == "__main__":
    sys.exit(main())
