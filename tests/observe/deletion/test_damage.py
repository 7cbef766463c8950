"""Damaged copies do not block other deletions or ingest runs."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.deletion import deletions
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.archiver.watch.file_events import FileEvents
from palaver.core import ids
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionResult, DeletionState
from palaver.core.home import Home
from palaver.core.reports import Report
from palaver.observe import pipeline
from palaver.observe.background import background_archiver
from palaver.observe.background.background_archiver import BackgroundArchiver
from palaver.observe.deletion import erasure
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.pipeline import Pipeline
from palaver.search import archive_search

from ...archiver.history import FORK, ORIGINAL, History, talk
from ...search.fake_embedder import FakeEmbedder

OTHER = "33333333-0000-4000-8000-000000000003"


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, erasure, archive_search):
        monkeypatch.setattr(module, "load", FakeEmbedder().load)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return an archive of two sessions."""
    made = History(tmp_path)
    made.store.close()
    made.write(talk("kept"))
    made.write(talk("going", session=OTHER), OTHER, at=3)
    archive(made)
    return made


def archive(history: History) -> Report:
    with Pipeline(history.home) as pipeline:
        return pipeline.run(in_paths([history.folder]))


def forget(home: Home, target: str, *, erase: bool = False) -> DeletionResult:
    wanted = DeletionRequest(targets=(target,), erase=erase)
    with Deleter(home) as deleter:
        return deleter.delete(wanted, deleter.preview(wanted).token)


def prompts(home: Home) -> list[str]:
    with Store.open(home.database) as store:
        keys = [each.key for each in store.exchanges.outlines()]
        return [each.exchange.prompt for each in store.exchanges.load(keys).values()]


def states(home: Home) -> dict[int, DeletionState]:
    with Store.open(home.database) as store:
        return {each.id: each.state for each in store.tombstones.all()}


def damage(history: History) -> Copy:
    """Compress the copy of the first session, flip some of its bits, and delete the agent's file."""
    with Store.open(history.home.database) as store:
        CopyCompressor(store, history.raw).run()
        copy = Copy(history.raw.root, store.sources.by_path()[history.path(ORIGINAL)].archived)
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.path(ORIGINAL).unlink()
    return copy


def test_a_damaged_copy_does_not_block_another_erasure(history: History) -> None:
    """While one copy is damaged, another session can be erased and new lines are ingested."""
    kept = forget(history.home, ORIGINAL).number
    damage(history)

    gone = forget(history.home, OTHER, erase=True).number
    assert kept
    assert gone
    assert states(history.home) == {kept: DeletionState.KEPT, gone: DeletionState.ERASED}

    history.write(talk("new", session=FORK), FORK, at=5)
    archive(history)
    assert prompts(history.home) == ["new?"]


def test_expiry_waits_for_a_damaged_copy(history: History) -> None:
    """An expired deletion of a damaged copy stays unfinished and is reported, and ingest continues."""
    number = forget(history.home, ORIGINAL).number
    assert number
    copy = damage(history)
    with Store.open(history.home.database) as store:
        store._database.run("UPDATE deletion SET at = at - ?", (UNDO_PERIOD + 86_400_000,))
    history.write(talk("new", session=FORK), FORK, at=5)

    problems = archive(history).ingested.problems

    assert {problem.path for problem in problems} == {copy.compressed_path}
    assert sorted(prompts(history.home)) == ["going?", "new?"]
    assert states(history.home) == {number: DeletionState.ERASING}


def test_a_failed_erasure_is_reported_and_ingest_continues(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """`palaver archive` and the background archiver report a failed erasure and continue to ingest."""
    forget(history.home, OTHER)

    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pipeline, "erase_expired", fails)
    monkeypatch.setattr(background_archiver, "erase_expired", fails)
    history.write(talk("new", session=FORK), FORK, at=5)

    [problem] = archive(history).ingested.problems
    assert "Permission denied" in problem.reason
    assert problem.hint
    assert sorted(prompts(history.home)) == ["kept?", "new?"]
    with Store.open(history.home.database) as store:
        assert [stage.name for stage in store.stages.all() if stage.fails] == ["archive"]
        events: list[str] = []
        watcher = BackgroundArchiver(history.home, FileEvents(poll=True), lambda event, _: events.append(event))
        watcher._erase(store)
    assert events == ["failed"]


def test_an_erasure_waits_for_a_copy_that_cannot_be_removed(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty copy that cannot be removed keeps its deletion unfinished, until a later run removes it."""
    number = forget(history.home, ORIGINAL).number
    assert number
    with Store.open(history.home.database) as store:
        Deletions(store, history.raw).expire(number)

    def fails(copy: Copy) -> None:
        raise PermissionError(13, f"Permission denied: {copy.path}")

    with monkeypatch.context() as patch:
        patch.setattr(deletions, "remove", fails)
        archive(history)
        assert states(history.home) == {number: DeletionState.ERASING}
    history.path(ORIGINAL).unlink()
    archive(history)
    assert states(history.home) == {number: DeletionState.ERASED}
    assert not any(b"kept?" in path.read_bytes() for path in history.raw.root.rglob("*.jsonl"))


def test_a_copy_that_cannot_be_removed_does_not_block_an_ingest(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second copy of erased content that cannot be removed is reported, and other files are ingested."""
    content = history.path(ORIGINAL).read_bytes()
    forget(history.home, ORIGINAL, erase=True)
    history.write(content, project="elsewhere", at=7)
    history.write(talk("new", session=FORK), FORK, at=9)

    def fails(copy: Copy) -> None:
        raise PermissionError(13, f"Permission denied: {copy.path}")

    monkeypatch.setattr(deletions, "remove", fails)
    problems = archive(history).ingested.problems

    assert {problem.path.parent.name for problem in problems} == {"elsewhere"}
    assert sorted(prompts(history.home)) == ["going?", "new?"]


def test_an_unreadable_copy_is_not_removed_on_expiry(history: History) -> None:
    """An unreadable copy is not removed on expiry, because it may contain content that can still be restored."""
    number = forget(history.home, ORIGINAL).number
    assert number
    copy = damage(history)
    with Store.open(history.home.database) as store:
        Deletions(store, history.raw).expire(number)
        assert store.tombstones.scheduled_erasures() == {copy.archived: False}


def test_an_erasure_reports_only_its_own_problems(history: History) -> None:
    """The result of an erasure does not mention unreadable copies of other sessions."""
    copy = damage(history)
    with Store.open(history.home.database) as store, store.transaction():
        store.sources.outdate()
    number = forget(history.home, OTHER).number
    assert number
    with Store.open(history.home.database) as store:
        with store.transaction():
            store.sources.outdate()
        tally = Ingest(store, history.raw).run((), budget=float("inf"))
    assert {problem.path for problem in tally.problems} == {copy.compressed_path}

    with Deleter(history.home) as deleter:
        assert deleter.erase(number) == erasure.ErasureResult(done=True)


def test_an_unfinished_erasure_lists_the_copy(history: History) -> None:
    """The result of an unfinished erasure lists the damaged copy and the reason."""
    with Store.open(history.home.database) as store:
        [key] = [each.key for each in store.exchanges.outlines()][:1]
    history.append(talk("more"), at=7)
    archive(history)
    number = forget(history.home, ids.show("exchange", key)).number
    assert number
    copy = damage(history)

    with Deleter(history.home) as deleter:
        finished = deleter.erase(number)

    assert not finished.done
    assert [problem.path for problem in finished.problems] == [copy.compressed_path]
    assert "cannot erase lines" in finished.problems[0].full_message
