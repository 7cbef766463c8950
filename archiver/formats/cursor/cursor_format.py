"""The format of Cursor."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.errors import SourceUnreadable
from ....core.report import Unsearched
from ...files.lines import Record
from .. import folders
from ..container import header_of, mark_of
from ..foreign_database import Foreign
from ..json_values import instant, mapping, string
from ..transcript_format import ContainedSession
from . import cursor_chats, cursor_editor
from .cursor_reader import CursorReader

_TRANSCRIPTS, _SUBAGENTS = "agent-transcripts", "subagents"
_EDITOR, _CHAT = "state.vscdb", "store.db"


class Cursor:
    """Conversations in three places: the editor's own databases, a database for each chat of its command line, and
    transcripts of its agents as JSON lines.
    """

    agent = "cursor"

    def roots(self) -> list[Path]:
        """The existing folder of this user's agents."""
        folder = Path.home() / ".cursor" / "projects"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<project>/agent-transcripts/<id>.jsonl`, or that in a folder of the same name; sorted."""
        return (path for path in folders.files(root, _is_jsonl, skipped=skipped) if _TRANSCRIPTS in path.parts)

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file may be a transcript by its name."""
        return _is_jsonl(path.name)

    def names(self, name: str) -> bool:  # noqa: ARG002 - the signature is the protocol's
        """A transcript's name is an id, as with others."""
        return False

    def archive_name(self, path: Path, root: Path) -> str:
        """As it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is a message with nothing around it, as only Cursor writes them."""
        return any(map(_is_own, records))

    def containers(self) -> Iterator[Path]:
        """The databases of this user's editor and chats, sorted."""
        user = _user()
        places = [(user, f"globalStorage/{_EDITOR}"), (user, f"workspaceStorage/*/{_EDITOR}")]
        places.append((Path.home() / ".cursor" / "chats", f"*/*/{_CHAT}"))
        return folders.matching(places)

    def holds(self, path: Path) -> bool:
        """Whether a file is a database of the editor, or of a chat. One that cannot be read now may be."""
        if path.name not in {_EDITOR, _CHAT} or not path.is_file():
            return False
        try:
            return bool(Foreign(path).columns("ItemTable" if path.name == _EDITOR else "blobs"))
        except SourceUnreadable:
            return True

    def state(self, path: Path) -> int:
        """The database's."""
        return mark_of(*Foreign(path).state())

    def conversations(self, path: Path) -> Iterator[ContainedSession]:
        """Every conversation, its header before its messages."""
        return cursor_chats.conversations(path) if path.name == _CHAT else cursor_editor.conversations(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells, else the name of the file; a transcript's only time is that of its file."""
        header = header_of(head)
        number = string(header.get("composerId")) or string(header.get("agentId")) or string(header.get("tabId"))
        if number:
            return Session(self.agent, number, cwd=string(header.get("folder")))
        parent = path.parent.parent.name if path.parent.name == _SUBAGENTS else ""
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        at = instant(path.stat().st_mtime_ns // 1_000_000) if path.is_file() else None
        return Session(self.agent, path.stem, kind, parent, started=at, ended=at)

    def reader(self, session: Session, *, shorten: bool = True) -> CursorReader:
        """A reader for one conversation."""
        return CursorReader(session, shorten=shorten)


def _user() -> Path:
    """Where the editor keeps what is this user's."""
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        data = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return data / "Cursor" / "User"


def _is_jsonl(name: str) -> bool:
    return name.endswith(".jsonl")


def _is_own(record: Record) -> bool:
    content = mapping(record.get("message")).get("content")
    return (
        string(record.get("role")) in {"user", "assistant"} and "type" not in record and isinstance(content, list | str)
    )
