"""Notes that an agent writes for later sessions: its memory files, and edits of its instructions."""

import re
from collections.abc import Iterator

from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import Evidence, Observation, ObservationType
from ...core.sentences import headline, strip_markdown, truncate
from .salience import RULE
from .selection import observed_at
from .statements import quote_of
from .touched_files import TouchedFiles, file_name, relative_path

NOTE_PREFIX = "Note of the agent in "
"""Beginning of the subtitle of every observation of a note."""
_INSTRUCTIONS = re.compile(r"(?:CLAUDE|AGENTS|GEMINI|COPILOT|copilot-instructions)(?:\.local)?\.md")
_MEMORY = re.compile(r"(?:^|/)(?:memory|memories)/[^/]+\.md$|(?:^|/)MEMORY\.md$")
_DESCRIPTION = re.compile(r"^description:\s*(.+)$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_ADDED = re.compile(r"^\+ ?(.*)$", re.MULTILINE)
"""Pattern for a line that an edit or a patch adds."""
_LINE = re.compile(r"^\s*(?:[-*+]|\d+\.)?\s*(?P<text>[^#\s|`>-].{20,})$", re.MULTILINE)
_LINES_MAX, _LINE_MAX = 8, 240


def is_note(path: str) -> bool:
    """Return whether a file holds notes of an agent for later sessions."""
    return _MEMORY.search(path.replace("\\", "/")) is not None or _INSTRUCTIONS.fullmatch(file_name(path)) is not None


def extract_notes(exchange: Exchange, files: TouchedFiles) -> Iterator[Observation]:
    """Yield an observation for each note that the agent wrote, with the lines that it added.

    The title is the note's description, or else its first line. The index of a memory folder repeats other notes, so
    it counts only if the exchange wrote no other note.
    """
    notes = [path for path in files.modified if is_note(path)]
    kept = [path for path in notes if file_name(path) != "MEMORY.md"] or notes
    calls = {turn.call: turn for turn in exchange.active_turns if turn.kind is Kind.CALL and turn.call}
    for path in kept:
        results = [
            turn
            for turn in exchange.active_turns
            if any(relative_path(each, ()).endswith(path) for each in turn.writes)
        ]
        for call in (calls[turn.call] for turn in results if turn.call in calls and not turn.failed):
            if note := _note(exchange, path, call):
                yield note


def _note(exchange: Exchange, path: str, call: Turn) -> Observation | None:
    """Return what a call added to a note. Of instructions, only added rules count, because they also describe code."""
    body = call.text.partition("\n")[2]
    is_edit = _ADDED.search(body) is not None
    text = "\n".join(_ADDED.findall(body)) if is_edit else body
    described = _DESCRIPTION.search(text)
    lines = [found["text"].strip() for found in _LINE.finditer(_FRONT_MATTER.sub("", text))]
    rules = lines[:_LINES_MAX]
    if _MEMORY.search(path) is None:
        rules = [line for line in lines if RULE.search(line)][:_LINES_MAX] if is_edit else []
    title = (
        headline(described[1].strip("\"'"))
        if described
        else next((short for rule in rules if (short := headline(rule))), "")
    )
    if not title or not rules:
        return None
    return Observation(
        type=ObservationType.PATTERN,
        title=title,
        subtitle=f"{NOTE_PREFIX}{file_name(path)}",
        facts=tuple(truncate(strip_markdown(rule), _LINE_MAX) for rule in rules),
        files_modified=(path,),
        evidence=tuple(Evidence(call.line, call.line, quote_of(rule)) for rule in rules),
        at=observed_at(exchange),
    )
