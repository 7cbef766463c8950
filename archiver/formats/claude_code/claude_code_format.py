"""Format of Claude Code transcripts: finds and recognises them."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ....core.conversation import Session, SessionKind
from ...files.lines import Line, Record, head_records, split
from .. import folders
from ..containers import fingerprint
from ..folder_format import FolderFormat
from ..json_values import mapping, string
from ..record_events import UUID
from ..transcript_format import EXTRACTED, ContainedSession, TranscriptFormat
from .claude_code_progress import lines_by_subagent, records_of_subagents, unwrapped
from .claude_code_reader import ClaudeCodeReader, own_id

_BOOKKEEPING = {"last-prompt", "mode", "permission-mode", "custom-title", "ai-title", "agent-name", "queue-operation"}
_ENVELOPE = {"isSidechain", "parentUuid", "uuid", "sessionId", "cwd"}


class ClaudeCode(FolderFormat):
    """Transcripts in `~/.claude/projects/<project>/<session>.jsonl`.

    Transcripts of sub-agents are in subfolders of the project folder.
    """

    agent = "claude-code"
    reader_class = ClaudeCodeReader
    home_variable = "CLAUDE_CONFIG_DIR"
    other_files = frozenset({"journal.jsonl", "history.jsonl"})
    other_folders = frozenset({"tool-results", "memory", "file-history", "todos", EXTRACTED})
    name_pattern = re.compile(rf"(?:{UUID}|agent-.*)\.jsonl", re.DOTALL)

    def roots(self) -> list[Path]:
        """Return the existing `projects` folders of this user from all documented locations."""
        configured = os.environ.get(self.home_variable)
        homes = [Path(configured).expanduser()] if configured else []
        found: dict[Path, Path] = {}
        for home in (*homes, Path.home() / ".claude", Path.home() / ".config" / "claude"):
            folder = home / "projects"
            if folder.is_dir():
                found.setdefault(folder.resolve(), folder)
        return list(found.values())

    def archive_name(self, path: Path, root: Path) -> str:
        """Return the path below `projects`, such as `<project folder>/<session>.jsonl`."""
        relative = path.relative_to(root).parts if path.is_relative_to(root) else ()
        if "projects" in relative[:2]:
            root = root.joinpath(*relative[: relative.index("projects") + 1])
        return folders.archive_name(path, root)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a transcript, with the ID from the file name or from the first records.

        The parent of a sub-agent is the session whose folder contains the folder `subagents`. The name of a session's
        folder is a UUID. Without such a folder, the `sessionId` in the records is the ID of the parent.
        """
        path = Path(os.fsencode(path).decode("utf-8", "backslashreplace"))  # File names may contain any bytes.
        session_id = next(filter(None, (string(record.get("sessionId")) for record in head_records(head))), "")
        agent_id = _agent_id(path, head_records(head))
        if not agent_id:
            return Session(self.agent, path.stem if re.fullmatch(UUID, path.stem) else session_id or path.stem)
        native_id = f"agent-{agent_id}"
        owners = (folder.parent.name for folder in path.parents if folder.name == "subagents")
        owner = next((name for name in owners if re.fullmatch(UUID, name)), "")
        parent = owner or ("" if session_id == native_id else session_id)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent, scope=parent)

    def extracted(
        self, path: Path, archived: str, state: int, opened: Callable[[], BinaryIO]
    ) -> Iterator[tuple[Session, ContainedSession]]:
        """Yield each sub-agent whose messages are in progress records of the transcript."""
        with opened() as file:
            subagents = lines_by_subagent(split(file))
        for native_id, on_lines in subagents.items():
            name = folders.safe(f"{native_id}.jsonl")
            rows = partial(_rows, opened, on_lines)
            contained = ContainedSession(
                path / EXTRACTED / name,
                f"{archived.removesuffix('.jsonl')}/{EXTRACTED}/{name}",
                fingerprint(state, len(on_lines)),
                0,
                rows,
            )
            yield self.identify(contained.path, next(rows())), contained

    def extracted_records(self, lines: Iterable[Line]) -> dict[str, int]:
        """Map the ID of each message of a sub-agent in a transcript to its line."""
        messages = ((unwrapped(record), line) for record, line in records_of_subagents(lines))
        return {native_id: line.number for message, line in messages if (native_id := own_id(message))}

    def _is_from_agent(self, record: Record) -> bool:
        kind = string(record.get("type"))
        if kind == "summary":
            return "leafUuid" in record
        if kind == "file-history-snapshot":
            return "snapshot" in record
        if kind in _BOOKKEEPING:
            return "sessionId" in record
        # Other agents also link records by `parentUuid`, but store messages in a field `parts`.
        is_message = kind in {"user", "assistant"} and "content" in mapping(record.get("message"))
        return is_message and not _ENVELOPE.isdisjoint(record)


def _rows(opened: Callable[[], BinaryIO], lines: Iterable[Line]) -> Iterator[bytes]:
    with opened() as file:
        for line in lines:
            file.seek(line.start)
            yield file.read(line.end - line.start).rstrip(b"\r\n") + b"\n"


def _agent_id(path: Path, records: Iterable[Record]) -> str:
    """Return the ID of the sub-agent that wrote all records, or an empty string for other transcripts."""
    if path.stem.startswith("agent-"):
        return path.stem.removeprefix("agent-")
    ids: set[str] = set()
    for record in records:
        if string(record.get("type")) in {"user", "assistant"}:
            if record.get("isSidechain") is not True:
                return ""
            ids.add(string(record.get("agentId")))
    return ids.pop() if len(ids) == 1 else ""


FORMAT: TranscriptFormat = ClaudeCode()
