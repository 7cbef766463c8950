"""Plan of what has to be offered and withdrawn, from the change log and the levels.

Only units with changes since the last plan are compared with what was offered, unless a level or the rules changed. A
plan is stored before anything of it is sent.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...archiver.store import Store
from ...archiver.store.team_table import Membership, Offer, Offered, OfferState
from ..protocol import ItemKind
from .offers import MEMORIES, SESSION, USAGE, Offers

_GOING: Final = frozenset({OfferState.LEAVING, OfferState.GONE})


class Plan(NamedTuple):
    """Changed rows of offered items, and the membership with the state to which the plan belongs."""

    rows: list[Offered]
    membership: Membership

    def save(self, store: Store, folders: Mapping[str, str]) -> None:
        """Store the plan. The caller opens the transaction."""
        store.team.put(self.rows)
        store.team.note_folders(folders)
        store.team.save(self.membership)


class Planner:
    """Planner of one run."""

    def __init__(self, store: Store, offers: Offers, membership: Membership) -> None:
        self._store, self._offers, self._membership = store, offers, membership
        self._last, self._rows = membership.last, list[Offered]()
        self._renews = offers.rules != membership.rules

    def plan(self) -> Plan:
        """Return what changed since the last plan."""
        last, places = self._store.changes.last(), self._offers.places_state
        changed = set(self._store.changes.since(self._membership.planned))
        if self._renews or places != self._membership.places or not self._membership.planned:
            units = {*self._offers.units(), *self._store.team.units()} - {""}
        else:
            units = self._changed_units(changed)
        for unit in sorted(units):
            self._compare(unit, changed)
        membership = replace(
            self._membership, last=self._last, planned=last, rules=self._offers.rules, places=places
        )  # fmt: skip
        return Plan(self._rows, membership)

    def _changed_units(self, changed: set[int]) -> set[str]:
        items = self._store.items.load(sorted(changed)).values()
        sessions = {f"{SESSION}{item.session}" for item in items if item.session}
        memories = {MEMORIES} if any(item.kind == ItemKind.MEMORY for item in items) else set[str]()
        return sessions | memories | self._store.team.units_of(changed) | {USAGE}

    def _compare(self, unit: str, changed: set[int]) -> None:
        """Compare what leaves of a unit with what was offered of it."""
        contents, offered = self._offers.of_unit(unit), self._store.team.of_unit(unit)
        moved = self._store.team.by_id(contents.keys() - offered.keys())
        for name, content in contents.items():
            row = offered.get(name) or moved.get(name)
            if row is None or row.state in _GOING:
                self._add(content.offer, OfferState.WAITING)
            elif row.offer != content.offer or self._has_changed(row, changed):
                self._add(content.offer, OfferState.WAITING, row)
        for row in offered.values():
            if row.id not in contents and row.state not in _GOING:
                self._add(row.offer, OfferState.LEAVING)

    def _has_changed(self, row: Offered, changed: set[int]) -> bool:
        """Return whether an item may have another state than the one that was sent or will be sent."""
        if row.state is OfferState.WAITING:
            return False
        if row.kind == ItemKind.USAGE:
            built = self._offers.item(row)
            return self._renews or built is None or built[0].hash != row.hash
        return self._renews or row.item in changed or row.kind == ItemKind.SESSION

    def _add(self, offer: Offer, state: OfferState, before: Offered | None = None) -> None:
        self._last += 1
        acknowledged = ("", "") if before is None else (before.hash, before.context)
        self._rows.append(Offered(*offer, self._last, state, *acknowledged))


def merged(waiting: Iterable[Offered], plan: Plan) -> list[Offered]:
    """Return the rows to send after a plan, in the order of their numbers, without storing it."""
    rows = {row.id: row for row in waiting} | {row.id: row for row in plan.rows}
    to_send = [row for row in rows.values() if row.state in {OfferState.WAITING, OfferState.LEAVING}]
    return sorted(to_send, key=lambda row: row.seq)
