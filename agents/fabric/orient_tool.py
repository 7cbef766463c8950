"""Fabric tools for the context of a session and for orientation in a project.

The context contains the working memories of the session, and the memories that are relevant to the open file or
command. Orientation returns the time, the project, and what was remembered since the last visit.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from ...core.conversation import Milliseconds, Trust, show_day, show_millisecond
from ...core.local_time import LocalTime, find_zone, local_time, resolve, show_duration
from ...core.memory import ACTIVE, FAMILIES, Family, MemoryFilter, StoredMemory
from ...core.query import QUERY_MAX
from ...observe.memory import GLOBAL_NAMESPACES
from ...search.query.query_analysis import redacted
from ...templates.environment import undo_command
from ...templates.quote import brief, clean
from ..memory_rows import FABRIC_DATED_ROW, memory_rows, uuid_of
from ..toolset import Rows, ToolReply
from .fabric_context import FabricContext, ProjectPath, SessionId, in_layers
from .fabric_replies import CurrentReply, OrientReply
from .layer_tools import archive_unused

_WORKING, _RECENT, _HITS, _PATTERNS, _CANDIDATES = 10, 8, 5, 5, 50
"""Maximum numbers of working memories, recent memories, matching memories, returned patterns and ranked patterns."""
_RELEVANT: Final = 0.7
_DAY: Final = 86_400_000
_SUGGESTED, _GHOST = 40, 60
"""Maximum tokens of a suggestion, and of a ghost message (text for the model that the user does not see)."""
_WORDS: Final = re.compile(r"[^\W_]+")


class Situation(Struct, frozen=True):
    """State of the client: project folder, open file, running command, and the language and path to select patterns."""

    folder: Path
    file: str = ""
    command: str = ""
    language: str = ""
    pattern_path: str = ""

    @property
    def query(self) -> str:
        """Search query: the running command, and the words in the name of the open file."""
        return " ".join([self.command, *_WORDS.findall(PurePath(self.file).name)]).strip()


def window(fabric: FabricContext, now: Situation) -> dict[str, Any]:
    """Return the context of the current session. Each memory has a reason why it is included.

    Level 1 is the namespace of the session, and level 2 that of the project.
    """
    working = fabric.core.page(MemoryFilter(namespaces=fabric.namespaces(1, now.folder)), limit=_WORKING)
    project = fabric.namespaces(2, now.folder)
    current = MemoryFilter(states=ACTIVE, valid_at=fabric.clock())
    recent = fabric.core.page(replace(current, namespaces=project), limit=_RECENT)
    everywhere = replace(current, namespaces=tuple(dict.fromkeys((*project, *GLOBAL_NAMESPACES))))
    matches = {stored.key: stored for stored in _matching(fabric, now, everywhere)}
    patterns = _patterns(fabric, now, everywhere)
    relevant = [*matches.values(), *(stored for stored in recent if stored.key not in matches)]
    relevant.sort(key=lambda stored: -stored.memory.weight)
    matched, unmatched = f"matches {brief(now.query, 20)}", "recent memory of this project"
    reasons = [matched if stored.key in matches else unmatched for stored in relevant]
    return {
        "working": _rows(fabric, working, ["working memory of this session"] * len(working)),
        "relevant": _rows(fabric, relevant, reasons),
        "patterns": [_pattern_row(stored, reason) for stored, reason in patterns],
        "suggestions": _suggestions(relevant, [stored for stored, _ in patterns]),
        "ghostMessages": _ghost_messages(working, relevant),
    }


def _rows(fabric: FabricContext, memories: Sequence[StoredMemory], reasons: Sequence[str]) -> Rows:
    rows = memory_rows(fabric.core, memories, FABRIC_DATED_ROW)
    return [{**row, "reason": reason} for row, reason in zip(rows, reasons, strict=True)]


def _matching(fabric: FabricContext, now: Situation, where: MemoryFilter) -> list[StoredMemory]:
    """Return project and global memories that match the running command and the open file."""
    query = redacted(now.query[:QUERY_MAX], fabric.config.home)
    if not query.strip():
        return []
    matches = fabric.core.similar(query, where, min_similarity=_RELEVANT, limit=_HITS, count_access=False)
    return [match.stored for match in matches]


def _patterns(fabric: FabricContext, now: Situation, where: MemoryFilter) -> list[tuple[StoredMemory, str]]:
    """Return the patterns that best fit the language and the path, best first, each with a reason."""
    types = tuple(name for name, family in FAMILIES.items() if family is Family.PATTERN)
    at = fabric.clock()
    stored = fabric.core.page(replace(where, types=types), limit=_CANDIDATES)
    language = now.language.lower()
    fitting = [pattern for pattern in stored if not language or _language(pattern).lower() in {"", language}]
    ranked = sorted(fitting, key=lambda pattern: (-_pattern_score(pattern, now, at), -pattern.key))
    return [(pattern, _pattern_reason(pattern, now)) for pattern in ranked[:_PATTERNS]]


def _pattern_score(stored: StoredMemory, now: Situation, at: Milliseconds) -> float:
    """Return a score from 0 to 1: the sum of scores for language, path, number of uses and recent change."""
    language = 0.3 if now.language and _language(stored).lower() == now.language.lower() else 0.0
    path = min(0.3, 0.1 * _shared_parts(_path(stored), now.pattern_path))
    return language + path + min(0.2, 0.02 * stored.accesses) + max(0.0, 0.2 - 0.01 * (at - stored.updated) / _DAY)


def _pattern_reason(stored: StoredMemory, now: Situation) -> str:
    if _shared_parts(_path(stored), now.pattern_path):
        return "same part of the source tree"
    if now.language and _language(stored).lower() == now.language.lower():
        return f"same language: {clean(now.language)}"
    return f"used {stored.accesses} times" if stored.accesses else "recent pattern"


def _pattern_row(stored: StoredMemory, reason: str) -> dict[str, Any]:
    return {
        "id": uuid_of(stored),
        "name": clean(stored.memory.title) or brief(stored.memory.content, 12),
        "description": clean(stored.memory.content),
        "code": clean(_place(stored, "codeBlock").get("code", "")),
        "language": clean(_language(stored)),
        "usageCount": stored.accesses,
        "reason": reason,
    }


def _suggestions(memories: Sequence[StoredMemory], patterns: Sequence[StoredMemory]) -> Rows:
    """Return up to two decisions, two patterns and two errors, or one hint if there are no memories."""
    decisions, errors = _of(memories, Family.DECISION)[:2], _of(memories, Family.ISSUE)[:2]
    rows = [
        *(_suggestion("decision", decision, 0.8, f"decided on {show_day(decision.created)}") for decision in decisions),
        *(
            _suggestion("pattern", pattern, 0.9 if pattern.accesses > 5 else 0.7, "pattern to follow")
            for pattern in patterns[:2]
        ),
        *(_suggestion("error", error, 0.75, f"error of {show_day(error.created)}") for error in errors),
    ]
    if not (memories or patterns):
        text = "Store decisions, bug fixes and conventions with context.store."
        rows.append({"type": "explore", "content": text, "confidence": 0.6, "reason": "no memories of this project"})
    return rows


def _suggestion(kind: str, stored: StoredMemory, confidence: float, reason: str) -> dict[str, Any]:
    text = brief(stored.memory.content, _SUGGESTED)
    return {"type": kind, "content": text, "confidence": confidence, "reason": reason, "memoryId": uuid_of(stored)}


def _ghost_messages(working: Sequence[StoredMemory], memories: Sequence[StoredMemory]) -> Rows:
    """Return messages that a client can add to the model's input without showing them to the user.

    Memories with low trust are left out, because clients send these messages with the role `system`.
    """
    memories = [stored for stored in memories if stored.memory.origin.trust > Trust.LOW]
    files = [str(stored.memory.metadata.get("file", "")) for stored in working]
    opened = list(dict.fromkeys(filter(None, files)))[:3]
    rows: Rows = []
    if opened:
        names = ", ".join(clean(name) for name in opened)
        rows.append(_ghost("session", "session_context", f"Recent files: {names}", "opened in this session"))
    for error in _of(memories, Family.DECISION)[:2]:
        text = f"Decision: {brief(error.memory.content, _GHOST)}"
        rows.append(_ghost(uuid_of(error), "relevant_decision", text, "decision of this project"))
    for error in _of(memories, Family.ISSUE)[:1]:
        text = f"Earlier error: {brief(error.memory.content, _GHOST)}"
        rows.append(_ghost(uuid_of(error), "bug_fix_context", text, "error of this project"))
    return rows


def _ghost(source: str, trigger: str, content: str, reason: str) -> dict[str, Any]:
    fields = {"id": f"ghost-{trigger}-{source}", "role": "system", "content": content, "trigger": trigger}
    return {**fields, "isVisible": False, "reason": reason}


def _of(memories: Iterable[StoredMemory], family: Family) -> list[StoredMemory]:
    return [stored for stored in memories if stored.family is family]


def _language(stored: StoredMemory) -> str:
    """Return the programming language of a memory's code block or file, or an empty text."""
    return next(filter(None, (_place(stored, name).get("language", "") for name in ("codeBlock", "fileContext"))), "")


