"""Batches of machines: order, repetitions, withdrawals, epochs and refusals."""

from uuid import uuid4

import psycopg
import pytest
from msgspec import json
from msgspec.structs import replace

from palaver.team.protocol import Batch, ItemKind, Position, SharedVector, Withdrawn

from .members import Machine, Refused, exchange, invited, item, item_id, memory, session, shared_again, usage
from .postgres import DatabaseUrls


@pytest.fixture
def ann(url: str, urls: DatabaseUrls) -> Machine:
    """Return a machine of a new person."""
    return Machine(url, invited(urls, f"Ann {uuid4()}"))


def again(machine: Machine, urls: DatabaseUrls, name: str = "desktop") -> Machine:
    """Return another machine of the same person."""
    return Machine(machine.url, invited(urls, machine.joined.person_name), name)


def unique(text: str) -> str:
    return f"{text} {uuid4()}"


def test_a_pushed_item_is_counted_by_kind(ann: Machine) -> None:
    """The status counts what the server holds of the person."""
    ann.push([session(unique("s")), exchange(unique("one")), exchange(unique("two")), memory(unique("m"))])

    status = ann.status()
    assert status.own == {"exchange": 2, "memory": 1, "session": 1}
    assert status.position == Position(ann.epoch, 4)
    assert status.erasures == ""


def test_the_same_batch_again_is_known(ann: Machine) -> None:
    """A batch whose reply was lost changes nothing the second time."""
    batch = ann.batch([exchange(unique("one"))])

    assert not ann.send(batch).known
    assert ann.send(batch).known
    assert ann.status().own == {"exchange": 1}


@pytest.mark.parametrize("start", [1, 5])
def test_a_gap_or_an_overlap_is_refused_with_the_position(ann: Machine, start: int) -> None:
    """A batch that does not start at the server's cursor gets this cursor."""
    ann.push([exchange(unique("one")), exchange(unique("two"))])
    batch = Batch(ann.epoch, start, start + 1, "", (shared_again(exchange(unique("x")), start + 1),))

    with pytest.raises(Refused) as refused:
        ann.send(batch)

    assert refused.value.position == Position(ann.epoch, 2)


def test_another_batch_with_the_same_numbers_is_no_repetition(ann: Machine) -> None:
    """A copy of the machine sends other content with the same numbers, which is not taken for stored."""
    ann.send(ann.batch([exchange(unique("one"))]))

    with pytest.raises(Refused) as refused:
        ann.send(ann.batch([exchange(unique("other"))]))

    assert refused.value.position == Position(ann.epoch, 1)


def test_a_restored_server_gets_the_changes_after_its_cursor(ann: Machine, urls: DatabaseUrls) -> None:
    """A server from a backup answers with its earlier cursor, from which the machine sends again."""
    ann.push([exchange(unique("one"))])
    lost = exchange(unique("two"))
    ann.push([lost])
    with psycopg.connect(urls.owner) as connection:
        connection.execute("DELETE FROM palaver.item WHERE id = %s", (lost.id,))
        connection.execute("UPDATE palaver.device SET cursor = 1, batch = NULL WHERE id = %s", (ann.joined.device,))

    with pytest.raises(Refused) as refused:
        ann.push([exchange(unique("three"))])
    assert refused.value.position == Position(ann.epoch, 1)
    ann.cursor = 1
    ann.push([lost])

    assert ann.status().own == {"exchange": 2}


def test_a_new_epoch_lists_what_the_machine_shares(ann: Machine, urls: DatabaseUrls) -> None:
    """A restored machine begins a new epoch, and gets its own items, not those of another machine."""
    one, other = exchange(unique("one")), exchange(unique("other"))
    ann.push([one])
    again(ann, urls).push([other])

    assert ann.begin() == [(one.id, one.hash)]
    assert ann.shared(after=one.id) == []
    assert ann.push([one]).cursor == 1


def test_a_copied_machine_has_to_join_again(ann: Machine, urls: DatabaseUrls) -> None:
    """The machine whose epoch was replaced by its copy is refused, and joins again."""
    ann.push([exchange(unique("one"))])
    old = ann.epoch
    ann.begin()
    ann.epoch, ann.cursor = old, 1

    with pytest.raises(Refused) as pushed:
        ann.push([exchange(unique("two"))])
    with pytest.raises(Refused) as begun:
        ann.shared(epoch=old)

    assert (pushed.value.status, begun.value.status) == (409, 409)
    assert "key of this one" in pushed.value.reason
    assert again(ann, urls).push([exchange(unique("two"))]).cursor == 1


