"""Containers: databases and exports with several sessions, whose conversations are converted to JSON lines.

A container can also be one session in several files. Each JSON line is an object that begins with the `id` of its
message. If two lines have the same `id`, the later line is a newer version of the message.

Exports of web services are JSON files with all conversations, possibly in a zip file. A zip file is read as a stream:
no file is unpacked to disk, and at most one conversation is in memory. Names inside a zip file only select the files
to read, and are never used as paths on disk.

Other programs can write to their SQLite databases at any time. A query locks the database only while it runs, and
creates no file beside the database. It returns rows of one consistent state, or raises an error.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar, TypeAlias, cast
from urllib.parse import quote

import apsw
import orjson

from ...core.conversation import Session
from ...core.errors import SourceUnreadable
from ..lines import JSON_DECODER, Record, head_records, line
from . import record_reader
from .json_values import first_string, instant, mapping
from .record_reader import FolderFormat
from .transcript_format import ContainedSession

CONVERSATION_LIMIT = 64 * 1024 * 1024
"""Maximum length of a conversation in characters."""
EXPORT_LIMIT = 8 * 1024 * 1024 * 1024
"""Maximum characters read per export, as protection against decompression bombs."""

_MEMBER = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
_SPACE = re.compile(r"\s*")
_PIECE = 1 << 20
_HEAD = 1 << 20
_NEAR_END = 16
"""Number of characters before the end of the text read so far.

A decoding error among these characters may disappear when more text is read.
"""
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)


def head(path: Path, member: re.Pattern[str] = _MEMBER) -> bytes:
    """Return the first bytes of an export's first file, or empty bytes if `path` is not an export.

    `member` is the pattern of the files in a zip. Raises `OSError`.
    """
    try:
        with _files(path, member) as files:
            return next((file.read(_HEAD) for file in files), b"")
    except _ZIP_FAULTS:
        return b""


def conversations(path: Path, member: re.Pattern[str] = _MEMBER) -> Iterator[dict[str, object]]:
    """Yield every conversation of an export. `member` is the pattern of the files in a zip.

    Raises `SourceUnreadable` for damaged data, after yielding the conversations before the damage.
    """
    try:
        with _files(path, member) as files:
            reader = _JsonStream(path)
            for file in files:
                yield from reader.objects(file)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None
    except RecursionError:
        raise SourceUnreadable(path, "the JSON is nested too deeply for an export") from None
    except _ZIP_FAULTS as fault:
        hint = "Request a new export from the service."
        raise SourceUnreadable(path, f"the export is damaged: {fault}", hint=hint) from None


@contextmanager
def _files(path: Path, member: re.Pattern[str]) -> Generator[Iterator[BinaryIO]]:
    if path.suffix.lower() != ".zip":
        with path.open("rb") as file:
            yield iter((file,))
        return
    with zipfile.ZipFile(path) as pack:
        yield (cast("BinaryIO", pack.open(name)) for name in sorted(filter(member.search, pack.namelist())))


class _JsonStream:
    """Stream of the JSON objects in the files of an export."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text, self._at, self._read = "", 0, 0

    def objects(self, file: BinaryIO) -> Iterator[dict[str, object]]:
        """Yield the objects of the list in a file, or the object if the file contains only one."""
        self._file = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        self._text, self._at = "", 0
        if self._next_character() == "[":
            self._at += 1
        while (character := self._next_character()) not in {"", "]"}:
            if character == ",":
                self._at += 1
                continue
            value = self._value()
            if isinstance(value, dict):
                yield cast("dict[str, object]", value)

    def _next_character(self) -> str:
        """Return the next character that is not whitespace, or an empty string at the end of the text."""
        while True:
            self._at = cast("re.Match[str]", _SPACE.match(self._text, self._at)).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _value(self) -> object:
        while True:
            try:
                value, self._at = JSON_DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as fault:
                cut = fault.pos >= len(self._text) - _NEAR_END or fault.msg.startswith("Unterminated string")
                if not cut or not self._read_more():
                    raise
            else:
                return value

    def _read_more(self) -> bool:
        remaining = self._text[self._at :]
        limits = (("a conversation", len(remaining), CONVERSATION_LIMIT), ("the export", self._read, EXPORT_LIMIT))
        for name, size, limit in limits:
            if size > limit:
                raise SourceUnreadable(self._path, f"{name} is larger than the limit of {limit >> 20} MB")
        piece = self._file.read(max(_PIECE, len(remaining)))
        self._read += len(piece)
        self._text, self._at = remaining + piece, 0
        return bool(piece)


_NAME_LENGTH = 150


def message_line(message_id: str, **values: object) -> bytes:
    """Return a JSON line with a message ID and other values. Values from `exact_json` keep their original JSON."""
    return line({"id": message_id, **values})


def header_of(head: bytes) -> Record:
    """Return the header record of a session, which is among its first lines."""
    return next(
        (mapping(record["conversation"]) for record in head_records(head) if "conversation" in record), Record()
    )


def exact_json(value: object) -> object:
    """Prepare a database value for use in a JSON line.

    Text or bytes that contain JSON are inserted as they are. Other text and bytes become a JSON string.
    """
    if not isinstance(value, bytes | str):
        return value
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace")
    return orjson.Fragment(data.replace(b"\n", b" ").replace(b"\r", b" "))


def fingerprint(*values: object) -> int:
    """Return a positive 63-bit fingerprint of these values."""
    digest = hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") >> 1


def file_fingerprint(path: Path) -> int:
    """Return a fingerprint that changes whenever the file changes. Raises `OSError`."""
    state = path.stat()
    return fingerprint(state.st_ino, state.st_size, state.st_mtime_ns)


def file_name(session_id: str) -> str:
    """Return a safe file name for a session ID."""
    name = record_reader.safe(session_id.encode("utf-8", "replace").decode())
    return f"{name[:_NAME_LENGTH]}~{fingerprint(session_id):x}.jsonl" if len(name) > _NAME_LENGTH else f"{name}.jsonl"


