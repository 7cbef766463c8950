"""An erasure removes exactly the selected lines from raw copies."""

import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import CopyCompressor, CopyVerifier
from palaver.archiver.deletion.deletions import CopyEraser, Deletions
from palaver.core.deletion import DeletionRequest

from ..history import FORK, ORIGINAL, History, talk
from .steps import OTHER, all_prompts, copied_bytes, exchange, forget, plan


def test_erasing_a_session_removes_its_copies_and_rows(history: History) -> None:
    """Erasing a session removes its row and all files of its copy, including damaged and unfinished files."""
    path = history.write(talk("one"))
    history.write(talk("other", session=OTHER), OTHER)
    history.ingest()
    CopyCompressor(history.store, history.raw).run()
    damaged = history.home.archive / f"{history.source().archived}.sealed.zst.damaged"
    damaged.write_bytes(b"one")
    unfinished = history.home.archive / ".unfinished" / "left"
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.write_bytes(b"one")

    forget(history, ORIGINAL[:8], erase=True)

    assert not any("one" in name or ORIGINAL in name for name in history.archive_files())
    assert not damaged.exists()
    assert not unfinished.exists()
    assert history.store.sessions.find("claude-code", ORIGINAL) is None
    assert history.prompts(OTHER) == ["other?"]
    assert path.exists()


def test_a_compressed_copy_loses_only_erased_lines(history: History) -> None:
    """An erasure removes only the erased lines from a compressed copy. The other lines stay readable."""
    history.write(talk("one", "two"))
    history.ingest()
    CopyCompressor(history.store, history.raw).run()

    forget(history, exchange(history, "one?"), erase=True)

    assert b"one" not in history.copy(history.source())
    assert history.prompts() == ["two?"]
    assert history.copy(history.source()).count(b"\n") == 4


def record_erasure(history: History, target: str) -> Copy:
    """Compress the copy and record an erasure, but erase no line yet. Return the copy."""
    CopyCompressor(history.store, history.raw).run()
    wanted = DeletionRequest(targets=(target,), erase=True)
    Deletions(history.store, history.raw).delete(plan(history, wanted))
    return Copy(history.raw.root, history.source().archived)


def test_a_damaged_copy_does_not_block_an_ingest(history: History) -> None:
    """Each ingest reports a damaged copy with lines to erase, and erases them once the copy is readable."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.write(talk("new", session=FORK), FORK, at=5)

    for _ in range(2):
        problems = history.ingest().problems
        assert {problem.path for problem in problems} == {copy.compressed_path}
        assert all(problem.hint for problem in problems)
        assert history.store.tombstones.scheduled_erasures() == {copy.archived: False}
    assert all_prompts(history) == ["two?", "new?"]

    copy.compressed_path.write_bytes(whole)
    assert history.ingest().problems == []
    assert b"one?" not in history.copy(history.source())


@pytest.mark.parametrize("grown", [False, True])
def test_an_interrupted_ingest_leaves_no_erased_line(
    history: History, monkeypatch: pytest.MonkeyPatch, grown: bool
) -> None:
    """If an ingest copies erased lines and is interrupted, the next run erases them, even if the file is gone."""
    history.write(talk("one"), at=1)
    path = history.path(FORK)
    if grown:
        history.write(talk("begun", session=FORK), FORK, at=2)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    history.write(talk(*["begun"] * grown, "one", "more", session=FORK), FORK, at=3)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CopyEraser, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            history.ingest()
    assert b"one?" in copied_bytes(history)
    path.unlink()
    history.ingest()

    assert b"one?" not in copied_bytes(history)
    assert (b"begun?" in copied_bytes(history)) is grown
    assert history.store.tombstones.scheduled_erasures() == {}


def test_verification_distinguishes_erased_lines_from_damage(history: History) -> None:
    """Verification accepts copies without their erased lines, and detects damage in any copy."""
    history.write(talk("one"), at=1)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=2)
    history.write(talk("other", session=OTHER), OTHER, at=3)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    inspection = CopyVerifier(history.store, history.raw)
    assert list(inspection.check_all()) == []
    copy = Copy(history.raw.root, history.source(OTHER).archived).path
    copy.write_bytes(copy.read_bytes().replace(b"other?", b"otter?"))

    [fault] = inspection.check_all()

    assert fault.source.archived == history.source(OTHER).archived
    assert inspection.repair(fault.source)
    fork_copy = Copy(history.raw.root, history.source(FORK).archived).path
    fork_copy.write_bytes(fork_copy.read_bytes().replace(b"apart?", b"apert?"))
    assert not inspection.repair(history.source(FORK))
    assert b"one?" not in copied_bytes(history)


def test_the_last_file_of_a_copy_is_kept(history: History) -> None:
    """If only a damaged file of a copy is left, the erasure keeps it, reports it and stays unfinished."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")
    history.write(talk("new", session=FORK), FORK, at=5)

    reasons = {problem.path: problem.reason for problem in history.ingest().problems}
    assert "other files of this copy" in reasons[copy.damaged_files()[0]]
    assert len(copy.damaged_files()) == 1
    assert history.store.tombstones.scheduled_erasures() == {copy.archived: False}


@pytest.mark.parametrize("lost", [slice(None, -10), slice(None, -200)])
def test_lines_are_erased_from_a_compressed_copy_without_its_table(history: History, lost: slice) -> None:
    """If the table of a compressed copy is lost, its lines are erased, or the erasure is reported as unfinished."""
    path = history.write(talk("one", "two"))
    history.ingest()
    copy = record_erasure(history, exchange(history, "one?"))
    path.unlink()
    history.write(talk("new", session=FORK), FORK, at=5)
    copy.compressed_path.write_bytes(copy.compressed_path.read_bytes()[lost])

    problems = history.ingest().problems

    if history.store.tombstones.scheduled_erasures():
        assert problems
    else:
        assert b"one?" not in copied_bytes(history)
        assert b"two?" in copied_bytes(history)
    assert bool(problems) == (lost.stop == -200)


def test_a_copy_without_erased_lines_is_not_rewritten(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingesting a file without erased lines does not rewrite its copy, even if the archive has erasures."""
    history.write(talk("one"), at=1)
    history.ingest()
    forget(history, ORIGINAL, erase=True)
    cleaned: list[Copy] = []

    def record(_: CopyEraser, copy: Copy, __: object) -> None:
        cleaned.append(copy)

    monkeypatch.setattr(CopyEraser, "_erase_lines", record)
    history.write(talk("other", session=OTHER), OTHER, at=3)

    assert history.ingest().problems == []

    assert cleaned == []
    assert history.store.tombstones.scheduled_erasures() == {}


def test_lines_are_erased_again_from_a_replaced_copy(history: History) -> None:
    """If a damaged copy is copied again from the agent's file, its erased lines are erased again."""
    history.write(talk("one", "two"), at=1)
    history.ingest()
    forget(history, exchange(history, "one?"), erase=True)
    CopyCompressor(history.store, history.raw).run()
    copy = Copy(history.raw.root, history.source().archived)
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.append(talk("three"), at=9)
    assert history.ingest().problems == []

    assert b"one?" not in history.copy(history.source())
    assert sorted(all_prompts(history)) == ["three?", "two?"]
