"""One line on stderr, drawn over until the work ends."""

import sys


def draw(what: str, rows: int, of: int | None, seconds: float, end: bool) -> None:
    """Says how many rows were read so far, of so many in one reading."""
    parts = [what]
    if rows:
        parts[0] += f": {rows:,} rows read"
        parts.append(f"{rows / max(seconds, 1e-3):,.0f}/s")
        if of and not end:
            # A plan reads the rows more than once.
            parts.append(f"{100 * (rows % of) / of:.0f} % of a reading")
    parts.append(f"{seconds:.1f} s")
    if sys.stderr is not None:
        sys.stderr.write(f"\r{', '.join(parts)}    " + ("\n" if end else ""))
        sys.stderr.flush()
