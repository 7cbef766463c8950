"""OpenCode's files: a session, its messages and their parts, each a file, as versions before 1.2 kept them.

::

    storage/session/<project>/ses_*.json
    storage/message/<session>/msg_*.json
    storage/part/<message>/prt_*.json
"""

from collections.abc import Iterator
from pathlib import Path

from ....core.errors import SourceUnreadable
from ..container import exact, file_name, mark_of, row
from ..folders import matching
from ..json_values import instant
from ..transcript_format import ContainedSession

_PIECES = ("message", "part")


def sessions(storage: Path) -> Iterator[Path]:
    """Every session below a folder, sorted; raises, after all that was found, `PermissionError` for a closed folder."""
    return (path for path in matching([(storage / "session", "*/*.json")]) if is_session(path))


def is_session(path: Path) -> bool:
    """Whether a file is the head of a session that lies in pieces."""
    return path.suffix == ".json" and path.parent.parent.name == "session" and path.name.startswith("ses_")


def is_piece(path: Path) -> bool:
    """Whether a file is a session, or a message or a part of one."""
    return is_session(path) or path.parent.parent.name in _PIECES or path.parent.name in _PIECES


def state(path: Path) -> int:
    """What is another whenever the session or one of its messages is; raises `OSError`."""
    return mark_of(_stat(path), *((each.name, _stat(each)) for each in _messages(path)))


def conversation(path: Path) -> ContainedSession:
    """A session; raises `SourceUnreadable`."""
    try:
        at = instant(path.stat().st_mtime_ns // 1_000_000) or 0
        name = file_name(path.stem)
        return ContainedSession(path / name, f"{path.parent.name}/{name}", state(path), at, lambda: _rows(path))
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _rows(path: Path) -> Iterator[bytes]:
    try:
        yield row(path.stem, session=exact(path.read_bytes()))
        for message in _messages(path):
            folder = _storage(path) / "part" / message.stem
            parts = [{"id": part.stem, "data": exact(part.read_bytes())} for part in _files(folder)]
            yield row(message.stem, message=exact(message.read_bytes()), parts=parts)
    except OSError as error:
        raise SourceUnreadable(path, error.strerror or str(error)) from None


def _messages(path: Path) -> list[Path]:
    return _files(_storage(path) / "message" / path.stem)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except (FileNotFoundError, NotADirectoryError):
        return []


def _storage(path: Path) -> Path:
    return path.parents[2]


def _stat(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
