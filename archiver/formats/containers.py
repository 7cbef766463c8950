"""Conversion of the sessions in a container to JSON lines.

A container is a database or an export with several sessions, or one session in several files. Each JSON line is an
object that begins with the `id` of its message. If two lines have the same `id`, the later line is a newer version of
the message.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import orjson

from ...core.conversation import Session
from ..files.json_document import line
from ..files.lines import Record, head_records
from . import folders, json_export
from .folder_format import FolderFormat
from .json_values import first_string, instant, mapping
from .transcript_format import ContainedSession

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
    found = path.stat()
    return fingerprint(found.st_ino, found.st_size, found.st_mtime_ns)


def file_name(session_id: str) -> str:
    """Return a safe file name for a session ID."""
    name = folders.safe(session_id.encode("utf-8", "replace").decode())
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
        return path.suffix.lower() in {".json", ".zip"} and marker in json_export.head(path)

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the file changes. Raises `OSError`."""
        return file_fingerprint(path)

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield each conversation, with its header before its messages."""
        for found in json_export.conversations(path):
            if isinstance(found.get(self.messages_field), self.messages_type):
                yield self._session(found)

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
