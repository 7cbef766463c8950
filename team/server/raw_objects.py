"""Full copies in the transactions of a team: read, and delete those that are withdrawn.

A trigger of the database lists the object of each item, and marks it as withdrawn when its item is replaced or deleted.
Objects are deleted after that transaction. Those that a killed server wrote without an item are found by
`palaver team clean`.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import json
from msgspec.structs import replace

from ...archiver.lines import clip, trim
from ...core.conversation import Exchange
from ...core.errors import InvalidInput, SyncRefused
from ...core.reports import many
from ...core.results import EXCERPT_BUDGET, TranscriptExcerpt
from ...search.present.transcript_reader import exceed_budget
from .database import Database, TeamDatabase, administering
from .identity import Caller
from .raw_store import ObjectFolder, RawStore

_DELETED: Final = 200
"""Maximum number of objects that are deleted at once."""
_SECONDS: Final = 5.0
"""Seconds for which the reply to a push waits for deletions. A machine that withdraws waits 10 s for it."""


def names_of(connection: Database, team: UUID, events: Sequence[UUID]) -> dict[UUID, str]:
    """Return the names of the objects with the full copies of these exchanges, by the ID of the exchange."""
    rows = connection.execute(
        """SELECT copy.event, copy.body FROM palaver.item copy JOIN palaver.item e
            ON e.team = copy.team AND e.id = copy.event AND e.person = copy.person
        WHERE copy.team = %s AND copy.event = ANY(%s) AND copy.kind = 'raw'""",
        (team, [*events]),
    )
    return {event: bytes(body).decode() for event, body in rows}


def has_any(database: TeamDatabase) -> bool:
    """Return whether a team of the database shares full copies."""
    with database.transaction() as connection:
        return connection.execute("SELECT palaver.has_full_copies()").fetchone() == (True,)


class FullCopies:
    """Full copies of the exchanges of a conversation. They are read one by one."""

    def __init__(self, store: RawStore | None, names: Mapping[UUID, str]) -> None:
        """Read from the store. `names` has the names of the objects by the ID of the exchange."""
        self._store, self._names = store, names
        self._complete = set[int]()

    def complete(
        self, exchanges: Mapping[UUID, Exchange], start: int, end: int | None, longest: int | None
    ) -> list[Exchange]:
        """Return the exchanges in their order, with full copies of those that begin an excerpt of these lines.

        Texts of turns with more than `longest` characters are shortened.
        """
        shown, ordered, is_full = list[Exchange](), list[Exchange](), False
        for event, exchange in sorted(exchanges.items(), key=lambda entry: entry[1].ordinal):
            is_shown = exchange.span.end_line >= start and (end is None or exchange.span.start_line <= end)
            is_full = is_full or exceed_budget(shown, EXCERPT_BUDGET)
            is_read = is_shown and not is_full
            copy = self._of(event, exchange) if is_read else None
            if copy is not None:
                self._complete.add(exchange.ordinal)
                turns = tuple(turn._replace(text=trim(clip(turn.text, longest))) for turn in copy.turns)
                exchange = replace(copy, turns=turns)  # noqa: PLW2901 - the copy takes its place
            ordered.append(exchange)
            if is_read:
                last = end or exchange.span.end_line
                lines = tuple(turn for turn in exchange.turns if start <= turn.line <= last)
                shown.append(replace(exchange, turns=lines))
        return ordered

    def labelled(self, excerpt: TranscriptExcerpt, project: str, person: str) -> TranscriptExcerpt:
        """Return an excerpt whose label says that full copies are shown, and who shares them."""
        full = [exchange.ordinal in self._complete for exchange in excerpt.exchanges]
        if not any(full):
            return excerpt
        copies = "full copy" if all(full) else "full copies of some exchanges"
        return replace(excerpt, project=f"{project} ({copies} shared by {person})")

    def _of(self, event: UUID, exchange: Exchange) -> Exchange | None:
        """Return the full copy of an exchange, or None if there is none of this state of the exchange.

        A store that fails is not asked again: each request can take many seconds.
        """
        name = self._names.get(event)
        try:
            body = self._store.get(name) if self._store is not None and name else None
        except (SyncRefused, OSError) as error:
            logging.getLogger(__name__).warning("The store of full copies cannot be read: %s", error)
            self._store = body = None
        copy = json.decode(body, type=Exchange) if body is not None else None
        return copy if copy is not None and copy.span == exchange.span else None


def delete_withdrawn(database: TeamDatabase, caller: Caller, folder: ObjectFolder) -> None:
    """Delete the withdrawn objects of a person for some seconds. A later push or `clean` deletes what is left."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and _delete_some(database, caller, folder):
        pass


def _delete_some(database: TeamDatabase, caller: Caller, folder: ObjectFolder) -> bool:
    """Delete some withdrawn objects of a person. Return False if there is none, or if the store does not answer."""
    with database.transaction(caller.team, caller.person) as connection:
        rows = connection.execute(
            "SELECT name FROM palaver.raw_object WHERE team = %s AND person = %s AND withdrawn LIMIT %s",
            (caller.team, caller.person, _DELETED),
        ).fetchall()
    names = [name for (name,) in rows]
    if not names:
        return False
    try:
        folder.delete(names)
    except (SyncRefused, OSError) as error:
        logging.getLogger(__name__).warning("Withdrawn full copies cannot be deleted: %s", error)
        return False
    with database.transaction(caller.team, caller.person) as connection:
        connection.execute(
            "DELETE FROM palaver.raw_object WHERE team = %s AND person = %s AND withdrawn AND name = ANY(%s)",
            (caller.team, caller.person, names),
        )
    return len(names) == _DELETED


class Cleaned(NamedTuple):
    """Numbers of deleted objects, and of those without an item that were left because a push may be writing them."""

    deleted: int = 0
    recent: int = 0


def clean(url: str, folder: ObjectFolder | None) -> Cleaned:
    """Delete all withdrawn objects, and those of more than an hour ago that belong to no item.

    Raises:
        InvalidInput: Withdrawn objects exist, and no folder is given, or the folder is no store.
        SyncRefused: The store cannot be read or changed.
        TeamDatabaseUnusable: The database cannot be used by this role.
    """
    with administering(url) as connection:
        rows = connection.execute("SELECT name FROM palaver.raw_object WHERE withdrawn").fetchall()
        withdrawn = [name for (name,) in rows]
        if folder is None:
            if withdrawn:
                number = many(len(withdrawn), "full copy is", "full copies are")
                raise InvalidInput(
                    f"{number} to be deleted from the store",
                    hint="Give --raw-store, as for `palaver team serve`.",
                )
            return Cleaned()
        if folder.check() is None:
            raise InvalidInput(
                f"No full copies in {folder.place}", hint="Check --raw-store. It is that of `palaver team serve`."
            )
        teams = [team for (team,) in connection.execute("SELECT id FROM palaver.team")]
        unlisted = folder.unlisted(teams, lambda: _listed(connection))
        folder.delete([*withdrawn, *unlisted.old])
        connection.execute("DELETE FROM palaver.raw_object WHERE withdrawn AND name = ANY(%s)", (withdrawn,))
        return Cleaned(len(withdrawn) + len(unlisted.old), len(unlisted.recent))


def _listed(connection: Database) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM palaver.raw_object")}
