"""Containers as their readers see them."""

from collections.abc import Iterable
from pathlib import Path

import apsw

from palaver.archiver.formats import ContainerFormat, Event
from palaver.core.conversation import Kind, Speaker, Turn

from .reading import lines

Said = tuple[Speaker, Kind, str]


def database(path: Path, script: str, rows: Iterable[tuple[str, tuple[object, ...]]] = ()) -> apsw.Connection:
    """A database made by a script, with rows put in by statements. The caller closes it, or its program still runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute(script).fetchall()
    for statement, values in rows:
        connection.execute(statement, values)  # pyright: ignore[reportArgumentType]
    return connection


def contents(known: ContainerFormat, path: Path) -> dict[str, bytes]:
    """The lines of every conversation of a container, by name."""
    return {each.archive_name: b"".join(each.lines()) for each in known.sessions(path)}


def events(known: ContainerFormat, data: bytes, path: Path = Path("x.jsonl")) -> list[Event]:
    """What the lines of one conversation say."""
    return list(known.reader(known.identify(path, data)).read(lines(data)))


def said(known: ContainerFormat, path: Path) -> dict[str, list[Said]]:
    """What was said in every conversation of a container."""
    return {name: spoken(events(known, data)) for name, data in contents(known, path).items()}


def spoken(found: Iterable[Event]) -> list[Said]:
    """The turns among some events."""
    return [(event.speaker, event.kind, event.text) for event in found if isinstance(event, Turn)]
