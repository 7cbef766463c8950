"""Each conversation has one row with an ID that never changes."""

import pytest

from palaver.archiver.store import Store
from palaver.core.conversation import Session, SessionKind

FULL = Session(
    agent="claude-code",
    native_id="agent-1",
    kind=SessionKind.SUBAGENT,
    parent_id="one",
    project="shop",
    cwd="/home/demo/shop",
    branch="main",
    title="Prices",
    title_rank=2,
    version="2.1.0",
    models=["m1", "m2"],
    started=1,
    ended=2,
    links={"pull-request": "https://example.com/1"},
)


def test_a_stored_session_is_the_same_session(store: Store) -> None:
    """Every field is loaded as it was stored."""
    number = store.sessions.save(FULL)

    assert store.sessions.load(number) == FULL
    assert store.sessions.find("claude-code", "agent-1") == number
    assert store.sessions.count() == 1


def test_agent_and_id_identify_a_session(store: Store) -> None:
    """Saving again updates the row. An equal ID from another agent belongs to another session."""
    number = store.sessions.save(Session("claude-code", "one"))
    assert store.sessions.save(Session("claude-code", "one", title="Later")) == number
    assert store.sessions.save(Session("other", "one")) != number
    assert store.sessions.load(number).title == "Later"
    assert store.sessions.count() == 2


def test_session_ids_follow_the_order_of_arrival(store: Store) -> None:
    """Sessions get rising IDs in the order in which they are saved."""
    names = ["b", "c", "a"]
    numbers = [store.sessions.save(Session("claude-code", name)) for name in names]

    assert numbers == sorted(numbers)
    assert [store.sessions.load(number).native_id for number in numbers] == names


def test_an_unknown_session_is_not_found(store: Store) -> None:
    """`find` returns None and `load` raises `KeyError`."""
    assert store.sessions.find("claude-code", "one") is None
    with pytest.raises(KeyError):
        store.sessions.load(1)
