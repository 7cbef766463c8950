"""Format of Cursor conversations: finds and recognises them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.errors import SourceUnreadable
from ...files.lines import Record
from .. import folders
from ..containers import fingerprint, header_of
from ..folder_format import FolderFormat
from ..foreign_database import ForeignDatabase
from ..json_values import first_string, instant, mapping, string
from ..transcript_format import ContainedSession, ContainerFormat
from . import cursor_chats, cursor_editor
from .cursor_reader import CursorReader
from .cursor_workspaces import folder_called

_TRANSCRIPTS, _SUBAGENTS = "agent-transcripts", "subagents"
_EDITOR, _CHAT = "state.vscdb", "store.db"


class Cursor(FolderFormat):
    """Conversations in editor databases, in one database per command-line chat, and in agent transcripts.

    An agent transcript is `<id>.jsonl` or `<id>/<id>.jsonl` in `~/.cursor/projects/<project>/agent-transcripts`.
    """

    agent = "cursor"
    reader_class = CursorReader
    home_folder, root_folders = ".cursor", ("projects",)

    def containers(self) -> Iterator[Path]:
        """Yield this user's editor databases and chat databases."""
        user = _editor_data()
        patterns = [(user, f"globalStorage/{_EDITOR}"), (user, f"workspaceStorage/*/{_EDITOR}")]
        return folders.matching([*patterns, (Path.home() / ".cursor" / "chats", f"*/*/{_CHAT}")])

    def is_container(self, path: Path) -> bool:
        """Return whether a file is an editor or chat database. A temporarily unreadable database counts too."""
        if path.name not in {_EDITOR, _CHAT} or not path.is_file():
            return False
        try:
            tables = cursor_editor.TABLES if path.name == _EDITOR else cursor_chats.TABLES
            return any(map(ForeignDatabase(path).columns, tables))
        except SourceUnreadable:
            return True

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the database changes."""
        return fingerprint(*ForeignDatabase(path).state())

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every conversation, with its header before its messages."""
        return cursor_chats.sessions(path) if path.name == _CHAT else cursor_editor.sessions(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        An agent transcript contains few times. The modification time of its file is used as the session's time.
        """
        header = header_of(head)
        session_id = first_string(header, "composerId", "agentId", "tabId")
        if session_id:
            return Session(self.agent, session_id, cwd=string(header.get("folder")))
        parent = path.parent.parent.name if path.parent.name == _SUBAGENTS else ""
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        at = instant(path.stat().st_mtime_ns // 1_000_000) if path.is_file() else None
        name = path.parts[path.parts.index(_TRANSCRIPTS) - 1] if _TRANSCRIPTS in path.parts else ""
        cwd = folder_called(name, _editor_data())
        return Session(self.agent, path.stem, kind, parent, cwd=cwd, started=at, ended=at, scope=parent)

    def _is_from_agent(self, record: Record) -> bool:
        content = mapping(record.get("message")).get("content")
        is_message = string(record.get("role")) in {"user", "assistant"} and isinstance(content, list | str)
        return is_message and "type" not in record

    def _has_transcript_path(self, path: Path) -> bool:
        return _TRANSCRIPTS in path.parts


def _editor_data() -> Path:
    """Return the folder of the editor's user data."""
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        data = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return data / "Cursor" / "User"


FORMAT: ContainerFormat = Cursor()
