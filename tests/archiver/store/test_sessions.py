"""Stored sessions: one row for each conversation, under a number that never changes."""

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
    """Every field comes back equal."""
    number = store.sessions.save(FULL)

    assert store.sessions.load(number) == FULL
    assert store.sessions.find("claude-code", "agent-1") == number
    assert store.sessions.count() == 1


def test_a_session_is_known_by_agent_and_id(store: Store) -> None:
    """Saving again changes the row; another agent's session of the same id is another one."""
    number = store.sessions.save(Session("claude-code", "one"))
    assert store.sessions.save(Session("claude-code", "one", title="Later")) == number
    assert store.sessions.save(Session("other", "one")) != number
    assert store.sessions.load(number).title == "Later"
    assert store.sessions.count() == 2


def test_numbers_follow_the_order_of_arrival(store: Store) -> None:
    """Sessions are numbered as they come."""
    names = ["b", "c", "a"]
    numbers = [store.sessions.save(Session("claude-code", name)) for name in names]

    assert numbers == sorted(numbers)
    assert [store.sessions.load(number).native_id for number in numbers] == names


def test_an_unknown_session_is_not_found(store: Store) -> None:
    """Looking for one gives nothing; loading one that nobody gave out is a mistake."""
    assert store.sessions.find("claude-code", "one") is None
    with pytest.raises(KeyError):
        store.sessions.load(1)
