"""Things told twice: which telling stands, and what becomes of the other's line."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats.echoes import Echoes
from palaver.archiver.formats.given import REPEATED
from palaver.core.conversation import Kind, Skipped, Speaker, Turn


def echo(line: int) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.PROSE, "x")


def test_an_echo_is_dropped_when_the_richer_telling_follows() -> None:
    """Its line is then counted as repeated."""
    echoes = Echoes()

    assert echoes.hold("a", echo(1))
    echoes.hear("a")
    assert echoes.take() == [Skipped(1, REPEATED)]
    assert echoes.take() == []


def test_an_echo_is_not_held_when_the_richer_telling_came_before() -> None:
    """One telling answers for every echo of it."""
    echoes = Echoes()
    echoes.hear("a")

    assert not echoes.hold("a", echo(1))
    assert not echoes.hold("a", echo(2))
    assert echoes.hold("b", echo(3))


def test_an_echo_without_a_richer_telling_stands_when_the_exchange_ends() -> None:
    """In the order of the lines, and nothing of it reaches the next exchange."""
    echoes = Echoes()
    echoes.hold("b", echo(1))
    echoes.hold("a", echo(2))
    echoes.hold("b", echo(3))
    echoes.hear("c")
    echoes.settle()

    assert [each.line for each in echoes.take()] == [1, 2, 3]
    assert echoes.hold("c", echo(4))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"))))
def test_a_thing_that_has_a_richer_telling_anywhere_is_told_by_that_alone(tellings: list[tuple[bool, str]]) -> None:
    """Every echo that was held gives exactly one event, and those stand whose key was never heard."""
    echoes, held = Echoes(), list[int]()
    for line, (richer, key) in enumerate(tellings):
        if richer:
            echoes.hear(key)
        elif echoes.hold(key, echo(line)):
            held.append(line)
    echoes.settle()
    decided = echoes.take()
    heard = {key for richer, key in tellings if richer}

    assert sorted(each.line for each in decided) == held
    assert {each.line for each in decided if isinstance(each, Turn)} == {
        line for line, (richer, key) in enumerate(tellings) if not richer and key not in heard
    }