def _path(stored: StoredMemory) -> str:
    return _place(stored, "fileContext").get("path", "") or _place(stored, "codeBlock").get("filePath", "")


def _place(stored: StoredMemory, name: str) -> dict[str, str]:
    """Return the text fields of the object `name` in a memory's metadata.

    Other values are ignored, because other toolsets can store any value under this name.
    """
    value = stored.memory.metadata.get(name)
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    return {field: text for field, text in fields.items() if isinstance(text, str)}


def _shared_parts(first: str, second: str) -> int:
    """Return the number of distinct folder and file names that occur in both paths."""
    return len(set(PurePath(first).parts) & set(PurePath(second).parts) - {"/", "."})


BUDGET = 3_000
"""Maximum tokens of the context."""


def get_current(
    fabric: FabricContext,
    session_id: SessionId,
    current_file: Annotated[str | None, Field(alias="currentFile", description="Open file")] = None,
    current_command: Annotated[str | None, Field(alias="currentCommand", description="Running command")] = None,
    project_path: ProjectPath = None,
    language: Annotated[str | None, Field(description="Only patterns of this language")] = None,
    file_path: Annotated[str | None, Field(alias="filePath", description="Prefer patterns for this path")] = None,
) -> ToolReply:
    """Return the memories that apply now: those of the session, of the project, patterns and suggestions."""
    fabric.enter(session_id)
    situation = Situation(
        fabric.folder(project_path),
        current_file or "",
        current_command or "",
        language or "",
        file_path or current_file or "",
    )
    return fabric.reply(CurrentReply(window(fabric, situation)), BUDGET, quotes=True)


