"""The format of Gemini CLI."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..json_values import string
from .gemini_reader import GeminiReader

_NAME = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-[0-9a-f]{8}\.jsonl?")
_CHATS = "chats"
# Beside the conversations lie what was typed, earlier states of files, and what tools printed.
_OTHER_FOLDERS = {"checkpoints", "tool-outputs"}
_PLACE, _PLACE_MAX = ".project_root", 4096


class Gemini:
    """Conversations under `~/.gemini/tmp/<project>/chats`: a JSON document each, or JSON lines since 0.40."""

    agent = "gemini"

    def roots(self) -> list[Path]:
        """The existing folder of this user's projects."""
        home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()).expanduser()
        folder = home / ".gemini" / "tmp"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<project>/chats/<session>`, and sub-agents in a folder named after their parent; sorted."""
        found = folders.files(root, _is_conversation, without=_OTHER_FOLDERS, skipped=skipped)
        return (path for path in found if _CHATS in path.parts and self.keeps(path, root))

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file may be a conversation, and not the older half of one that was written anew as lines."""
        if not _is_conversation(path.name) or not _OTHER_FOLDERS.isdisjoint(path.relative_to(root).parts[:-1]):
            return False
        return path.suffix != ".json" or not path.with_suffix(".jsonl").exists()

    def names(self, name: str) -> bool:
        """Whether it is a time and the beginning of a session's id."""
        return _NAME.fullmatch(name) is not None

    def archive_name(self, path: Path, root: Path) -> str:
        """`<project>/chats/<session>`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is the header of a conversation."""
        return any(map(_is_header, records))

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells the session's id, else the file's name does; a file beside the folder tells its place."""
        header = next(filter(_is_header, head_records(head)), Record())
        native_id = string(header.get("sessionId")) or path.name.partition(".")[0]
        if header.get("kind") != "subagent":
            return Session(self.agent, native_id, cwd=_place(path.parent))
        beside = path.parent.parent.name == _CHATS
        parent, chats = (path.parent.name, path.parent.parent) if beside else ("", path.parent)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent, cwd=_place(chats))

    def reader(self, session: Session, *, shorten: bool = True) -> GeminiReader:
        """A reader for one file of that session."""
        return GeminiReader(session, shorten=shorten)


def _is_conversation(name: str) -> bool:
    return name.endswith((".json", ".jsonl")) and name != "logs.json"


def _is_header(record: Record) -> bool:
    return "projectHash" in record and isinstance(record.get("sessionId"), str)


def _place(chats: Path) -> str:
    """The folder a project's conversations are about; empty where the agent did not write it down."""
    try:
        with (chats.parent / _PLACE).open(encoding="utf-8", errors="replace") as file:
            return file.read(_PLACE_MAX).strip()
    except OSError:
        return ""
