"""The format of Claude Code."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.conversation import Session, SessionKind
from ...core.report import Unsearched
from ..parse.lines import Record, head_records
from . import claude_folders
from .shape import mapping, string

if TYPE_CHECKING:
    from .claude_reader import ClaudeReader

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_BOOKKEEPING = {"last-prompt", "mode", "permission-mode", "custom-title", "ai-title", "agent-name", "queue-operation"}
_ENVELOPE = {"isSidechain", "parentUuid", "uuid", "sessionId", "cwd"}
_SNAPSHOT = "file-history-snapshot"


class ClaudeCode:
    """Transcripts under `~/.claude/projects`, one JSON record per line."""

    agent = "claude-code"

    def roots(self) -> list[Path]:
        """The existing `projects` folders of this user."""
        return claude_folders.roots()

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Sessions and sub-agents in a folder, sorted."""
        return claude_folders.transcripts(root, skipped)

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file is not one of those that lie beside the transcripts."""
        return claude_folders.keeps(path, root)

    def names(self, name: str) -> bool:
        """Whether it is a session's id, or begins as those of sub-agents do."""
        stem, _, suffix = name.rpartition(".")
        return suffix == "jsonl" and (_UUID.fullmatch(stem) is not None or stem.startswith("agent-"))

    def archive_name(self, path: Path, root: Path) -> str:
        """`<project folder>/<session>.jsonl`, and for sub-agents the folders below their session."""
        return claude_folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is one that only Claude Code writes."""
        return any(map(_is_own, records))

    def identify(self, path: Path, head: bytes) -> Session:
        """A sub-agent is told by its file name or its lines, and belongs to the session in whose folder it lies."""
        path = Path(os.fsencode(path).decode("utf-8", "backslashreplace"))  # names may be any bytes, ids are text
        named = next(filter(None, (string(record.get("sessionId")) for record in head_records(head))), "")
        agent_id = _agent_id(path, head_records(head))
        if not agent_id:
            return Session(self.agent, path.stem if _UUID.fullmatch(path.stem) else named or path.stem)
        native_id = f"agent-{agent_id}"
        parent = claude_folders.parent_folder(path) or ("" if named == native_id else named)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent)

    def reader(self, session: Session, *, shorten: bool = True) -> "ClaudeReader":
        """A reader for one file of that session."""
        from .claude_reader import ClaudeReader

        return ClaudeReader(session, shorten=shorten)


def _is_own(record: Record) -> bool:
    kind = string(record.get("type"))
    if kind == "summary":
        return "leafUuid" in record
    if kind == _SNAPSHOT:
        return "snapshot" in record
    if kind in _BOOKKEEPING:
        return "sessionId" in record
    # Others keep a tree of `parentUuid` too, but write a message as `parts`.
    return (
        not _ENVELOPE.isdisjoint(record)
        and kind in {"user", "assistant"}
        and "content" in mapping(record.get("message"))
    )


def _agent_id(path: Path, records: Iterable[Record]) -> str:
    """The sub-agent that speaks on every line, empty where somebody else does: often the first line tells."""
    if path.stem.startswith("agent-"):
        return path.stem.removeprefix("agent-")
    ids: set[str] = set()
    for record in records:
        if string(record.get("type")) in {"user", "assistant"}:
            if record.get("isSidechain") is not True:
                return ""
            ids.add(string(record.get("agentId")))
    return ids.pop() if len(ids) == 1 else ""
