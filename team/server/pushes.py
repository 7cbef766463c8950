"""What machines send: batches of items and withdrawals, each in one transaction.

The numbers that a machine gives to its changes order them. Clocks do not.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

import msgspec
from msgspec import json

from ...archiver.redaction.redactor import MemoryRedactor, Redactor, kinds_of
from ...core.conversation import Exchange, Session
from ...core.errors import InvalidNamespace, TeamRefused
from ...core.memory import Memory
from ...core.observation import Observation
from ..protocol import (
    ITEMS_MAX,
    Batch,
    ItemKind,
    Leave,
    Left,
    Position,
    Pushed,
    ServerStatus,
    SharedItem,
    SharedPage,
    SharedRequest,
    UsageDay,
    Withdrawn,
)
from . import search_rows
from .database import Database, TeamDatabase
from .erasure import Promise, promised, record_deletion
from .identity import Caller, member_names, record, revoke_device, uuid_of
from .raw_objects import delete_withdrawn
from .raw_store import RawStore

_TYPES: Final[Mapping[ItemKind, Any]] = {
    ItemKind.SESSION: Session,
    ItemKind.EXCHANGE: Exchange,
    ItemKind.OBSERVATION: Observation,
    ItemKind.MEMORY: Memory,
    ItemKind.USAGE: UsageDay,
    ItemKind.RAW: Exchange,
}
_PAGE: Final = 1_000
_ELSEWHERE: Final = "withdrawn on another machine"
_REMOVED: Final = "removed by the administrator; to share it again, unshare and share its project"
NOBODY: Final = UUID(int=0)
"""Machine that tombstones of a removal name, so that every machine is refused when it offers such an item again."""
_EARLIER: Final = "withdrawn after this change"
_FOREIGN: Final = "shared by another person"
_NO_STORE: Final = "the server stores no full copies"
_OWNER_ONLY: Final = 1
_TEAM: Final = 2

_Json: TypeAlias = str | Mapping[str, Any] | list[Any] | float | None


class OutOfStep(Exception):
    """Signal: a batch does not follow what the server has of this machine. The reply is the position."""

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position


def push(
    database: TeamDatabase, caller: Caller, body: bytes, redactor: Redactor, raw_store: RawStore | None = None
) -> Pushed:
    """Store a batch. The same batch again changes nothing.

    Full copies are written to their store before the transaction, and withdrawn ones are deleted after it.

    Raises:
        OutOfStep: The batch has another epoch, or does not start at the last change on the server.
        TeamRefused: The batch is invalid or contains a secret, or two machines have the same key.
    """
    batch = _decoded(body)
    device, signature = _device(caller), sha256(body).digest()
    epoch = uuid_of(batch.epoch, "epoch")
    _check(batch, redactor)
    copies, objects = [item for item in batch.items if item.kind is ItemKind.RAW], dict[str, str]()
    if copies and raw_store is not None:
        with database.transaction(caller.team, caller.person) as connection:
            if _is_known(connection, caller, device, epoch, batch, signature):
                return Pushed(batch.end, known=True)
        names = raw_store.put(caller.team, [bytes(item.body) for item in copies])
        objects = {item.id: name for item, name in zip(copies, names, strict=True)}
    with database.transaction(caller.team, caller.person) as connection:
        if _is_known(connection, caller, device, epoch, batch, signature):
            return Pushed(batch.end, known=True)
        deleted = _withdraw(connection, caller, device, batch.withdrawn)
        refused = _store(connection, caller, device, batch, objects)
        connection.execute(
            "UPDATE palaver.device SET cursor = %s, batch = %s WHERE team = %s AND id = %s",
            (batch.end, signature, caller.team, device),
        )
    if raw_store is not None:
        delete_withdrawn(database, caller, raw_store.folder)
    return Pushed(batch.end, refused=refused, deleted=deleted)


def _is_known(connection: Database, caller: Caller, device: UUID, epoch: UUID, batch: Batch, signature: bytes) -> bool:
    """Return whether the server has the batch already. Lock the machine.

    Raises:
        OutOfStep: The batch has another epoch, or does not start at the last change on the server.
        TeamRefused: The machine was revoked, or two machines have the same key.
    """
    row = connection.execute(
        """SELECT epoch, cursor, batch, earlier_epochs FROM palaver.device
        WHERE team = %s AND id = %s AND revoked IS NULL FOR UPDATE""",
        (caller.team, device),
    ).fetchone()
    if row is None:
        raise TeamRefused("This machine was revoked", hint="Ask for a new code, and join again.", status=401)
    current, cursor, last, earlier = row
    _refuse_copy(epoch, earlier)
    if epoch == current and batch.end == cursor and signature == last:
        return True
    if epoch != current or batch.start != cursor:
        raise OutOfStep(Position(str(current), cursor))
    return False


def shared(database: TeamDatabase, caller: Caller, request: SharedRequest) -> SharedPage:
    """Return the next IDs and hashes of items that the machine shares. With an epoch, begin it first.

    Raises:
        TeamRefused: Another machine with the same key began a later epoch.
    """
    device = _device(caller)
    after = uuid_of(request.after, "ID") if request.after else UUID(int=0)
    with database.transaction(caller.team, caller.person) as connection:
        if request.epoch:
            _begin(connection, caller, device, uuid_of(request.epoch, "epoch"))
        rows = connection.execute(
            """SELECT id::text, hash FROM palaver.item
            WHERE team = %s AND person = %s AND device = %s AND id > %s ORDER BY id LIMIT %s""",
            (caller.team, caller.person, device, after, _PAGE),
        ).fetchall()
    return SharedPage([(name, hashed) for name, hashed in rows])


def status(database: TeamDatabase, caller: Caller, promise: Promise, raw_store: RawStore | None = None) -> ServerStatus:
    """Return what the server holds of a person. Without `raw_store`, full copies are left out: nobody can read them."""
    with database.transaction(caller.team, caller.person) as connection:
        team, person = member_names(connection, caller.team, caller.person)
        people = connection.execute(
            "SELECT FROM palaver.person WHERE team = %s AND removed IS NULL", (caller.team,)
        ).rowcount
        position = connection.execute(
            "SELECT epoch::text, cursor FROM palaver.device WHERE team = %s AND id = %s", (caller.team, caller.device)
        ).fetchone()
        own: dict[str, int] = dict(
            connection.execute(
                "SELECT kind, count(*) FROM palaver.item WHERE team = %s AND person = %s GROUP BY kind ORDER BY kind",
                (caller.team, caller.person),
            ).fetchall()
        )
        erasures = promised(connection, caller.team, caller.person, promise)
    if raw_store is None:
        own.pop(ItemKind.RAW, None)
    epoch, cursor = position or ("", 0)
    return ServerStatus(team, person, Position(epoch, cursor), own, people, erasures)


def leave(database: TeamDatabase, caller: Caller, request: Leave, raw_store: RawStore | None = None) -> Left:
    """Revoke a machine. With `withdraw`, delete everything that the person shares."""
    device, deleted = _device(caller), 0
    with database.transaction(caller.team, caller.person) as connection:
        if request.withdraw:
            deleted = withdraw_all(connection, caller, device)
        revoke_device(connection, caller.team, device)
        record(connection, caller.team, caller.person, "leave", str(device))
    if deleted and raw_store is not None:
        delete_withdrawn(database, caller, raw_store.folder)
    return Left(deleted)


def withdraw_all(connection: Database, caller: Caller, device: UUID) -> int:
    """Withdraw everything that a person shares, on behalf of a machine. Return the number of deleted items."""
    rows = connection.execute(
        "SELECT id::text, seq FROM palaver.item WHERE team = %s AND person = %s", (caller.team, caller.person)
    ).fetchall()
    return _withdraw(connection, caller, device, [Withdrawn(name, seq) for name, seq in rows])


def _decoded(body: bytes) -> Batch:
    try:
        return json.decode(body, type=Batch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TeamRefused(f"The batch is invalid: {error}", hint="Update Palaver.", status=422) from None


def _device(caller: Caller) -> UUID:
    if caller.device is None:
        raise TeamRefused("This token belongs to no machine", hint="Run `palaver team join URL CODE`.", status=403)
    return caller.device


def _check(batch: Batch, redactor: Redactor) -> None:
    """Refuse a batch that is too large, damaged, or contains a secret."""
    if len(batch.items) + len(batch.withdrawn) > ITEMS_MAX or not 0 <= batch.start < batch.end:
        _refuse(f"The batch must have at most {ITEMS_MAX} changes, and an end after its start")
    numbers = [*(item.seq for item in batch.items), *(change.seq for change in batch.withdrawn)]
    for number in numbers:
        if not batch.start < number <= batch.end:
            _refuse(f"Change {number} is outside of the batch")
    for item in batch.items:
        for text, what in ((item.id, "ID"), (item.session, "session"), (item.event, "event")):
            if text or what == "ID":
                uuid_of(text, what)
        if sha256(bytes(item.body)).hexdigest() != item.hash:
            _refuse(f"The content of item {item.id} was changed on its way")
        try:
            value = json.decode(item.body, type=_TYPES[item.kind])
            if isinstance(value, UsageDay):
                _check_usage(value, bytes(item.body))
            search_rows.check_vectors(item)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            _refuse(f"The content of item {item.id} is no {item.kind}")
        if kinds := _secret_kinds(redactor, item, value):
            raise TeamRefused(
                f"Item {item.id} contains a secret ({', '.join(kinds)})",
                hint="Nothing of the batch was stored. Update Palaver on this machine, and push again.",
                status=422,
            )


def _check_usage(value: UsageDay, body: bytes) -> None:
    """Raise `ValueError` for a body that the view of metrics could not read."""
    date.fromisoformat(value.day)
    if rb"\u0000" in body:
        raise ValueError


def _secret_kinds(redactor: Redactor, item: SharedItem, value: object) -> list[str]:
    """Return the kinds of secrets in an item."""
    texts = [item.path, item.project.name, *_texts(json.decode(item.body))]
    findings = [finding.kind for text in texts for finding in redactor.redact(text).findings]
    if isinstance(value, Memory):
        try:
            clean = MemoryRedactor(redactor).memory(value)
        except InvalidNamespace:
            return ["namespace"]
        findings += (Counter(kinds_of(clean)) - Counter(kinds_of(value))).elements()
    return [*dict.fromkeys(findings)]


def _texts(value: _Json) -> Iterator[str]:
    """Yield all texts of a JSON value, also names."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                yield name
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass


