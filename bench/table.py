"""Functions that format Markdown tables and write them into RESULTS.md."""

import re
from collections.abc import Sequence

from .shared import PROJECT

RESULTS = PROJECT / "bench" / "RESULTS.md"
_HEADING = "# Results\n\nThe benchmarks write these sections. `bench/README.md` explains the columns.\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. The first column is left-aligned, all others are right-aligned."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(row, widths) for row in (header, rule, *rows))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
    return f"| {' | '.join(cells)} |"


def write_section(title: str, body: str) -> None:
    """Replace the section with the level-two heading `title` in RESULTS.md."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else _HEADING
    sections = [part for part in re.split(r"(?m)^(?=## )", text) if part.partition("\n")[0] != f"## {title}"]
    head, others = sections[0], [*sections[1:], f"## {title}\n\n{body}\n"]
    RESULTS.write_text("\n".join(part.strip() + "\n" for part in (head, *sorted(others))), encoding="utf-8")
