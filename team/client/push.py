"""Push: send what changed to the team, in batches that can be repeated and resumed at any moment.

Before each run, the machine asks for its position on the server:

- The same position: the next batch follows.
- A lower cursor: the server was restored, so everything after it is sent again.
- A higher cursor: this machine was restored, so it begins a new epoch, and compares what the server holds of it with
  what it offers.
- Another epoch: the server was restored, so it compares too. If another machine with the same key began that epoch, the
  server refuses.

What another run of this machine sent without recording the reply is sent again as the same batch. The server knows it.
"""

from collections import Counter
from typing import Final
from uuid import uuid4

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.store import TEAM
from ...archiver.store.team_table import Choices, Membership, Offered, OfferState
from ...core import ids
from ...core.errors import TeamRefused
from ...core.runtime import Reporter, silent
from ...observe.archive import Archive
from ..protocol import (
    BYTES_MAX,
    ITEMS_MAX,
    Batch,
    ItemKind,
    Position,
    Pushed,
    ServerStatus,
    SharedItem,
    SharedPage,
    SharedRequest,
    Withdrawn,
)
from .membership import advanced, connect, joined
from .offers import Offers, StaysHere
from .plan import Planner, merged
from .server_connection import REFUSED, OutOfStep, ServerConnection

_INVALID: Final = frozenset({413, 422})
"""Statuses for a batch that is too long, or has an invalid item."""
_STEPS_MAX: Final = 3
"""Maximum number of new positions in one run."""
_LEASE_SECONDS: Final = 10.0


class RefusedItem(Struct, frozen=True):
    """Item that was left out. `id` is its ID on this machine, or its kind if it has none."""

    id: str
    reason: str


class PushReport(Struct):
    """Result of a push, or what it would send.

    Attributes:
        items: Number of items by kind.
        withdrawn: Number of items that the server deleted, or would at most.
        leaving: Number of items by kind that the server would delete at most. Only counted without sending.
        bytes: Size of the items without full copies.
        raw_bytes: Size of the full copies.
        secrets: Number of different secrets by kind that were replaced by placeholders.
        home_paths: Number of paths of home folders that were shortened.
        stays: Number of exchanges that stay on this machine, by reason. Only counted without sending.
        refused: Items that the server refused, and full copies that cannot be sent.
        erasures: By when deleted bytes are gone from the server's disks.
    """

    url: str
    team: str
    sent: bool = True
    items: Counter[str] = field(default_factory=Counter[str])
    withdrawn: int = 0
    leaving: Counter[str] = field(default_factory=Counter[str])
    bytes: int = 0
    raw_bytes: int = 0
    secrets: dict[str, int] = field(default_factory=dict[str, int])
    home_paths: int = 0
    stays: dict[str, int] = field(default_factory=dict[str, int])
    refused: list[RefusedItem] = field(default_factory=list[RefusedItem])
    erasures: str = ""


class _Batch(Struct):
    """Batch on its way, with the rows that it acknowledges."""

    rows: list[Offered]
    items: list[SharedItem] = field(default_factory=list[SharedItem])
    withdrawn: list[Withdrawn] = field(default_factory=list[Withdrawn])
    size: int = 0


