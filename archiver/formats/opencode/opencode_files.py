"""OpenCode's sessions before version 1.2: one file per session header, message and message part.

::

    storage/session/<project>/ses_*.json
    storage/message/<session>/msg_*.json
    storage/part/<message>/prt_*.json
"""

from collections.abc import Iterator
from pathlib import Path

from ....core.errors import SourceUnreadable
from .. import folders
from ..containers import exact_json, file_fingerprint, file_name, fingerprint, message_line
from ..json_values import instant, json_file, string
from ..transcript_format import ContainedSession

_PIECES = ("message", "part")


def is_session(path: Path) -> bool:
    """Return whether a file is the header of a session that is stored in several files."""
    return path.suffix == ".json" and path.parent.parent.name == "session" and path.name.startswith("ses_")


def is_piece(path: Path) -> bool:
    """Return whether a file is a session header, a message or a message part."""
    return is_session(path) or path.parent.parent.name in _PIECES or path.parent.name in _PIECES


def state(path: Path) -> int:
    """Return a fingerprint that changes whenever the header or a message changes. Raises `OSError`."""
    return fingerprint(file_fingerprint(path), *((each.name, file_fingerprint(each)) for each in _messages(path)))


def session(path: Path) -> ContainedSession:
    """Return the session with this header file. Raises `SourceUnreadable`."""
    try:
        at = instant(path.stat().st_mtime_ns // 1_000_000) or 0
        name = file_name(path.stem)
        return ContainedSession(path / name, f"{path.parent.name}/{name}", state(path), at, lambda: _lines(path))
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _lines(path: Path) -> Iterator[bytes]:
    try:
        yield message_line(path.stem, session=exact_json(path.read_bytes()))
        for message in _messages(path):
            files = _files_of(message, path.parents[2] / "part")
            parts = [{"id": part.stem, "data": exact_json(part.read_bytes())} for part in files]
            yield message_line(message.stem, message=exact_json(message.read_bytes()), parts=parts)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _messages(path: Path) -> list[Path]:
    return _files_of(path, path.parents[2] / "message")


def _files_of(path: Path, folder: Path) -> list[Path]:
    """Return the files of a session or a message, whose folder is named by the file name or by the ID in the file."""
    return _files(folder / path.stem) or _files(folder / folders.safe(string(json_file(path).get("id"))))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []
