"""One line on stderr, drawn over until the work ends."""

import sys


def draw(
    what: str, stage: str | None, rows: int, of: int | None, seconds: float, end: bool
) -> None:
    """Show what is done, for how long, and how many rows were read, of how many in one reading."""
    parts = [what]
    if rows:
        parts[0] += f": {rows:,} rows read"
        parts.append(f"{rows / max(seconds, 1e-3):,.0f}/s")
    if stage and not end:
        parts.append(stage)
    elif rows and of and not end:
        # A plan reads the rows more than once.
        parts.append(f"{100 * (rows % of) / of:.0f} % of a reading")
    parts.append(f"{seconds:.1f} s")
    if sys.stderr is not None:
        # A shorter line leaves nothing of a longer one.
        sys.stderr.write(f"\r{', '.join(parts):<79}" + ("\n" if end else ""))
        sys.stderr.flush()
