"""One progress line on stderr, redrawn until the work ends."""

import sys


def draw(
    what: str, stage: str | None, rows: int, of: int | None, seconds: float, end: bool
) -> None:
    """Show the work, its duration, the rows read, and their share of one reading."""
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
        # Padding erases the rest of a longer line.
        sys.stderr.write(f"\r{', '.join(parts):<79}" + ("\n" if end else ""))
        sys.stderr.flush()
