"""Tables of `palaver team`: the team that this machine joined, the levels of projects, and what was offered.

Every change of an offered item gets a number. The server has all changes up to its cursor. Rows are never deleted when
their items are, so that a deletion always becomes a withdrawal.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from .database import AMONG, Database, listed


class Membership(Struct, frozen=True):
    """Team that this machine joined. The schema explains the numbers. After leaving, `device` is empty."""

    url: str
    team: str
    team_name: str
    person: str
    person_name: str
    device: str
    epoch: str
    cursor: int = 0
    sent: int = 0
    last: int = 0
    planned: int = 0
    rules: str = ""
    places: str = ""
    compared: bool = True


class Choices(NamedTuple):
    """What the user chose to share: the levels of projects by their identity, and memories."""

    levels: dict[str, str]
    memories: set[int]


class OfferState(StrEnum):
    """State of an offered item. Items that are waiting or leaving have to be sent."""

    WAITING = "waiting"
    SHARED = "shared"
    LEAVING = "leaving"
    GONE = "gone"
    REFUSED = "refused"


class Offer(NamedTuple):
    """Item that a level lets out.

    Attributes:
        id: UUID of the item on the server.
        unit: Session or group with which the item is planned.
        item: Key of the item, or None for a session and for usage.
        project: ID of its project on the server.
    """

    id: str
    unit: str
    item: int | None
    kind: str
    project: str
    level: str


class Offered(NamedTuple):
    """Offered item with its number and state. `hash` and `context` identify what the server acknowledged."""

    id: str
    unit: str
    item: int | None
    kind: str
    project: str
    level: str
    seq: int
    state: OfferState
    hash: str = ""
    context: str = ""
    problem: str = ""

    @property
    def offer(self) -> Offer:
        """The item without its state."""
        return Offer(*self[:6])


_COLUMNS: Final = ", ".join(Offered._fields)
_TO_SEND: Final = f"('{OfferState.WAITING}', '{OfferState.LEAVING}')"


class TeamTable:
    """Tables of the team that this machine joined. The caller opens the transactions."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # Membership.

    def membership(self) -> Membership | None:
        """Return the team that this machine joined or left last, or None."""
        row = self._db.one(f"SELECT {', '.join(Membership.__struct_fields__)} FROM team")
        return replace(Membership(*row), compared=bool(row[-1])) if row else None

    def joined(self) -> Membership | None:
        """Return the team that this machine belongs to, or None."""
        membership = self.membership()
        return membership if membership is not None and membership.device else None

    def save(self, membership: Membership) -> None:
        """Insert or replace the team."""
        self._db.upsert("team", "id", {"id": 1, **asdict(membership)})

    def leave(self, *, withdrawn: bool) -> None:
        """Forget the levels. With `withdrawn`, the server has deleted everything that was offered."""
        self._db.run("UPDATE team SET device = '', planned = 0, rules = '', places = ''")
        self._forget_levels()
        if withdrawn:
            self._db.run("UPDATE offered SET state = 'gone', hash = '', context = ''")

    def start_again(self, *, same_person: bool) -> None:
        """Let everything be sent again, to a server that knows nothing of this machine.

        Another person begins without levels, and cannot withdraw what the earlier one offered.
        """
        if not same_person:
            self._forget_levels()
            self._db.run("DELETE FROM offered")
        self._send_again("1", ())

    def _forget_levels(self) -> None:
        for table in ("team_project", "team_folder", "team_memory"):
            self._db.run(f"DELETE FROM {table}")

    # Levels.

    def choices(self) -> Choices:
        """Return the levels of the projects of which more than nothing is shared, and the chosen memories."""
        levels: dict[str, str] = dict(self._db.rows("SELECT identity, level FROM team_project ORDER BY identity"))
        return Choices(levels, set(self._db.numbers("SELECT memory FROM team_memory")))

    def level_names(self) -> dict[str, tuple[str, str]]:
        """Return the names and levels of these projects, by their identity."""
        rows = self._db.rows("SELECT identity, name, level FROM team_project ORDER BY name, identity")
        return {identity: (name, level) for identity, name, level in rows}

    def set_level(self, identity: str, name: str, level: str) -> None:
        """Set the level of a project. An empty level means that nothing is shared."""
        if level:
            self._db.run("INSERT OR REPLACE INTO team_project VALUES (?, ?, ?)", (identity, name, level))
        else:
            self._db.run("DELETE FROM team_project WHERE identity = ?", (identity,))

    def folders(self) -> dict[str, str]:
        """Return the identities of the projects of folders with shared sessions, by folder."""
        return dict(self._db.rows("SELECT folder, identity FROM team_folder"))

    def note_folders(self, identities: Mapping[str, str]) -> None:
        """Record the identities of the projects of folders."""
        self._db.run_many("INSERT OR REPLACE INTO team_folder VALUES (?, ?)", identities.items())

    def choose_memory(self, memory: int, *, shared: bool) -> None:
        """Choose or unchoose a memory."""
        sql = "INSERT OR IGNORE INTO team_memory VALUES (?)" if shared else "DELETE FROM team_memory WHERE memory = ?"
        self._db.run(sql, (memory,))

    # Offered items.

    def units(self) -> set[str]:
        """Return the units with offered items."""
        return {unit for (unit,) in self._db.rows("SELECT DISTINCT unit FROM offered WHERE state <> 'gone'")}

    def units_of(self, items: Collection[int]) -> set[str]:
        """Return the units of these items, which may be deleted."""
        return {unit for (unit,) in self._db.rows_among(f"SELECT unit FROM offered WHERE item {AMONG}", items)}

    def of_unit(self, unit: str) -> dict[str, Offered]:
        """Return the offered items of a unit, by ID."""
        return {row.id: row for row in self._offered("WHERE unit = ?", (unit,))}

    def by_id(self, ids: Iterable[str]) -> dict[str, Offered]:
        """Return the offered items with these IDs. Unknown IDs are omitted."""
        return {row.id: row for row in self._offered(f"WHERE id {AMONG}", (listed(ids),))}

    def put(self, rows: Iterable[Offered]) -> None:
        """Insert or replace offered items."""
        marks = ", ".join("?" * len(Offered._fields))
        self._db.run_many(f"INSERT OR REPLACE INTO offered ({_COLUMNS}) VALUES ({marks})", map(tuple, rows))

    def to_send(self, limit: int, until: int | None = None) -> list[Offered]:
        """Return the first items and withdrawals to send, in the order of their numbers, up to the number `until`."""
        return self._offered(
            f"WHERE state IN {_TO_SEND} AND (?1 IS NULL OR seq <= ?1) ORDER BY seq LIMIT ?2", (until, limit)
        )

    def count_by_state(self) -> dict[OfferState, dict[str, int]]:
        """Return the number of offered items by state and kind."""
        counts: dict[OfferState, dict[str, int]] = {state: {} for state in OfferState}
        for state, kind, count in self._db.rows("SELECT state, kind, count(*) FROM offered GROUP BY 1, 2 ORDER BY 2"):
            counts[OfferState(state)][kind] = count
        return counts

    def count_on_server(self) -> int:
        """Return the number of items of this machine that the server may have."""
        return self._db.number("SELECT count(*) FROM offered WHERE state IN ('shared', 'leaving') OR hash <> ''")

    def problems(self) -> dict[str, int]:
        """Return why items were refused, with the number of items."""
        rows = self._db.rows("SELECT problem, count(*) FROM offered WHERE state = 'refused' GROUP BY 1 ORDER BY 2 DESC")
        return dict(rows)

    def rewind(self, cursor: int) -> None:
        """Let all changes after a number be sent again, to a server that lost them."""
        self._send_again("seq > ?", (cursor,))

    def compare(self, held: dict[str, str], last: int) -> int:
        """Compare with the IDs and hashes that the server holds of this machine. Return the highest number issued.

        What differs is sent again, and what is not offered here is withdrawn. All withdrawals are repeated.
        """
        differing = [row.id for row in self._offered("WHERE state = 'shared'") if held.get(row.id) != row.hash]
        self._send_again(f"id {AMONG} OR state IN ('waiting', 'leaving', 'gone')", (listed(differing),))
        rows = {row.id for row in self._offered("WHERE state <> 'refused'")}
        unknown = [name for name in held if name not in rows]
        numbers = range(last + 1, last + 1 + len(unknown))
        self.put(
            Offered(name, "", None, "", "", "", number, OfferState.LEAVING)
            for name, number in zip(unknown, numbers, strict=True)
        )
        return last + len(unknown)

    def _send_again(self, condition: str, values: tuple[int | str, ...]) -> None:
        self._db.run(
            f"""UPDATE offered SET hash = '', context = '', problem = '',
                    state = iif(state IN ('leaving', 'gone'), 'leaving', 'waiting') WHERE {condition}""",
            values,
        )

    def _offered(self, clause: str, values: Sequence[int | str | None] = ()) -> list[Offered]:
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM offered {clause}", tuple(values))
        return [Offered(*row)._replace(state=OfferState(row[7])) for row in rows]
