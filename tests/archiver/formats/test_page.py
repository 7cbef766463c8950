"""The page docs/formats.md agrees with the code."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from palaver.archiver import formats
from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.formats.transcript_format import SkipReason
from palaver.archiver.lines import Reason
from palaver.core.agent_names import AGENTS
from palaver.core.conversation import Kind, Skipped, Turn
from palaver.core.home import Own

from ...cases import for_each
from .examples import records
from .reading import changed_by_resuming, events, jsonl, unaccounted

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "formats.md").read_text("utf-8")
HEADINGS = ("Where", "Records", "Changes between versions", "Not read", "Sources")
_WITHOUT_PAGE = {
    *("claude-code", "codex", "copilot", "pi", "gemini", "antigravity", "kimi-code", "kimi-cli", "opencode"),
    *("cursor", "chatgpt", "claude-ai"),
}
CODE = [path.read_text("utf-8") for path in Path(formats.__file__).parent.rglob("*.py")]
_VARIABLE = re.compile(r"""(?:environ(?:\.get\(|\[)|home_variable\b[^=\n]*= )"([A-Z_]+)""")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading, cell by cell."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


def reasons() -> set[str]:
    """Return the skip reasons listed on the page."""
    return {name for row in table("Find out why a line was skipped") for name in re.findall(r"`([a-z-]+)", row[0])}


def test_every_format_is_listed_in_order() -> None:
    """Every format is listed in order, with its location and the content that is not read."""
    rows = table("Find an agent's transcripts")

    assert tuple(row[0] for row in rows) == AGENTS
    assert [row[0] for row in rows if not row[1] or not row[3] or not row[4]] == []


def test_formats_have_pages_with_sources() -> None:
    """Each format that was added after the first ones has a page with its facts and their sources."""
    pages = {path.stem: path.read_text("utf-8") for path in (DOCS / "formats").glob("*.md")}

    assert pages.keys() == set(AGENTS) - _WITHOUT_PAGE
    assert [
        (agent, heading) for agent, page in pages.items() for heading in HEADINGS if f"\n## {heading}\n" not in page
    ] == []


def test_every_environment_variable_is_listed() -> None:
    """Every environment variable is listed with its agent."""
    named = {name for row in table("Find an agent's transcripts") for name in re.findall(r"`([A-Z_]+)`", row[2])}

    assert named == {name for code in CODE for name in _VARIABLE.findall(code)}


def test_every_reason_is_listed() -> None:
    """The page lists exactly the skip reasons in the code."""
    assert reasons() == {*SkipReason, *Reason, *Own, "unknown-type"}


@for_each("known", all_formats(), label=lambda known: known.agent)
def test_readers_skip_for_listed_reasons_only(known: TranscriptFormat) -> None:
    """Every reason that a reader gives for a record of its example is on the page."""
    given = {event.reason for event in events(known, *records(known)) if isinstance(event, Skipped)}

    assert {reason.partition(":")[0] for reason in given} <= reasons()


def test_the_format_on_the_page_fulfils_the_contract() -> None:
    """The format on the page runs as printed and accounts for every line."""
    source = PAGE.partition("```python\n")[2].partition("```")[0]
    module = ModuleType("palaver.archiver.formats.parrot")
    module.__package__ = "palaver.archiver.formats"
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "docs/formats.md", "exec"), module.__dict__)
        parrot: TranscriptFormat = module.FORMAT
        talk: list[dict[str, Any]] = [
            {"who": "person", "said": "Hello"},
            {"who": "parrot", "said": "Hello!"},
            {"who": 3},
            {"who": "cat"},
            {"who": "parrot", "said": "\x1b[31m"},
        ]
        data = jsonl([*talk, b"", b"not json", *talk])
        found = events(parrot, *talk)
    finally:
        del sys.modules[module.__name__]

    assert [event.kind for event in found if isinstance(event, Turn)] == [Kind.PROMPT, Kind.PROSE]
    assert parrot.recognises(talk)
    assert unaccounted(parrot, data) == {}
    assert changed_by_resuming(parrot, data) == []
