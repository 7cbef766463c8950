"""The format of OpenCode."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..container import mark_of
from ..foreign_database import Foreign
from ..json_values import mapping, string
from ..transcript_format import ContainedSession
from . import opencode_database, opencode_files
from .opencode_reader import OpenCodeReader

_DATABASE = re.compile(r"opencode(?:-[\w.]+)?\.db")


class OpenCode:
    """Sessions under `~/.local/share/opencode`: a database, and before that a file for each message and each part of
    one. A session that was exported is one JSON document.
    """

    agent = "opencode"

    def roots(self) -> list[Path]:
        """None: exports lie wherever they were saved."""
        return []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Exported sessions in a folder, sorted."""
        return (path for path in folders.files(root, _is_export, skipped=skipped) if self.keeps(path, root))

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its name tells
        """Whether a file may be an exported session, and not a piece of a session that lies in pieces."""
        return _is_export(path.name) and not opencode_files.is_piece(path)

    def names(self, name: str) -> bool:  # noqa: ARG002 - the signature is the protocol's
        """An export is called as its owner likes."""
        return False

    def archive_name(self, path: Path, root: Path) -> str:
        """As it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is the header of an exported session."""
        return any(_is_header(mapping(record.get("info"))) for record in records)

    def containers(self) -> Iterator[Path]:
        """The databases of this user, and each session that lies in files."""
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share").expanduser() / "opencode"
        named = os.environ.get("OPENCODE_DB")
        if named and (data / Path(named).expanduser()).is_file():
            yield data / Path(named).expanduser()
        if data.is_dir():
            yield from (path for path in sorted(data.iterdir()) if _DATABASE.fullmatch(path.name))
            yield from opencode_files.sessions(data / "storage")

    def holds(self, path: Path) -> bool:
        """Whether a file is a database of sessions, or a session that lies in pieces beside it."""
        if opencode_files.is_session(path):
            return True
        return _DATABASE.fullmatch(path.name) is not None and opencode_database.is_one(path)

    def state(self, path: Path) -> int:
        """Of a session in pieces, that of its messages too; the last part changes before its message does."""
        return opencode_files.state(path) if opencode_files.is_session(path) else mark_of(*Foreign(path).state())

    def conversations(self, path: Path) -> Iterator[ContainedSession]:
        """Every session, parents before their sub-agents, its header before its messages."""
        if opencode_files.is_session(path):
            return iter((opencode_files.conversation(path),))
        return opencode_database.conversations(path)

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells, else the file's name; a session with a parent is a sub-agent's."""
        headers = (mapping(record.get("session") or record.get("info")) for record in head_records(head))
        header = next(filter(_is_header, headers), Record())
        parent = string(header.get("parentID") or header.get("parent_id"))
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        return Session(self.agent, string(header.get("id")) or path.stem, kind, parent)

    def reader(self, session: Session, *, shorten: bool = True) -> OpenCodeReader:
        """A reader for one session."""
        return OpenCodeReader(session, shorten=shorten)


def _is_export(name: str) -> bool:
    return name.endswith(".json")


def _is_header(info: Record) -> bool:
    return "role" not in info and "directory" in info and isinstance(info.get("id"), str)
