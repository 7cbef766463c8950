"""The format of Claude Code."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..json_values import mapping, string
from .claude_code_reader import ClaudeReader

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_BOOKKEEPING = {"last-prompt", "mode", "permission-mode", "custom-title", "ai-title", "agent-name", "queue-operation"}
_ENVELOPE = {"isSidechain", "parentUuid", "uuid", "sessionId", "cwd"}
_SNAPSHOT = "file-history-snapshot"
# Tool output, notes, logs of prompts and workflow steps are stored beside the transcripts.
_OTHER_FOLDERS = {"tool-results", "memory", "file-history", "todos"}
_OTHER_FILES = {"journal.jsonl", "history.jsonl"}


class ClaudeCode:
    """Transcripts under `~/.claude/projects`, one JSON record per line."""

    agent = "claude-code"

    def roots(self) -> list[Path]:
        """Return the existing `projects` folders of this user, in all documented places."""
        named = os.environ.get("CLAUDE_CONFIG_DIR")
        homes = [Path(named).expanduser()] if named else []
        homes += [Path.home() / ".claude", Path.home() / ".config" / "claude"]
        existing = [home / "projects" for home in homes if (home / "projects").is_dir()]
        return list({folder.resolve(): folder for folder in reversed(existing)}.values())[::-1]

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Sessions and sub-agents in a folder, sorted."""
        return folders.files(root, _may_be_transcript, without=_OTHER_FOLDERS, skipped=skipped)

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file is not one of those that lie beside the transcripts."""
        return _may_be_transcript(path.name) and _OTHER_FOLDERS.isdisjoint(path.relative_to(root).parts[:-1])

    def names(self, name: str) -> bool:
        """Whether it is a session's id, or begins as those of sub-agents do."""
        stem, _, suffix = name.rpartition(".")
        return suffix == "jsonl" and (_UUID.fullmatch(stem) is not None or stem.startswith("agent-"))

    def archive_name(self, path: Path, root: Path) -> str:
        """`<project folder>/<session>.jsonl`, and for sub-agents the folders below their session."""
        below = path.relative_to(root).parts if path.is_relative_to(root) else ()
        if "projects" in below[:2]:
            root = root.joinpath(*below[: below.index("projects") + 1])
        return folders.archive_name(path, root)

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
        parent = _parent_session(path) or ("" if named == native_id else named)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent)

    def reader(self, session: Session, *, shorten: bool = True) -> ClaudeReader:
        """A reader for one file of that session."""
        return ClaudeReader(session, shorten=shorten)


def _may_be_transcript(name: str) -> bool:
    return name.endswith(".jsonl") and name not in _OTHER_FILES


def _parent_session(path: Path) -> str:
    """Return the name of the session folder that contains a sub-agent's transcript; empty for any other file."""
    return next((folder.parent.name for folder in path.parents if folder.name == "subagents"), "")


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
