"""A line that a fork repeats belongs to the session that contained it first."""

from collections.abc import Callable

import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.store import Store
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput

from ..history import FORK, ORIGINAL, History, named, talk
from .steps import all_prompts, copied_bytes, exchange, forget, plan, undo


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_deleting_a_fork_keeps_the_original(history: History, erase: bool, repeated: str) -> None:
    """Deleting a fork deletes only the exchanges that the fork added to the original."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    assert plan(history, DeletionRequest((FORK,), erase=erase)).kept_lines == 2
    forget(history, FORK, erase=erase)

    assert all_prompts(history) == ["one?"]
    assert b"one?" in history.copy(history.source())
    assert (b"apart" in copied_bytes(history)) is not erase


def test_erasing_an_original_erases_its_lines_from_forks(history: History) -> None:
    """Erasing an original also erases its lines from forks. Forks keep their own lines."""
    history.write(talk("one"), at=1)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert all_prompts(history) == ["apart?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_a_fork_keeps_its_own_lines_before_repeated_ones(history: History, repeated: str) -> None:
    """If a fork repeats lines of an erased original after its own lines, only the repeated lines are erased."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert all_prompts(history) == ["apart?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("whole", [False, True])
def test_erasing_an_original_includes_deleted_lines_of_forks(history: History, repeated: str, whole: bool) -> None:
    """Erasing an original also erases lines from forks that were deleted before."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))
    later = forget(history, FORK) if whole else None

    forget(history, ORIGINAL, erase=True)

    assert b"one?" not in copied_bytes(history)
    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)
    if later is not None:
        undo(history, later)
    assert all_prompts(history) == ["apart?"]


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("lost", [False, True])
def test_deletions_of_an_original_can_be_undone_after_erasing_a_fork(
    history: History, repeated: str, lost: bool
) -> None:
    """After a fork is erased, an earlier deletion in its original can be undone, even if the database was lost."""
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
    assert b"apart?" not in copied_bytes(history)

    undo(history, number)

    assert sorted(all_prompts(history)) == ["one?", "two?"]


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_expiry_erases_lines_from_forks(history: History, repeated: str) -> None:
    """When a deletion in an original expires, its lines are also erased from forks."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))

    Deletions(history.store, history.raw).expire(number)
    history.ingest()

    assert b"one?" not in copied_bytes(history)
    assert sorted(all_prompts(history)) == ["apart?", "two?"]
    assert not any("one" in str(row) for row in history.dump()["record"])


SUMMARY = {"type": "summary", "summary": "DeletionSummary walruses", "leafUuid": named("apart-answered")}
"""Line without an ID, which is recognised only by a keyed hash of its content."""


def ingest_fork(history: History, repeated: str = FORK) -> None:
    """Ingest an original and a fork that has a summary line."""
    history.write(talk("one"), at=1)
    history.write([SUMMARY, *talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()


def remove_copy(history: History, session: str) -> None:
    """Remove the copy of a session."""
    Copy(history.raw.root, history.source(session).archived).path.unlink()


def remove_original(history: History) -> None:
    """Remove the original's copy and the agent's file."""
    remove_copy(history, ORIGINAL)
    history.path(ORIGINAL).unlink()


def remove_original_copy(history: History) -> None:
    remove_copy(history, ORIGINAL)


def damage_original(history: History) -> None:
    """Damage the original's compressed copy, and remove the agent's file."""
    CopyCompressor(history.store, history.raw).run()
    compressed = Copy(history.raw.root, history.source(ORIGINAL).archived).compressed_path
    whole = compressed.read_bytes()
    compressed.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.path(ORIGINAL).unlink()


def remove_fork_copy(history: History) -> None:
    remove_copy(history, FORK)


LOSSES: list[Callable[[History], None]] = [
    remove_original,
    remove_original_copy,
    damage_original,
    remove_fork_copy,
]


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_deleted_fork_stays_deleted_if_copies_are_lost(
    history: History, lose: Callable[[History], None], repeated: str, erase: bool
) -> None:
    """A deleted fork stays deleted if the copy of its original, or its own copy, was lost before."""
    ingest_fork(history, repeated)
    lose(history)

    planned = plan(history, DeletionRequest((FORK,), erase=erase))
    assert planned.kept_lines == 2
    assert planned.unreadable == ((history.source().archived,) if lose is damage_original else ())
    number = forget(history, FORK, erase=erase)
    history.touch(history.path(FORK), 50)
    history.ingest()

    assert all_prompts(history) == ["one?"]
    assert history.source(FORK).coverage.get("forgotten") == 3
    if erase:
        assert b"walruses" not in copied_bytes(history)
    else:
        undo(history, number)
        assert sorted(all_prompts(history)) == ["apart?", "one?"]
        assert history.session(FORK).title == "DeletionSummary walruses"


def test_a_lost_fork_is_reported_as_unreadable(history: History) -> None:
    """A fork without copy and file is reported, because its own lines cannot be told apart from repeated lines."""
    ingest_fork(history)
    remove_copy(history, FORK)
    history.path(FORK).write_bytes(b"{}\n")
    lost = history.source(FORK).archived

    for erase in (False, True):
        assert plan(history, DeletionRequest((FORK,), erase=erase)).unreadable == (lost,)


@pytest.mark.parametrize("lose", LOSSES[:3])
def test_an_exchange_of_a_fork_can_be_deleted_without_its_original(
    history: History, lose: Callable[[History], None]
) -> None:
    """If the copy of an original is lost, exchanges of its fork can be selected by ID or text, and erased."""
    ingest_fork(history)
    lose(history)
    target = exchange(history, "apart?", FORK)

    for wanted in (
        DeletionRequest((target,)),
        DeletionRequest((target,), erase=True),
        DeletionRequest(mentions="APART?"),
    ):
        assert [source.path for source in plan(history, wanted).sources] == [history.path(FORK)]
    forget(history, target, erase=True)

    assert all_prompts(history) == ["one?"]
    assert b"apart?" not in copied_bytes(history)


@pytest.mark.parametrize("lose", [remove_original, remove_original_copy])
def test_a_missing_copy_is_reported_by_a_text_selection(history: History, lose: Callable[[History], None]) -> None:
    """A selection by text reports a missing copy as unreadable, because it cannot be searched."""
    ingest_fork(history)
    lose(history)

    planned = plan(history, DeletionRequest(mentions="one?"))

    assert planned.sources == []
    assert planned.unreadable == (history.source().archived,)


def test_exchanges_of_alternately_growing_copies_can_be_deleted(history: History) -> None:
    """If two copies of a session grow alternately, each of its exchanges can be deleted."""
    history.write(talk("one"), at=1)
    history.ingest()
    history.write(talk("one", "two"), project="elsewhere", at=2)
    history.ingest()
    history.append(talk("two"), at=3)
    history.ingest()

    for prompt, left in (("two?", ["one?"]), ("one?", [])):
        forget(history, exchange(history, prompt))
        assert all_prompts(history) == left


def test_a_fork_without_its_beginning_keeps_its_origin(history: History) -> None:
    """A fork whose first exchange was deleted keeps its origin, even in a new database that reads the fork first."""
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