_RECENT_SESSIONS = 5
_HERE = 30_000
"""Maximum milliseconds since the last visit at which the summary reads "You were just here"."""
_DECAY_EVERY = 3_600_000


def orient(
    fabric: FabricContext,
    timezone: Annotated[str | None, Field(description="IANA name. Default: system")] = None,
    project_path: ProjectPath = None,
    expression: Annotated[
        str | None, Field(description="now, yesterday, end of week, next Monday, an ISO date, epoch milliseconds ...")
    ] = None,
    also: Annotated[list[str] | None, Field(max_length=50, description="More time zones")] = None,
) -> ToolReply:
    """Return the time, the project, and the memories added since the last visit. Call it first in a session.

    It also resolves a date expression and converts the time to other time zones.
    """
    zone, others, at = find_zone(timezone), [find_zone(name) for name in also or ()], fabric.clock()
    folder, here = fabric.folder(project_path), local_time(at, zone)
    resolved = None if expression is None else resolve(expression, zone, at)
    last = _visit(fabric, folder, at)
    recent = [] if last is None else fabric.core.page(_since(fabric, folder, last), limit=_RECENT_SESSIONS)
    gap = None if last is None else _gap(fabric, folder, last, at)
    moment = at if resolved is None else resolved
    reply = OrientReply(
        summary=_summary(here, str(folder), gap),
        time=_time_fields(here),
        project_path=clean(str(folder)),
        offline_gap=gap,
        recent_memories=memory_rows(fabric.core, recent, FABRIC_DATED_ROW),
        resolved=resolved,
        resolved_time=None if resolved is None else _time_fields(local_time(resolved, zone)),
        conversions=[_conversion(local_time(moment, target)) for target in others],
        archived=_decayed(fabric, at),
    )
    return fabric.reply(reply, quotes=bool(recent))


def _visit(fabric: FabricContext, folder: Path, at: Milliseconds) -> Milliseconds | None:
    """Record the time of this visit to a project, and return the time of the previous one."""
    store, project = fabric.core.store, fabric.identity(folder)
    if store.is_read_only:
        return store.visits.last(project)
    with store.transaction():
        last = store.visits.last(project)
        store.visits.record(project, at)
    return last


def _since(fabric: FabricContext, folder: Path, last: Milliseconds) -> MemoryFilter:
    return MemoryFilter(namespaces=in_layers(fabric, (2, 3), folder), created_from=last)


def _gap(fabric: FabricContext, folder: Path, last: Milliseconds, at: Milliseconds) -> dict[str, Any]:
    return {
        "durationMs": max(0, at - last),
        "durationHuman": show_duration(at - last),
        "from": show_millisecond(last),
        "to": show_millisecond(at),
        "memoriesAdded": fabric.core.count(_since(fabric, folder, last)),
    }


def _summary(here: LocalTime, project: str, gap: dict[str, Any] | None) -> str:
    if gap is None:
        visit = "First session in this project."
    elif gap["durationMs"] < _HERE:
        visit = "You were just here."
    else:
        added = gap["memoriesAdded"]
        memories = f"{added} {'memory was' if added == 1 else 'memories were'} added since."
        visit = f"The last visit was {gap['durationHuman']} ago; {memories}"
    return f"It is {here.time} on {here.day} ({here.timezone}, UTC{here.offset}). Project: {clean(project)}. {visit}"


def _time_fields(time: LocalTime) -> dict[str, Any]:
    return {
        "epochMs": time.at,
        "iso": time.iso,
        "timezone": time.timezone,
        "utcOffset": time.offset,
        "timeOfDay": time.time,
        "date": time.day,
        "dayOfWeek": time.weekday,
        "isWeekend": time.is_weekend,
        "weekNumber": time.week,
    }


def _conversion(time: LocalTime) -> dict[str, Any]:
    names = ("epochMs", "timezone", "iso", "timeOfDay", "date", "utcOffset")
    fields = _time_fields(time)
    return {name: fields[name] for name in names}


def _decayed(fabric: FabricContext, at: Milliseconds) -> dict[str, Any] | None:
    """Archive unused memories of layer 3, at most once an hour, and return their number and the undo command."""
    if fabric.core.store.is_read_only or at - fabric.decayed_at < _DECAY_EVERY:
        return None
    fabric.decayed_at = at
    archived = archive_unused(fabric.core, at)
    return {"count": len(archived), "undo": undo_command([stored.id for stored in archived])} if archived else None