def test_a_withdrawn_item_is_deleted_and_stays_so(ann: Machine, urls: DatabaseUrls) -> None:
    """Another machine with an old copy cannot share a withdrawn item again. The one that withdrew it can."""
    one = exchange(unique("one"))
    ann.push([one])
    ann.push(withdrawn=[one.id])
    desktop = again(ann, urls)

    assert ann.status().own == {}
    assert desktop.push([one]).refused == {one.id: "withdrawn on another machine"}
    assert desktop.status().own == {}
    assert ann.push([one]).refused == {}
    assert ann.status().own == {"exchange": 1}


def test_a_restored_machine_cannot_return_what_it_withdrew_later(ann: Machine) -> None:
    """An item from before its withdrawal is refused in a new epoch too."""
    one = exchange(unique("one"))
    ann.push([one, exchange(unique("two"))])
    ann.push(withdrawn=[one.id])
    ann.begin()

    assert ann.push([one]).refused == {one.id: "withdrawn after this change"}


def test_four_hundred_withdrawals_leave_nothing(ann: Machine, urls: DatabaseUrls) -> None:
    """Of 400 withdrawn items none is left, and an old copy returns none."""
    prefix = unique("x")
    items = [exchange(f"{prefix} {number}") for number in range(400)]
    ann.push(items)
    ann.push(withdrawn=[each.id for each in items])
    desktop = again(ann, urls)

    assert len(desktop.push(items).refused) == 400
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute("SELECT id FROM palaver.item WHERE person = %s", (ann.joined.person,)).fetchall()
    assert rows == []


def test_a_withdrawal_before_the_item_counts(ann: Machine, urls: DatabaseUrls) -> None:
    """A withdrawal of an item that the server does not have keeps a tombstone."""
    one = exchange(unique("one"))
    ann.push(withdrawn=[one.id])

    assert again(ann, urls).push([one]).refused == {one.id: "withdrawn on another machine"}


def test_an_item_of_another_person_is_refused(ann: Machine, url: str, urls: DatabaseUrls) -> None:
    """Neither an offer nor a withdrawal changes what another person shares."""
    one = exchange(unique("one"))
    ann.push([one])
    bob = Machine(url, invited(urls, unique("Bob")))

    assert bob.push([one]).refused == {one.id: "shared by another person"}
    bob.push(withdrawn=[one.id])
    assert ann.status().own == {"exchange": 1}
    assert ann.push([one]).refused == {}


@pytest.mark.parametrize("field", ["session", "event"])
def test_nobody_adds_to_the_conversation_of_another_person(
    ann: Machine, url: str, urls: DatabaseUrls, field: str
) -> None:
    """An item whose session or exchange belongs to another person is refused."""
    theirs = session(unique("s")) if field == "session" else exchange(unique("one"))
    ann.push([theirs])
    bob = Machine(url, invited(urls, unique("Bob")))
    forged = replace(exchange(unique("two")), **{field: theirs.id})

    assert bob.push([forged]).refused == {forged.id: "shared by another person"}
    assert bob.status().own == {}


def test_a_hidden_item_of_another_person_is_refused(ann: Machine, url: str, urls: DatabaseUrls) -> None:
    """Row security refuses to replace an item that the person may not even see."""
    used = usage("2026-01-01", unique("Ann"))
    ann.push([used])
    bob = Machine(url, invited(urls, unique("Bob")))

    with pytest.raises(Refused) as refused:
        bob.push([used])

    assert refused.value.status == 403
    assert bob.status().own == {}
    assert ann.status().own == {"usage": 1}


@pytest.mark.parametrize("years", [-10, 10])
def test_wrong_clocks_change_no_order(ann: Machine, years: int) -> None:
    """The later change wins, even if its clock is ten years behind."""
    name = unique("one")
    now = 1_700_000_000_000
    ann.push([exchange("new", name, at=now)])
    last = exchange("newer", name, at=now + years * 31_557_600_000)
    ann.push([last])

    assert ann.shared() == [(last.id, last.hash)]


SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2
USED = json.decode(usage("2026-01-01", "x").body)


@pytest.mark.parametrize(
    "planted",
    [
        exchange(f"the key is {SECRET[:40]}"),
        memory(f"remember {SECRET[:40]}"),
        memory("deploy", metadata={"password": "hunter2-Zx81-kQ"}),
        replace(session("one"), path=f"{SECRET[:40]}.jsonl"),
    ],
    ids=["exchange", "memory", "metadata", "path"],
)
def test_a_secret_refuses_the_whole_batch(ann: Machine, planted: object) -> None:
    """If a rule for secrets matches any text of a batch, nothing of it is stored, and the reply does not quote it."""
    with pytest.raises(Refused) as refused:
        ann.push([exchange(unique("harmless")), planted])  # type: ignore[list-item]

    assert refused.value.status == 422
    assert "contains a secret" in refused.value.reason
    assert "hunter2" not in refused.value.reason
    assert "A1b2" not in refused.value.reason
    assert ann.status().own == {}


@pytest.mark.parametrize(
    "damaged",
    [
        replace(exchange("one"), hash="0" * 64),
        replace(exchange("one"), id="one"),
        replace(exchange("one"), at=2**70),
        replace(exchange("one"), path="a\0b"),
        item(ItemKind.EXCHANGE, {"ordinal": 1}, "one"),
        item(ItemKind.USAGE, {**USED, "day": "yesterday"}, "one"),
        item(ItemKind.USAGE, {**USED, "tokens_in": 1 << 60}, "one"),
        item(ItemKind.USAGE, {**USED, "agent": "a\0b"}, "one"),
        replace(exchange("one"), id=exchange("one").id.upper()),
        replace(exchange("one"), vectors=(SharedVector(0, "AAA"),)),
        replace(exchange("one"), vectors=(SharedVector(0, "AAAA"),)),
        replace(exchange("one"), vectors=(SharedVector(1, "AAA="), SharedVector(1, "AAA="))),
    ],
    ids=["hash", "id", "at", "path", "exchange", "day", "tokens", "agent", "form", "base64", "vector", "part"],
)
def test_a_damaged_item_refuses_the_whole_batch(ann: Machine, damaged: object) -> None:
    """Nothing of a batch with an invalid item is stored."""
    with pytest.raises(Refused) as refused:
        ann.push([exchange(unique("harmless")), damaged])  # type: ignore[list-item]

    assert refused.value.status == 422
    assert ann.status().own == {}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"epoch": "x", "start": 0, "end": 1}', b'{"epoch": "\xff", "start": 0, "end": 1}'],
)
def test_a_damaged_batch_is_refused(ann: Machine, body: bytes) -> None:
    """A body that is no batch gets a reason."""
    with pytest.raises(Refused) as refused:
        ann.post("push", body, Position)

    assert refused.value.status == 422


def test_numbers_outside_of_the_batch_are_refused(ann: Machine) -> None:
    """The number of each change is after the start and not after the end."""
    batch = Batch(ann.epoch, 0, 1, withdrawn=(Withdrawn(item_id("one"), 2),))

    with pytest.raises(Refused) as refused:
        ann.send(batch)

    assert refused.value.status == 422


def test_a_batch_has_at_most_500_changes(ann: Machine) -> None:
    """A larger batch is refused."""
    with pytest.raises(Refused) as refused:
        ann.push(withdrawn=[item_id(str(number)) for number in range(501)])

    assert refused.value.status == 422


def test_leaving_ends_the_machine(ann: Machine, urls: DatabaseUrls) -> None:
    """After leaving, the token is refused and no new one is given. What was shared stays."""
    one = exchange(unique("one"))
    ann.push([one])

    assert ann.leave() == 0
    for ask in (ann.status, ann.new_token):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.status == 401
    assert again(ann, urls).status().own == {"exchange": 1}


def test_leaving_can_withdraw_everything(ann: Machine, urls: DatabaseUrls) -> None:
    """With `withdraw`, items of all machines of the person are deleted, and none returns."""
    one, two = exchange(unique("one")), exchange(unique("two"))
    ann.push([one])
    desktop = again(ann, urls)
    desktop.push([two])

    assert ann.leave(withdraw=True) == 2
    assert desktop.status().own == {}
    assert set(desktop.push([one, two]).refused) == {one.id, two.id}
