"""Does docs/formats.md say what is so?"""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from palaver.archiver import formats
from palaver.archiver.files.lines import Reason
from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import FORMATS
from palaver.core.conversation import Kind, Skipped, Turn
from palaver.core.recursion import Own

from .examples import records
from .reading import changed_by_resuming, events, unaccounted, written

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8")
CODE = {path.stem: path.read_text("utf-8") for path in Path(formats.__file__).parent.rglob("*.py")}
_VARIABLE = re.compile(r"""environ(?:\.get\(|\[)"([A-Z_]+)""")
_SKIPPED_FOR = re.compile(r'^[A-Z][A-Z_]* = "([a-z-]+)"$', re.MULTILINE)


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, cell by cell."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def test_every_format_is_named_in_its_order() -> None:
    """With where it lies and what of it is not read."""
    rows = table("What is known")

    assert [row[0] for row in rows] == [known.agent for known in FORMATS]
    assert [row[0] for row in rows if not row[1] or not row[3]] == []


def test_every_variable_that_moves_a_history_is_named() -> None:
    """With the agent whose history it moves."""
    named = {name for row in table("What is known") for name in re.findall(r"`([A-Z_]+)`", row[2])}

    assert named == {name for code in CODE.values() for name in _VARIABLE.findall(code)}


def test_every_reason_is_named() -> None:
    """Those in the code are those on the page."""
    named = {name for row in table("What becomes of a line") for name in re.findall(r"`([a-z-]+)(?::…)?`", row[0])}
    known = {name for code in CODE.values() for name in _SKIPPED_FOR.findall(code)}

    assert named == {*known, *map(str, Reason), *map(str, Own), "unknown-type"}


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.agent)
def test_no_reason_comes_from_elsewhere(known: TranscriptFormat) -> None:
    """What a reader gives as a reason is one of those."""
    reasons = {event.reason for event in events(known, *records(known)) if isinstance(event, Skipped)}
    named = {name for row in table("What becomes of a line") for name in re.findall(r"`([a-z-]+)", row[0])}

    assert {reason.partition(":")[0] for reason in reasons} <= named


def test_the_format_on_the_page_is_one() -> None:
    """It can be run as it stands, and keeps what every reader promises."""
    source = PAGE.partition("```python\n")[2].partition("```")[0]
    module = ModuleType("palaver.archiver.formats.parrot.parrot_format")
    module.__package__ = "palaver.archiver.formats.parrot"
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "docs/formats.md", "exec"), module.__dict__)
        parrot: TranscriptFormat = module.Parrot()
        talk: list[dict[str, Any]] = [
            {"who": "person", "said": "Hello"},
            {"who": "parrot", "said": "Hello!"},
            {"who": 3},
            {"who": "cat"},
        ]
        data = written([*talk, b"", b"not json", *talk])
        found = events(parrot, *talk)
    finally:
        del sys.modules[module.__name__]

    assert [event.kind for event in found if isinstance(event, Turn)] == [Kind.PROMPT, Kind.PROSE]
    assert parrot.claims(talk)
    assert unaccounted(parrot, data) == {}
    assert changed_by_resuming(parrot, data) == []
