"""Deletions and forks: what a fork repeats is its original's, what it says itself is its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.compressor import CopyCompressor
from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.store import Store
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput

from ..history import FORK, ORIGINAL, History, talk
from .steps import asked, exchange, forget, plan, said, undo


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_forgetting_a_fork_leaves_the_original(history: History, erase: bool, repeated: str) -> None:
    """What a fork repeats, in its own name or byte for byte, is the original's: its own exchanges go alone."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    assert plan(history, DeletionRequest((FORK,), erase=erase)).kept_lines == 2
    forget(history, FORK, erase=erase)

    assert asked(history) == ["one?"]
    assert b"one?" in history.copy(history.source())
    assert (b"apart" in said(history)) is not erase


def test_forgetting_the_original_takes_it_out_of_the_fork(history: History) -> None:
    """What is erased of an original goes from the copies of its forks too, which keep what is their own."""
    history.write(talk("one"), at=1)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert asked(history) == ["apart?"]
    assert b"one?" not in said(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_a_fork_that_begins_with_its_own_keeps_it(history: History, repeated: str) -> None:
    """What it repeats later, between the lines of its own exchange, goes from it alone."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert asked(history) == ["apart?"]
    assert b"one?" not in said(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("whole", [False, True])
def test_an_erased_session_leaves_no_byte_of_what_was_forgotten_in_a_fork(
    history: History, repeated: str, whole: bool
) -> None:
    """What was forgotten of a session goes with it, from copies of which all was forgotten, too."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))
    later = forget(history, FORK) if whole else None

    forget(history, ORIGINAL, erase=True)

    assert b"one?" not in said(history)
    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)
    if later is not None:
        undo(history, later)
    assert asked(history) == ["apart?"]


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("lost", [False, True])
def test_a_fork_that_is_erased_takes_nothing_from_the_original(history: History, repeated: str, lost: bool) -> None:
    """What was forgotten where it was said first can be had back there, also after the database was lost."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))
    if lost:
        history.store.close()
        history.home.database.unlink()
        history.store = Store.create_anew(history.home.database)
        history.ingest()
    forget(history, FORK, erase=True)
    assert b"apart?" not in said(history)

    undo(history, number)

    assert sorted(asked(history)) == ["one?", "two?"]


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_the_end_of_a_forgetting_reaches_forks(history: History, repeated: str) -> None:
    """When the time of a forgetting is over, copies lose it that repeat it in words of their own."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))

    Deletions(history.store, history.raw).expire(number)
    history.ingest()

    assert b"one?" not in said(history)
    assert sorted(asked(history)) == ["apart?", "two?"]
    assert not any("one" in str(row) for row in history.dump()["record"])


SUMMARY = {"type": "summary", "summary": "DeletionSummary walruses", "leafUuid": "apart-answered"}
"""A line without an id of its own, which only a mark of the line itself can tell."""


def forked(history: History, repeated: str = FORK) -> None:
    """An original, and a fork that has a summary."""
    history.write(talk("one"), at=1)
    history.write([SUMMARY, *talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()


def remove(history: History, session: str) -> None:
    """Nothing is left of a session's copy."""
    Copy(history.raw.root, history.source(session).archived).path.unlink()


def original_gone(history: History) -> None:
    """Nor of the agent's file."""
    remove(history, ORIGINAL)
    history.path(ORIGINAL).unlink()


def original_without_copy(history: History) -> None:
    remove(history, ORIGINAL)


def original_damaged(history: History) -> None:
    CopyCompressor(history.store, history.raw).run()
    sealed = Copy(history.raw.root, history.source(ORIGINAL).archived).compressed_path
    whole = sealed.read_bytes()
    sealed.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.path(ORIGINAL).unlink()


def fork_without_copy(history: History) -> None:
    remove(history, FORK)


LOSSES: list[Callable[[History], None]] = [original_gone, original_without_copy, original_damaged, fork_without_copy]


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_fork_stays_gone_whatever_is_left_of_copies(
    history: History, lose: Callable[[History], None], repeated: str, erase: bool
) -> None:
    """Where the copy of the original or of the fork is lost, what is the fork's own does not come back either."""
    forked(history, repeated)
    lose(history)

    planned = plan(history, DeletionRequest((FORK,), erase=erase))
    assert planned.kept_lines == 2
    assert planned.unreadable == ((history.source().archived,) if lose is original_damaged else ())
    number = forget(history, FORK, erase=erase)
    history.touch(history.path(FORK), 50)
    history.ingest()

    assert asked(history) == ["one?"]
    assert history.source(FORK).coverage.get("forgotten") == 3
    if erase:
        assert b"walruses" not in said(history)
    else:
        undo(history, number)
        assert sorted(asked(history)) == ["apart?", "one?"]
        assert history.session(FORK).title == "DeletionSummary walruses"


def test_what_only_a_lost_fork_said_is_not_claimed(history: History) -> None:
    """Of a fork of which neither its copy nor the agent's file is left nobody knows which lines were its own."""
    forked(history)
    remove(history, FORK)
    history.path(FORK).write_bytes(b"{}\n")
    lost = history.source(FORK).archived

    for erase in (False, True):
        assert plan(history, DeletionRequest((FORK,), erase=erase)).unreadable == (lost,)


@pytest.mark.parametrize("lose", LOSSES[:3])
def test_an_exchange_of_a_fork_is_forgotten_without_its_original(
    history: History, lose: Callable[[History], None]
) -> None:
    """What the fork itself said can be named, by its id or by its words, while the copy of the original is lost."""
    forked(history)
    lose(history)
    target = exchange(history, "apart?", FORK)

    for wanted in (
        DeletionRequest((target,)),
        DeletionRequest((target,), erase=True),
        DeletionRequest(mentions="APART?"),
    ):
        assert [source.path for source in plan(history, wanted).sources] == [history.path(FORK)]
    forget(history, target, erase=True)

    assert asked(history) == ["one?"]
    assert b"apart?" not in said(history)


@pytest.mark.parametrize("lose", [original_gone, original_without_copy])
def test_a_copy_that_is_gone_is_named_while_its_words_are_found(
    history: History, lose: Callable[[History], None]
) -> None:
    """Whether a text stands in what was archived, and is found still, nobody says who cannot read its copy."""
    forked(history)
    lose(history)

    planned = plan(history, DeletionRequest(mentions="one?"))

    assert planned.sources == []
    assert planned.unreadable == (history.source().archived,)


def test_copies_that_repeat_each_other_lose_what_either_said_first(history: History) -> None:
    """Of two copies of a session that grow by turns each says first what the other repeats."""
    history.write(talk("one"), at=1)
    history.ingest()
    history.write(talk("one", "two"), project="elsewhere", at=2)
    history.ingest()
    history.append(talk("two"), at=3)
    history.ingest()

    for prompt, left in (("two?", ["one?"]), ("one?", [])):
        forget(history, exchange(history, prompt))
        assert asked(history) == left


def test_a_fork_whose_beginning_was_forgotten_still_names_its_origin(history: History) -> None:
    """Also to a database that is made anew, and reads the fork first."""
    fork = [{**line, "forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}} for line in talk("one", "two")]
    history.write(talk("one", "two"), at=2)
    history.write([*fork, *talk("apart", session=FORK)], FORK, at=1)
    history.ingest()
    forget(history, exchange(history, "one?"))
    history.store.close()
    for path in history.home.root.glob("palaver.db*"):
        path.unlink()
    history.store = Store.create_anew(history.home.database)
    history.ingest()

    assert (history.prompts(), history.prompts(FORK)) == (["two?"], ["apart?"])