def _refuse(problem: str) -> NoReturn:
    raise TeamRefused(problem, hint="Nothing was stored. Update Palaver on this machine.", status=422)


def _refuse_copy(epoch: UUID, earlier: Sequence[UUID]) -> None:
    """Refuse an epoch that a later one replaced: only a copy of the machine still uses it."""
    if epoch in earlier:
        raise TeamRefused(
            "Another machine pushes with the key of this one, for example after its disk was copied",
            hint="Ask for a new code, and join again from this machine: palaver team join URL CODE",
            status=409,
        )


def _begin(connection: Database, caller: Caller, device: UUID, epoch: UUID) -> None:
    row = connection.execute(
        "SELECT epoch, earlier_epochs FROM palaver.device WHERE team = %s AND id = %s FOR UPDATE",
        (caller.team, device),
    ).fetchone()
    assert row is not None
    current, earlier = row
    _refuse_copy(epoch, earlier)
    if epoch != current:
        connection.execute(
            """UPDATE palaver.device SET epoch = %s, cursor = 0, batch = NULL,
                earlier_epochs = array_append(earlier_epochs, epoch)
            WHERE team = %s AND id = %s""",
            (epoch, caller.team, device),
        )


def _store(
    connection: Database, caller: Caller, device: UUID, batch: Batch, objects: Mapping[str, str]
) -> dict[str, str]:
    """Insert or replace the items of a batch. Return the IDs of refused items with reasons.

    `objects` has the names of the objects with full copies, by the ID of the item.
    """
    refused = _refused(connection, caller, device, batch.items)
    refused |= {item.id: _NO_STORE for item in batch.items if item.kind is ItemKind.RAW and item.id not in objects}
    if unused := [objects[name] for name in refused.keys() & objects.keys()]:
        connection.execute(
            "INSERT INTO palaver.raw_object SELECT %s, unnest(%s::text[]), %s, true",
            (caller.team, unused, caller.person),
        )
    accepted = [item for item in {item.id: item for item in batch.items}.values() if item.id not in refused]
    if not accepted:
        return refused
    with connection.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO palaver.item (team, id, person, device, visibility, kind, project_id, project, session,
                event, at, path, body, hash, seq)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (team, id) DO UPDATE SET device = excluded.device, visibility = excluded.visibility,
                kind = excluded.kind, project_id = excluded.project_id, project = excluded.project,
                session = excluded.session, event = excluded.event, at = excluded.at, path = excluded.path,
                body = excluded.body, hash = excluded.hash, seq = excluded.seq""",
            [_row(caller, device, item, objects) for item in accepted],
        )
    connection.execute(
        "DELETE FROM palaver.gone WHERE team = %s AND person = %s AND id = ANY(%s)",
        (caller.team, caller.person, [UUID(item.id) for item in accepted]),
    )
    texts = [item for item in accepted if item.kind is not ItemKind.RAW]
    search_rows.store(connection, caller.team, texts, batch.model)
    return refused


def _row(caller: Caller, device: UUID, item: SharedItem, objects: Mapping[str, str]) -> tuple[object, ...]:
    visibility = _OWNER_ONLY if item.kind is ItemKind.USAGE else _TEAM
    own, session = UUID(item.id), UUID(item.session) if item.session else None
    event = UUID(item.event) if item.event else own
    place = (item.project.id, item.project.name, session, event, item.at, item.path)
    body = objects[item.id].encode() if item.kind is ItemKind.RAW else bytes(item.body)
    content = (body, item.hash, item.seq)
    return (caller.team, own, caller.person, device, visibility, item.kind.value, *place, *content)


def _refused(connection: Database, caller: Caller, device: UUID, items: Sequence[SharedItem]) -> dict[str, str]:
    """Return refused items with reasons: those of another person, and those withdrawn elsewhere or later."""
    numbers = {UUID(item.id): (item.id, item.seq) for item in items}
    names = {UUID(name) for item in items for name in (item.id, item.session, item.event) if name}
    rows = connection.execute(
        "SELECT id::text FROM palaver.item WHERE team = %s AND id = ANY(%s) AND person <> %s",
        (caller.team, [*names], caller.person),
    ).fetchall()
    foreign = {name for (name,) in rows}
    # Nobody adds to the conversation of another person.
    refused = {item.id: _FOREIGN for item in items if not foreign.isdisjoint((item.id, item.session, item.event))}
    gone = connection.execute(
        "SELECT id, device, seq FROM palaver.gone WHERE team = %s AND person = %s AND id = ANY(%s)",
        (caller.team, caller.person, [*numbers]),
    ).fetchall()
    for name, by, seq in gone:
        shown, offered = numbers[name]
        if by != device:
            refused[shown] = _REMOVED if by == NOBODY else _ELSEWHERE
        elif offered <= seq:
            refused[shown] = _EARLIER
    return refused


def _withdraw(connection: Database, caller: Caller, device: UUID, withdrawn: Sequence[Withdrawn]) -> int:
    """Delete items with their rows, and keep tombstones. Return the number of deleted items."""
    numbers = {uuid_of(change.id, "ID"): change.seq for change in withdrawn}
    if not numbers:
        return 0
    keys = connection.execute(
        "SELECT key FROM palaver.item WHERE team = %s AND person = %s AND id = ANY(%s)",
        (caller.team, caller.person, [*numbers]),
    ).fetchall()
    search_rows.delete(connection, caller.team, [key for (key,) in keys])
    connection.execute(
        "DELETE FROM palaver.item WHERE team = %s AND person = %s AND key = ANY(%s)",
        (caller.team, caller.person, [key for (key,) in keys]),
    )
    connection.execute(
        """INSERT INTO palaver.gone AS known (team, person, id, device, seq)
        SELECT %s, %s, id, %s, seq FROM unnest(%s::uuid[], %s::bigint[]) AS change (id, seq)
        ON CONFLICT (team, person, id) DO UPDATE SET device = excluded.device, at = excluded.at,
            seq = CASE known.device WHEN excluded.device THEN greatest(known.seq, excluded.seq)
                ELSE excluded.seq END""",
        (caller.team, caller.person, device, [*numbers], [*numbers.values()]),
    )
    if keys:
        record_deletion(connection, caller.team, caller.person, len(keys))
    return len(keys)