class TeamPush:
    """Push of one archive."""

    def __init__(self, archive: Archive) -> None:
        """Prepare a push. Raises `InvalidInput` if this machine belongs to no team."""
        self._archive, self._store = archive, archive.store
        self._membership = joined(self._store)
        self._report = PushReport(self._membership.url, self._membership.team_name)
        self._limit = ITEMS_MAX

    def preview(self, choices: Choices | None = None, identity: str | None = None) -> PushReport:
        """Return what a push would send, also with other `choices` than the stored ones. Nothing is sent or stored.

        With the `identity` of a project, only its exchanges are counted as those that stay.
        """
        offers = Offers(self._archive, self._membership, choices)
        plan = Planner(self._store, offers, self._membership).plan()
        waiting = self._store.team.to_send(-1)
        for row in merged(waiting, plan):
            try:
                built = offers.item(row) if row.state is OfferState.WAITING else None
            except StaysHere as problem:
                self._report.refused.append(_refused(row._replace(problem=str(problem))))
                continue
            if built is None:
                self._report.withdrawn += 1
                self._report.leaving[row.kind] += 1
            elif not _is_acknowledged(row, *built):
                self._count([built[0]])
        self._report.sent, self._report.stays = False, offers.stays(identity)
        return self._finished(offers)

    def run(self, report: Reporter = silent, seconds: float | None = None) -> PushReport:
        """Send what changed. `seconds` limits the time that each reply may take.

        Raises:
            LeaseHeld: Another process is pushing.
            TeamRefused: The server refused this machine.
            TeamUnreachable: The server did not answer. The next push continues.
        """
        with self._store.leases.hold(TEAM, _LEASE_SECONDS):
            self._membership = joined(self._store)
            offers = Offers(self._archive, self._membership)
            self._plan(offers)
            options = {} if seconds is None else {"seconds": seconds}
            with connect(self._archive.home, self._membership, **options) as server:
                self._step(server, server.post("status", None, ServerStatus).position)
                self._send_all(server, offers, report)
                if self._report.withdrawn:
                    self._report.erasures = server.post("status", None, ServerStatus).erasures
        return self._finished(offers)

    def _plan(self, offers: Offers) -> None:
        plan = Planner(self._store, offers, self._membership).plan()
        with self._store.transaction():
            plan.save(self._store, offers.places.new_folders())
        self._membership = plan.membership

    def _send_all(self, server: ServerConnection, offers: Offers, report: Reporter) -> None:
        steps, done = 0, 0
        while (batch := self._next(offers)) is not None:
            try:
                self._send(server, batch, offers.model)
            except OutOfStep as problem:
                steps += 1
                if steps > _STEPS_MAX:
                    raise TeamRefused("Another process pushes as this machine", hint="Push again later.") from None
                self._step(server, problem.position, again=True)
            except TeamRefused as problem:
                if problem.status not in _INVALID:
                    raise
                self._leave_out(batch, problem)
            else:
                done += len(batch.rows)
                self._limit = ITEMS_MAX
                report("Pushing", done, done + len(self._store.team.to_send(ITEMS_MAX)))

    # Position.

    def _step(self, server: ServerConnection, position: Position, *, again: bool = False) -> None:
        """Continue from the position of this machine on the server."""
        own = self._membership
        same_epoch = position.epoch == own.epoch and own.compared
        if same_epoch and position.cursor < own.cursor:
            self._save(replace(own, cursor=position.cursor, sent=position.cursor), rewind=position.cursor)
        elif not same_epoch or (position.cursor != own.cursor and (again or position.cursor != own.sent)):
            self._begin_epoch(server, position)

    def _begin_epoch(self, server: ServerConnection, position: Position) -> None:
        """Begin a new epoch, and compare what the server holds of this machine with what it offers.

        Raises:
            TeamRefused: Another machine with the same key began a later epoch.
        """
        own = self._membership
        is_restored = own.compared and position.epoch == own.epoch
        # A restored server accepts the epoch that it lost. If it knows that another one followed, the key was copied.
        epoch, last = str(uuid4()) if is_restored else own.epoch, max(own.last, position.cursor)
        started, held = replace(own, epoch=epoch, cursor=0, sent=0, last=last, compared=False), dict[str, str]()
        if is_restored:  # so that an interrupted run begins no third epoch
            self._save(started)
        page = server.post("shared", SharedRequest(epoch=epoch), SharedPage)
        self._save(started)
        while page.items:
            held.update(page.items)
            page = server.post("shared", SharedRequest(after=max(held)), SharedPage)
        with self._store.transaction():
            last = self._store.team.compare(held, last)
            self._membership = replace(self._membership, last=last, compared=True)
            self._store.team.save(self._membership)

    def _save(self, membership: Membership, rewind: int | None = None) -> None:
        with self._store.transaction():
            if rewind is not None:
                self._store.team.rewind(rewind)
            self._store.team.save(membership)
        self._membership = membership

    # Batches.

    def _next(self, offers: Offers) -> _Batch | None:
        """Return the next batch, or None if nothing is left to send.

        Items that changed and changed back are not sent. Items that do not leave any more, or cannot, are withdrawn.
        """
        own = self._membership
        limit = self._limit
        rows = self._store.team.to_send(limit, own.sent) if own.sent > own.cursor else []
        batch, vanished = _Batch([]), list[Offered]()
        for row in rows or self._store.team.to_send(limit):
            try:
                built = offers.item(row) if row.state is OfferState.WAITING else None
            except StaysHere as problem:
                refused = row._replace(state=OfferState.REFUSED, problem=str(problem), hash="", context="")
                batch.rows.append(refused)
                batch.withdrawn.append(Withdrawn(row.id, row.seq))  # an earlier state
                continue
            if built is not None and _is_acknowledged(row, *built):
                batch.rows.append(row._replace(state=OfferState.SHARED))
                continue
            if built is None:
                gone = row._replace(state=OfferState.GONE, hash="", context="")
                vanished += [row._replace(state=OfferState.LEAVING)] if row.state is OfferState.WAITING else []
                batch.rows.append(gone)
                batch.withdrawn.append(Withdrawn(row.id, row.seq))
                continue
            item, context = built
            size = len(msgspec.json.encode(item))
            if batch.size + size > BYTES_MAX and batch.items:
                break
            batch.size += size
            batch.items.append(item)
            batch.rows.append(row._replace(state=OfferState.SHARED, hash=item.hash, context=context))
        if not batch.rows:
            return None
        with self._store.transaction():
            self._store.team.put(vanished)
            if batch.items or batch.withdrawn:
                self._membership = replace(own, sent=max(row.seq for row in batch.rows))
                self._store.team.save(self._membership)
        return batch

    def _send(self, server: ServerConnection, batch: _Batch, model: str) -> None:
        """Send a batch, and record the reply."""
        own, refused, deleted = self._membership, dict[str, str](), 0
        if batch.items or batch.withdrawn:
            message = Batch(
                own.epoch, own.cursor, own.sent, model, tuple(batch.items), tuple(batch.withdrawn)
            )  # fmt: skip
            pushed = server.post("push", message, Pushed)
            refused, deleted = pushed.refused, len(batch.withdrawn) if pushed.known else pushed.deleted
            own = advanced(own, own.sent)
        rows = [
            row._replace(state=OfferState.REFUSED, problem=refused[row.id], hash="", context="")
            if row.id in refused and row.state is OfferState.SHARED else row
            for row in batch.rows
        ]  # fmt: skip
        with self._store.transaction():
            self._store.team.put(rows)
            self._store.team.save(own)
        self._membership = own
        self._count([item for item in batch.items if item.id not in refused])
        self._report.withdrawn += deleted
        self._report.refused += [_refused(row) for row in rows if row.state is OfferState.REFUSED]

    def _leave_out(self, batch: _Batch, problem: TeamRefused) -> None:
        """Leave out the item that the server refuses. If it names none, make the batches smaller until one is left.

        Raises:
            TeamRefused: The server refuses a withdrawal, or a batch without items.
        """
        reason, rows = str(problem), [row for row in batch.rows if row.state is OfferState.SHARED]
        named = [row for row in rows if row.id in reason] or (rows if len(batch.rows) == 1 else [])
        if not named and len(batch.rows) == 1:
            raise problem
        if not named:
            self._limit = len(batch.rows) // 2
        with self._store.transaction():
            refused = [
                row._replace(state=OfferState.REFUSED, problem=_short(reason, row.id), hash="", context="")
                for row in named
            ]
            self._store.team.put(refused)
            self._membership = replace(self._membership, sent=self._membership.cursor)
            self._store.team.save(self._membership)
        self._report.refused += map(_refused, refused)

    def _count(self, items: list[SharedItem]) -> None:
        self._report.items.update(item.kind.value for item in items)
        for item in items:
            size = len(bytes(item.body))
            if item.kind is ItemKind.RAW:
                self._report.raw_bytes += size
            else:
                self._report.bytes += size

    def _finished(self, offers: Offers) -> PushReport:
        self._report.secrets, self._report.home_paths = offers.scrubber.secrets, offers.scrubber.home_paths
        return self._report


def _refused(row: Offered) -> RefusedItem:
    if row.item is not None and row.kind == ItemKind.RAW:
        return RefusedItem(f"full copy of {ids.show(ItemKind.EXCHANGE, row.item)}", row.problem)
    return RefusedItem(row.kind if row.item is None else ids.show(row.kind, row.item), row.problem)


def _short(reason: str, item: str) -> str:
    """Return a reason without the ID of the item, so that equal reasons can be counted."""
    return reason.removeprefix(REFUSED).removeprefix(f"Item {item} ")


def _is_acknowledged(row: Offered, item: SharedItem, context: str) -> bool:
    """Return whether the server has acknowledged this state of an item."""
    return (row.hash, row.context) == (item.hash, context)