class ExportFormat(FolderFormat):
    """Base class of formats for exports of web services, such as ChatGPT.

    An export is a JSON file, possibly in a zip file. Palaver does not search for exports: the user passes their paths.
    """

    suffixes = ()
    service: ClassVar[str]
    """Host name of the service, such as `claude.ai`. The path of every session from this service begins with it."""
    messages_field: ClassVar[str]
    """Name of the field with a conversation's messages. Its presence identifies an export."""
    messages_type: ClassVar[type]
    id_fields: ClassVar[tuple[str, ...]]
    name_fields: ClassVar[tuple[str, str]]
    """Fields that identify a conversation without an ID: title and time of creation."""
    time_fields: ClassVar[tuple[str, str]]
    """Fields with the times of the last change and of creation."""

    def containers(self) -> Iterator[Path]:
        """Yield nothing, because exports have no default location. The user passes their paths."""
        return iter(())

    def is_container(self, path: Path) -> bool:
        """Return whether a file is an export, or a zip with an export. Raises `OSError`."""
        marker = f'"{self.messages_field}"'.encode()
        return path.suffix.lower() in {".json", ".zip"} and marker in head(path)

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the file changes. Raises `OSError`."""
        return file_fingerprint(path)

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield each conversation, with its header before its messages."""
        for conversation in conversations(path):
            if isinstance(conversation.get(self.messages_field), self.messages_type):
                yield self._session(conversation)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name."""
        return Session(self.agent, first_string(header_of(head), *self.id_fields) or path.stem)

    def _is_from_agent(self, record: Record) -> bool:  # noqa: ARG002 - the base's signature
        return False

    def _session(self, found: Record) -> ContainedSession:
        header = {name: value for name, value in found.items() if name != self.messages_field}
        identity = fingerprint(*(header.get(name) for name in self.name_fields))
        session_id = first_string(header, *self.id_fields) or f"{identity:x}"
        lines = [message_line(session_id, conversation=header), *self._messages(session_id, found)]
        changed, created = (instant(header.get(name)) for name in self.time_fields)
        name = file_name(session_id)
        at = changed or created or 0
        return ContainedSession(
            Path(self.service, name), f"conversations/{name}", fingerprint(*lines), at, lambda: lines
        )

    @abstractmethod
    def _messages(self, session_id: str, found: Record) -> Iterator[bytes]:
        """Yield the message lines of a conversation."""


Value: TypeAlias = "str | bytes | int | float | None"
Rows: TypeAlias = "list[tuple[Value, ...]]"

_ATTEMPTS = 20
_PAUSE = 0.05
_BUSY_MS = 2_000
_HINT = "If its program is not running, start and quit it once. Then run `palaver archive` again."


class ForeignDatabase:
    """A database of another program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def state(self) -> tuple[tuple[int, ...], ...]:
        """Return device, inode, modification time and size of the database and of its write-ahead log.

        Every change of the database changes at least one of these values.
        """
        return tuple(_stat(self._beside(suffix)) for suffix in ("", "-wal"))

    def columns(self, table: str) -> set[str]:
        """Return the column names of a table, or an empty set if the table does not exist."""
        return {str(name) for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}

    def rows(self, sql: str, values: tuple[Value, ...] = ()) -> Rows:
        """Return all rows of a query. Raises `SourceUnreadable`."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE)
            try:
                before = self._state_without_log()
                with self._opened(immutable=before is not None) as connection:
                    rows = cast("Rows", connection.execute(sql, values).fetchall())
                if before is None or before == self._state_without_log():
                    return rows
                problem = "another program changes it too often"
            except (apsw.NotADBError, apsw.SQLError) as error:
                problem = str(error)
                break
            except apsw.Error as error:
                problem = str(error)
            except OSError as error:
                problem = error.strerror or str(error)
                break
        raise SourceUnreadable(self.path, f"the database cannot be read: {problem}", hint=_HINT)

    def _state_without_log(self) -> tuple[object, ...] | None:
        """Return the state of a database whose write-ahead log is empty or missing. Return None for other databases."""
        if _stat(self._beside("-wal"))[-1:] not in ((), (0,)):
            return None
        if _stat(self._beside("-journal"))[-1:] not in ((), (0,)):
            raise apsw.BusyError("another program is writing")
        with self.path.open("rb") as file:
            return _stat(self.path), file.read(100)

    @contextmanager
    def _opened(self, *, immutable: bool) -> Generator[apsw.Connection]:
        # A database without a log is read without a lock, and its state is compared afterwards. A lock would block
        # writes of the other program. In WAL mode, SQLite would also create files beside the database.
        with ExitStack() as opened:
            path, mode = self.path.absolute(), "immutable=1" if immutable else "mode=ro&readonly_shm=1"
            if not immutable and not self._beside("-shm").exists():
                # SQLite would create the missing file. No program has the database open, so its files can be copied.
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
                for file in (path, self._beside("-wal")):
                    shutil.copy(file, folder)
                path, mode = folder / path.name, "mode=rw"
            name = f"file:{quote(os.fsencode(path))}?{mode}"
            flags = apsw.SQLITE_OPEN_READWRITE if mode == "mode=rw" else apsw.SQLITE_OPEN_READONLY
            connection = opened.enter_context(closing(apsw.Connection(name, flags=flags | apsw.SQLITE_OPEN_URI)))
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute("PRAGMA query_only=1")
            connection.execute("PRAGMA trusted_schema=0")
            yield connection

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)


def as_bytes(column: str) -> str:
    """Return an SQL expression that selects text as bytes, because the text can be invalid UTF-8.

    Decode the bytes with `as_text`.
    """
    return f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


def as_text(value: Value) -> str:
    """Return any database value as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _stat(path: Path) -> tuple[int, ...]:
    try:
        state = path.stat()
    except FileNotFoundError:
        return ()
    return (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
