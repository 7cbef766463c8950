"""Deleted content does not return through a copy with other record IDs or times."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from palaver.archiver.deletion.deletions import Deletions
from palaver.core.deletion import DeletionRequest, DeletionState
from palaver.search.archive_search import ArchiveSearch

from ..history import FORK, ORIGINAL, History
from ..reading.test_lineage import THIRD, forked, said
from .steps import all_prompts, copied_bytes, exchange, forget, undo

FORKS = {
    "new IDs": forked("one", "two"),
    "new IDs and times": forked("one", "two", day=2),
    "new IDs without a link": said("one", "two", session=FORK, ids="b"),
}


class Case(NamedTuple):
    """History of an origin and one kind of fork, which is archived before or after the deletion."""

    name: str
    history: History
    fork: list[dict[str, Any]]
    is_late: bool

    def write_fork(self) -> None:
        self.history.write(self.fork, FORK, at=2)
        self.history.ingest()

    def forget(self, target: str, *, erase: bool = False) -> int:
        number = forget(self.history, target, erase=erase)
        if self.is_late:
            self.write_fork()
        return number


def cases(root: Path) -> Iterator[Case]:
    for name, copied in FORKS.items():
        for is_late in (False, True):
            with History(root / f"{name} {is_late}") as history:
                case = Case(name, history, [*copied, *said("own", session=FORK, ids="c", day=3)], is_late)
                history.write(said("one", "two"), at=1)
                history.ingest()
                if not is_late:
                    case.write_fork()
                yield case


def test_a_deleted_exchange_does_not_return_through_a_fork(tmp_path: Path) -> None:
    """A deleted exchange stays deleted in forks that are archived before or after. The other exchanges stay."""
    for case in cases(tmp_path):
        name, history = case.name, case.history
        number = case.forget(exchange(history, "one?"))
        assert (history.prompts(), history.prompts(FORK)) == (["two?"], ["own?"]), (name, case.is_late)
        assert history.ingest().reread == 0, (name, case.is_late)

        undo(history, number)
        assert sorted(history.prompts()) == ["one?", "two?"], (name, case.is_late)
        assert history.prompts(FORK) == ["own?"], (name, case.is_late)


def test_a_deleted_session_does_not_return_through_a_fork(tmp_path: Path) -> None:
    """After its origin was deleted, a fork keeps only its own exchange. Its text is shown nowhere."""
    for case in cases(tmp_path):
        case.forget(ORIGINAL)
        assert all_prompts(case.history) == ["own?"], (case.name, case.is_late)
        with ArchiveSearch(case.history.home) as layers:
            excerpt = layers.read(case.history.source(FORK).archived)
            shown = [turn.text for each in excerpt.exchanges for turn in each.turns]
            assert shown == ["own?", "own!"], (case.name, case.is_late)


def test_erased_content_is_removed_from_forks(tmp_path: Path) -> None:
    """An erasure removes the bytes of copies, also if the fork is archived later."""
    for case in cases(tmp_path):
        case.forget(exchange(case.history, "one?"), erase=True)
        assert sorted(all_prompts(case.history)) == ["own?", "two?"], (case.name, case.is_late)
        assert b"one?" not in copied_bytes(case.history), (case.name, case.is_late)


def test_a_deletion_can_be_followed_by_an_erasure(tmp_path: Path) -> None:
    """Content that was deleted before can be erased everywhere. The deletion can then not be undone."""
    for case in cases(tmp_path):
        number = case.forget(ORIGINAL)
        forget(case.history, ORIGINAL, erase=True)
        assert all_prompts(case.history) == ["own?"], (case.name, case.is_late)
        assert b"two?" not in copied_bytes(case.history), (case.name, case.is_late)
        deletion = case.history.store.tombstones.load(number)
        assert deletion is not None, case.name
        assert deletion.state is not DeletionState.KEPT, (case.name, case.is_late)


def test_deleting_a_fork_keeps_its_origin(tmp_path: Path) -> None:
    """The lines that a fork copied belong to its origin, and stay."""
    for case in cases(tmp_path):
        case.write_fork()
        forget(case.history, FORK)
        assert all_prompts(case.history) == ["one?", "two?"], case.name


def test_a_copy_stays_if_only_unrelated_text_was_deleted(history: History) -> None:
    """Deleting a session keeps sessions that begin alike by chance, and forks that ask the same prompt elsewhere."""
    history.write(said("hi"), at=1)
    history.write(said("hi", session=FORK, ids="b", day=2), FORK, at=2)
    history.write([*forked("on", "hi", session=THIRD, ids="c", day=3)], THIRD, at=3)
    history.ingest()
    forget(history, ORIGINAL)

    assert (history.prompts(), history.prompts(FORK), history.prompts(THIRD)) == ([], ["hi?"], ["on?", "hi?"])


def test_a_fork_of_a_fork_does_not_return_deleted_content(history: History) -> None:
    """Content of the first session stays deleted in a fork of its fork."""
    history.write(said("one", "two"), at=1)
    history.write([*forked("one", day=2), *said("left", session=FORK, ids="c", day=2)], FORK, at=2)
    history.ingest()
    forget(history, exchange(history, "one?"))
    nested = forked("one", "left", session=THIRD, origin=FORK, ids="d", day=4)
    history.write([*nested, *said("own", session=THIRD, ids="e", day=5)], THIRD, at=3)
    history.ingest()

    assert sorted(all_prompts(history)) == ["left?", "own?", "two?"]
    request = DeletionRequest((FORK,))
    assert Deletions(history.store, history.raw).plan(request).repeats
