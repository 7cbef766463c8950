"""Format of OpenCode sessions: finds and recognises them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record, head_records
from .. import folders
from ..containers import fingerprint
from ..folder_format import FolderFormat
from ..foreign_database import ForeignDatabase
from ..json_values import first_string, mapping, string
from ..transcript_format import ContainedSession, ContainerFormat
from . import opencode_database, opencode_files
from .opencode_reader import OpenCodeReader

_DATABASE = re.compile(r"opencode[\w.-]*\.db")


class OpenCode(FolderFormat):
    """Sessions in databases in `~/.local/share/opencode`.

    Before version 1.2, OpenCode split a session into files, one per message and one per part of a message. An export is
    one JSON document in a location that the user chooses.
    """

    agent = "opencode"
    reader_class = OpenCodeReader
    suffixes = (".json",)

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be an exported session. Files of split sessions are excluded."""
        return super().may_be_transcript(path, root) and not opencode_files.is_piece(path)

    def containers(self) -> Iterator[Path]:
        """Yield this user's databases, and the header file of each split session."""
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share").expanduser() / "opencode"
        configured = os.environ.get("OPENCODE_DB")
        if configured and (data / Path(configured).expanduser()).is_file():
            yield data / Path(configured).expanduser()
        if data.is_dir():
            yield from (path for path in sorted(data.iterdir()) if _DATABASE.fullmatch(path.name))
            sessions = folders.matching([(data / "storage" / "session", "*/*.json")])
            yield from filter(opencode_files.is_session, sessions)

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database of sessions, or the header of a session in several files."""
        if opencode_files.is_session(path):
            return True
        return _DATABASE.fullmatch(path.name) is not None and opencode_database.has_sessions(path)

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the database, or a file of a split session, changes."""
        if opencode_files.is_session(path):
            return opencode_files.state(path)
        return fingerprint(*ForeignDatabase(path).state())

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every session, parents before sub-agents, each with its header before its messages."""
        if opencode_files.is_session(path):
            return iter((opencode_files.session(path),))
        return opencode_database.sessions(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        A session that names a parent session is the session of a sub-agent.
        """
        headers = (mapping(record.get("session") or record.get("info")) for record in head_records(head))
        header = next(filter(_is_header, headers), Record())
        parent = first_string(header, "parentID", "parent_id")
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        return Session(self.agent, string(header.get("id")) or path.stem, kind, parent)

    def _is_from_agent(self, record: Record) -> bool:
        return _is_header(mapping(record.get("info")))


def _is_header(info: Record) -> bool:
    return "role" not in info and "directory" in info and isinstance(info.get("id"), str)


FORMAT: ContainerFormat = OpenCode()
