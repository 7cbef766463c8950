"""Base classes of formats whose sessions are rows of an SQLite database, or are split into several JSON files.

Both convert a session to JSON lines: first its header, as `{"id": …, "conversation": {…}}`, then one line per message,
as `{"id": …, "message": {…}}`. The reader of the agent reads these lines like any transcript.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

import orjson
from msgspec import Struct

from ...core.conversation import Session, SessionKind
from ...core.errors import PartlyRead, SourceUnreadable
from ..lines import Record
from . import record_reader
from .containers import (
    ForeignDatabase,
    Value,
    as_bytes,
    as_text,
    exact_json,
    file_fingerprint,
    file_name,
    fingerprint,
    header_of,
    message_line,
)
from .json_values import first_string, instant, mapping
from .record_reader import FolderFormat
from .transcript_format import ContainedSession

# ruff: noqa: S608 - statements contain only fixed names and quoted column names, and values are bound

_GENERATION = re.compile(r"_?v?\d{1,3}")
REPORT_HINT = "A newer version of Palaver may read it. Run `palaver formats report`, and attach its output to a report."

Row: TypeAlias = dict[str, object]


class Table(Struct, frozen=True):
    """Table of a database, with the columns that a format knows."""

    name: str
    needed: frozenset[str]
    """Columns without which the table cannot be read."""
    known: frozenset[str] = frozenset()
    """Further columns of the checked versions. Any other column is copied too, and reported as unknown."""
    key: str = "id"
    """Column that identifies a row."""
    session: str = ""
    """Column with the ID of the row's session."""
    order: str = "rowid"
    """SQL expression by which the rows of a session are sorted."""
    json: frozenset[str] = frozenset()
    """Columns that contain JSON."""
    changing: frozenset[str] = frozenset()
    """Known columns that change with every message. They are not copied, so that a session is only appended to."""

    def unknown(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that the format does not know."""
        return sorted(set(columns) - self.needed - self.known - self.changing)


class ContainedFormat(FolderFormat):
    """Base class of formats whose sessions begin with a header line, which identifies them."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    id_fields: ClassVar[tuple[str, ...]] = ("id",)
    """Fields of the header with the session's ID."""
    parent_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the header with the ID of the session that started this session as a sub-agent."""
    folder_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of the header with the working folder."""

    @abstractmethod
    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the places of this user's containers: folders, each with a glob below it."""

    def containers(self) -> Iterator[Path]:
        """Yield every existing container of this user."""
        return (path for path in record_reader.matching(self.locations()) if path.is_file())

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the container, or its write-ahead log, changes."""
        return fingerprint(*ForeignDatabase(path).state())

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name."""
        header = header_of(head)
        parent = first_string(header, *self.parent_fields)
        kind = SessionKind.SUBAGENT if parent else SessionKind.MAIN
        session_id = first_string(header, *self.id_fields) or path.stem
        return Session(self.agent, session_id, kind, parent, cwd=first_string(header, *self.folder_fields))

    def unknown_parts(self, path: Path) -> list[str]:  # noqa: ARG002 - most containers have no such parts
        """Return a description of the columns and tables that only newer versions have. Raises `SourceUnreadable`."""
        return []

    def _is_from_agent(self, record: Record) -> bool:  # noqa: ARG002 - sessions are identified by their container
        return False


class DatabaseFormat(ContainedFormat):
    """Base class of formats with a table of sessions and a table of their messages in one SQLite database."""

    database_name: ClassVar[str]
    """File name of the database."""
    session_table: ClassVar[Table]
    message_table: ClassVar[Table]
    other_tables: ClassVar[tuple[Table, ...]] = ()
    """Tables with other rows of a session, such as token counts. They are copied after the messages.

    The line of a row is `{"id": …, "<name of the table>": {…}}`. Some versions may lack the table.
    """

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a database with the sessions. A temporarily unreadable database counts too."""
        if path.name != self.database_name or not path.is_file():
            return False
        try:
            return self.session_table.key in ForeignDatabase(path).columns(self.session_table.name)
        except SourceUnreadable:
            return True

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every session.

        Raises:
            SourceUnreadable: The database cannot be read.
            PartlyRead: After the last session, if a table or a column is missing.
        """
        database = ForeignDatabase(path)
        every = (self.session_table, self.message_table, *self.other_tables)
        columns = {table.name: database.columns(table.name) for table in every}
        tables = [table for table in every if columns[table.name] or table not in self.other_tables]
        lacking = [table for table in tables if not table.needed <= columns[table.name]]
        if self.session_table not in lacking and self.message_table not in lacking:
            others = [table for table in self.other_tables if table in tables and table not in lacking]
            yield from self._sessions(database, others)
        problems = [f"table {each.name} lacks {_names(each.needed - columns[each.name])}" for each in lacking]
        if problems:
            raise PartlyRead(path, "; ".join(problems), hint=REPORT_HINT)

    def unknown_parts(self, path: Path) -> list[str]:
        """Return a description of the columns and tables that only newer versions have. Raises `SourceUnreadable`."""
        database = ForeignDatabase(path)
        every = (self.session_table, self.message_table, *self.other_tables)
        columns = [(table.name, table.unknown(database.columns(table.name))) for table in every]
        signs = [f"table {name} has the unknown columns {_names(new)}" for name, new in columns if new]
        names = {as_text(name) for (name,) in database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        newer = [name for name in names for table in every if _GENERATION.fullmatch(name.removeprefix(table.name))]
        return [*signs, *(f"table {name} is not read" for name in sorted(set(newer) - {table.name for table in every}))]

    def _sessions(self, database: ForeignDatabase, others: Sequence[Table]) -> Iterator[ContainedSession]:
        table = self.session_table
        states = [{session: tuple(state) for session, *state in _states(database, each)}
                  for each in (self.message_table, *others)]  # fmt: skip
        rows = list(_rows(database, table, f"SELECT * FROM {table.name} ORDER BY {table.order}"))
        for session in self._in_order(rows):
            header = {name: value for name, value in session.items() if name not in table.changing}
            session_id = str(session[table.key])
            name = file_name(session_id)
            at = max((instant(value) or 0 for value in self._changes(session)), default=0)
            state = fingerprint(session, *(each.get(session_id) for each in states))
            lines = partial(self._lines, database, session_id, header, others)
            yield ContainedSession(database.path / name, f"{database.path.parent.name}/{name}", state, at, lines)

    def _in_order(self, rows: list[Row]) -> list[Row]:
        """Return the sessions, each parent before its sub-agents."""
        return sorted(rows, key=lambda row: any(row.get(name) for name in self.parent_fields))

    def _changes(self, session: Row) -> Iterable[object]:
        """Return the values of a session that may be the time of its last change."""
        return (session.get("updated_at"), session.get("created_at"))

    def _lines(
        self, database: ForeignDatabase, session_id: str, header: Row, others: Sequence[Table]
    ) -> Iterator[bytes]:
        yield message_line(session_id, conversation=header)
        for row in _rows_of(database, self.message_table, session_id):
            yield message_line(f"{session_id}/{row[self.message_table.key]}", message=self._message(row))
        for table in others:
            for row in _rows_of(database, table, session_id):
                yield message_line(f"{session_id}/{table.name}/{row[table.key]}", **{table.name: row})

    def _message(self, row: Row) -> Row:
        """Return the values of a message that are copied."""
        return row


class SplitFormat(ContainedFormat):
    """Base class of formats that split a session into several JSON files in one folder.

    The file that `locations` finds represents the session, and is its container.
    """

    main_files: ClassVar[tuple[str, ...]] = ()
    """Names of the files that represent a session. If several are in a folder, the first one does."""

    @abstractmethod
    def parts(self, path: Path) -> Iterable[Path]:
        """Return the existing and possible files of a session, given the file that represents it."""

    @abstractmethod
    def session_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the header and the messages of a session as JSON lines. Raises `OSError`."""

    def is_container(self, path: Path) -> bool:
        """Return whether a file represents a session."""
        if path.name not in self.main_files:
            return False
        main = (path.with_name(name) for name in self.main_files)
        return path == next((other for other in main if other.is_file()), None)

    def containers(self) -> Iterator[Path]:
        """Yield the file that represents each session."""
        return filter(self.is_container, super().containers())

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever a file of the session changes. Raises `OSError`."""
        return fingerprint(*((part.name, file_fingerprint(part)) for part in self.parts(path) if part.is_file()))

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the session. Raises `SourceUnreadable`."""
        try:
            at = instant(path.stat().st_mtime_ns // 1_000_000) or 0
            session_id = self.session_id(path)
            name = file_name(session_id)
            state = self.container_state(path)
            yield ContainedSession(path / name, f"sessions/{name}", state, at, partial(self._lines, path))
        except OSError as error:
            raise SourceUnreadable(path, error.strerror or str(error)) from None

    def session_id(self, path: Path) -> str:
        """Return the ID of the session that a file represents. The default is the name of its folder."""
        return path.parent.name

    def _lines(self, path: Path) -> Iterator[bytes]:
        try:
            yield from self.session_lines(path)
        except OSError as error:
            raise SourceUnreadable(path, error.strerror or str(error)) from None
        except ValueError as error:
            raise SourceUnreadable(path, f"the file is damaged or still being written: {error}") from None


def json_of(path: Path) -> object:
    """Return the JSON value in a file, or None if the file does not exist. Raises `OSError` and `ValueError`."""
    try:
        return orjson.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        return None


def message_of(record: Record) -> Record:
    """Return the message in a line of a session."""
    return mapping(record.get("message"))


def _rows(database: ForeignDatabase, table: Table, query: str, values: tuple[Value, ...] = ()) -> Iterator[Row]:
    """Yield rows of a table with their values as text or numbers, or as JSON where a column contains JSON."""
    names = sorted(database.columns(table.name))
    selected = ", ".join(as_bytes(_quoted(name)) for name in names)
    for row in database.rows(query.replace("*", selected, 1), values):
        yield {
            name: exact_json(value) if name in table.json else as_text(value) if isinstance(value, bytes) else value
            for name, value in zip(names, row, strict=True)
        }


def _quoted(name: str) -> str:
    """Return an SQL identifier for a name from a database of another program."""
    return '"' + name.replace('"', '""') + '"'


def _rows_of(database: ForeignDatabase, table: Table, session: str) -> Iterator[Row]:
    query = f"SELECT * FROM {table.name} WHERE {table.session} = ?1 ORDER BY {table.order}"
    for row in _rows(database, table, query, (session,)):
        yield {name: value for name, value in row.items() if name not in table.changing}


def _states(database: ForeignDatabase, table: Table) -> Iterator[tuple[str, int, int]]:
    """Yield the ID of each session with the number and the total size of its rows."""
    size = " + ".join(f"ifnull(octet_length({name}), 0)" for name in sorted(table.needed))
    query = f"SELECT {as_bytes(table.session)}, count(*), total({size}) FROM {table.name} GROUP BY {table.session}"
    for session, count, total_size in database.rows(query):
        yield as_text(session), int(count or 0), int(total_size or 0)


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
