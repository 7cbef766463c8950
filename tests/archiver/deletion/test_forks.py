"""A line that a fork repeats belongs to the session that contained it first."""

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
from .steps import all_prompts, copied_bytes, exchange, forget, plan, undo


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_deleting_a_fork_keeps_the_original(history: History, erase: bool, repeated: str) -> None:
    """Only the exchanges that the fork added are deleted."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    assert plan(history, DeletionRequest((FORK,), erase=erase)).kept_lines == 2
    forget(history, FORK, erase=erase)

    assert all_prompts(history) == ["one?"]
    assert b"one?" in history.copy(history.source())
    assert (b"apart" in copied_bytes(history)) is not erase


def test_erasing_an_original_cleans_its_forks(history: History) -> None:
    """Forks lose the repeated lines and keep their own."""
    history.write(talk("one"), at=1)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert all_prompts(history) == ["apart?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
def test_a_fork_keeps_its_own_lines_around_repeated_ones(history: History, repeated: str) -> None:
    """Repeated lines in the middle of its exchange are erased alone."""
    history.write(talk("one"), at=1)
    history.write([*talk("apart", session=FORK), *talk("one", session=repeated)], FORK, at=2)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert all_prompts(history) == ["apart?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("whole", [False, True])
def test_erasing_an_original_includes_deleted_lines_of_forks(history: History, repeated: str, whole: bool) -> None:
    """Lines that were deleted before are also erased from forks."""
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
def test_erasing_a_fork_keeps_deletions_of_the_original_undoable(history: History, repeated: str, lost: bool) -> None:
    """An earlier deletion in the original can be undone, also after the database was lost."""
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
def test_expiry_cleans_forks(history: History, repeated: str) -> None:
    """Forks lose the repeated lines when the deletion expires."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()
    number = forget(history, exchange(history, "one?"))

    Deletions(history.store, history.raw).expire(number)
    history.ingest()

    assert b"one?" not in copied_bytes(history)
    assert sorted(all_prompts(history)) == ["apart?", "two?"]
    assert not any("one" in str(row) for row in history.dump()["record"])


SUMMARY = {"type": "summary", "summary": "DeletionSummary walruses", "leafUuid": "apart-answered"}
"""Line without an ID, which is recognised only by a keyed hash of its content."""


def forked(history: History, repeated: str = FORK) -> None:
    """Ingest an original and a fork that has a summary line."""
    history.write(talk("one"), at=1)
    history.write([SUMMARY, *talk("one", session=repeated), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()


def remove(history: History, session: str) -> None:
    """Remove the copy of a session."""
    Copy(history.raw.root, history.source(session).archived).path.unlink()


def original_gone(history: History) -> None:
    """Remove the copy and the agent's file."""
    remove(history, ORIGINAL)
    history.path(ORIGINAL).unlink()


def original_without_copy(history: History) -> None:
    remove(history, ORIGINAL)


def original_damaged(history: History) -> None:
    CopyCompressor(history.store, history.raw).run()
    compressed = Copy(history.raw.root, history.source(ORIGINAL).archived).compressed_path
    whole = compressed.read_bytes()
    compressed.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.path(ORIGINAL).unlink()


def fork_without_copy(history: History) -> None:
    remove(history, FORK)


LOSSES: list[Callable[[History], None]] = [original_gone, original_without_copy, original_damaged, fork_without_copy]


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("repeated", [ORIGINAL, FORK])
@pytest.mark.parametrize("lose", LOSSES)
def test_a_deleted_fork_stays_deleted_if_copies_are_lost(
    history: History, lose: Callable[[History], None], repeated: str, erase: bool
) -> None:
    """A lost original or a lost copy of the fork does not restore the fork's lines."""
    forked(history, repeated)
    lose(history)

    planned = plan(history, DeletionRequest((FORK,), erase=erase))
    assert planned.kept_lines == 2
    assert planned.unreadable == ((history.source().archived,) if lose is original_damaged else ())
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
    """If a fork's copy and file are lost, its lines cannot be distinguished from repeated lines."""
    forked(history)
    remove(history, FORK)
    history.path(FORK).write_bytes(b"{}\n")
    lost = history.source(FORK).archived

    for erase in (False, True):
        assert plan(history, DeletionRequest((FORK,), erase=erase)).unreadable == (lost,)


@pytest.mark.parametrize("lose", LOSSES[:3])
def test_an_exchange_of_a_fork_can_be_deleted_without_its_original(
    history: History, lose: Callable[[History], None]
) -> None:
    """It can be selected by id or text while the copy of the original is lost."""
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

    assert all_prompts(history) == ["one?"]
    assert b"apart?" not in copied_bytes(history)


@pytest.mark.parametrize("lose", [original_gone, original_without_copy])
def test_a_missing_copy_is_reported_by_a_text_selection(history: History, lose: Callable[[History], None]) -> None:
    """A copy that cannot be searched for the text is named as unreadable."""
    forked(history)
    lose(history)

    planned = plan(history, DeletionRequest(mentions="one?"))

    assert planned.sources == []
    assert planned.unreadable == (history.source().archived,)


def test_copies_that_repeat_each_other_lose_their_own_lines(history: History) -> None:
    """Each of two alternately growing copies contained some lines first."""
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
    """The origin is also recorded in a new database that reads the fork first."""
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
