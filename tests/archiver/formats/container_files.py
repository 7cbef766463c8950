"""Synthetic containers, and helpers that read them."""

from collections.abc import Iterable
from pathlib import Path

import apsw

from palaver.archiver.formats import ContainerFormat, Event
from palaver.core.conversation import Kind, Speaker, Turn

from .reading import lines

TurnTuple = tuple[Speaker, Kind, str]


def database(path: Path, script: str, rows: Iterable[tuple[str, tuple[object, ...]]] = ()) -> apsw.Connection:
    """Create a database and insert rows. The open connection simulates the running agent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute(script).fetchall()
    for statement, values in rows:
        connection.execute(statement, values)  # pyright: ignore[reportArgumentType]
    return connection


def contents(known: ContainerFormat, path: Path) -> dict[str, bytes]:
    """Return the lines of every session of a container, by the archive name of the session."""
    return {each.archive_name: b"".join(each.lines()) for each in known.sessions(path)}


def events(known: ContainerFormat, data: bytes, path: Path = Path("x.jsonl")) -> list[Event]:
    """Return the events of the lines of one session."""
    return list(known.reader(known.identify(path, data)).read(lines(data)))


def turns(known: ContainerFormat, path: Path) -> dict[str, list[TurnTuple]]:
    """Return the turns of every session of a container."""
    return {name: turn_tuples(events(known, data)) for name, data in contents(known, path).items()}


def turn_tuples(found: Iterable[Event]) -> list[TurnTuple]:
    """Return the speaker, the kind and the text of each turn."""
    return [(event.speaker, event.kind, event.text) for event in found if isinstance(event, Turn)]
