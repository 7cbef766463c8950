"""Lines are erased even if copies are damaged or missing."""

from collections.abc import Callable

import pytest

from palaver.archiver.copies.raw_copy import Copy
from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.deletion import deletions
from palaver.archiver.deletion.deletions import CopyEraser, Deletions
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import CopyDamaged

from ..history import FORK, ORIGINAL, History, talk
from .steps import OTHER, all_prompts, copied_bytes, exchange, forget, plan

WORDS = [f"word{number:05}" for number in range(12_000)]


def damage(history: History) -> Copy:
    """Compress the copy, damage its first frame, and delete the agent's file. Return the copy."""
    CopyCompressor(history.store, history.raw).run()
    copy = Copy(history.raw.root, history.source().archived)
    whole = copy.compressed_path.read_bytes()
    copy.compressed_path.write_bytes(whole[:40] + bytes([whole[40] ^ 0xFF]) + whole[41:])
    history.path().unlink()
    return copy


def set_damaged_file_aside(history: History) -> Copy:
    """Damage the copy, and rename its file as a repair renames damaged files."""
    copy = damage(history)
    copy.compressed_path.rename(f"{copy.compressed_path}.damaged")
    return copy


def remove(history: History) -> Copy:
    """Delete all files of the copy, and the agent's file."""
    copy = damage(history)
    copy.compressed_path.unlink()
    return copy


def set_uncompressed_file_aside(history: History) -> Copy:
    """Rename the uncompressed copy as a repair renames damaged files, and delete the agent's file."""
    copy = Copy(history.raw.root, history.source().archived)
    copy.path.rename(f"{copy.path}.damaged")
    history.path().unlink()
    return copy


LOSSES = [damage, set_damaged_file_aside, remove, set_uncompressed_file_aside]


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("target", [ORIGINAL, "shop"])
def test_a_session_with_a_lost_copy_can_be_erased(
    history: History, lose: Callable[[History], Copy], target: str
) -> None:
    """A session with a damaged or lost copy can be erased, and stays erased if its file is restored."""
    path = history.write(talk("one", "two"))
    written = path.read_bytes()
    history.ingest()
    history.write(talk("other", session=OTHER, project="/home/demo/elsewhere"), OTHER, at=3)
    history.ingest()
    copy = lose(history)

    wanted = (
        DeletionRequest(projects=(target,), erase=True) if target == "shop" else DeletionRequest((target,), erase=True)
    )
    Deletions(history.store, history.raw).delete(plan(history, wanted))
    assert not history.ingest().problems

    assert all_prompts(history) == ["other?"]
    assert copy.damaged_files() == []
    assert not any(ORIGINAL in name for name in history.archive_files())
    history.write(written, at=9)
    history.ingest()
    assert all_prompts(history) == ["other?"]
    assert b"one?" not in copied_bytes(history)


@pytest.mark.parametrize("lose", LOSSES)
def test_a_lost_copy_does_not_block_other_deletions(history: History, lose: Callable[[History], Copy]) -> None:
    """A damaged or lost copy does not block other deletions. The preview lists the copy if it cannot be searched."""
    history.write(talk("one"))
    history.write(talk("other", session=OTHER), OTHER, at=3)
    history.ingest()
    copy = lose(history)

    for wanted in (
        DeletionRequest((OTHER,)),
        DeletionRequest((OTHER,), erase=True),
        DeletionRequest(mentions="other", erase=True),
    ):
        planned = plan(history, wanted)
        assert planned.unreadable == (() if lose is remove and not wanted.mentions else (copy.archived,))
        assert [source.path for source in planned.sources] == [history.path(OTHER)]
    forget(history, OTHER, erase=True)
    assert b"other?" not in copied_bytes(history)


@pytest.mark.parametrize("lose", LOSSES)
def test_one_exchange_cannot_be_erased_from_a_lost_copy(history: History, lose: Callable[[History], Copy]) -> None:
    """Erasing one exchange from a damaged or lost copy is refused with a hint, and nothing changes."""
    history.write(talk("one", "two"))
    history.ingest()
    lose(history)

    with pytest.raises(CopyDamaged) as refused:
        plan(history, DeletionRequest((exchange(history, "one?"),), erase=True))

    assert refused.value.hint
    assert sorted(all_prompts(history)) == ["one?", "two?"]


def test_readable_lines_of_a_damaged_copy_are_erased_from_forks(history: History) -> None:
    """Lines without IDs that are readable in a damaged copy are also erased from forks."""
    lines = talk(*WORDS)
    for place, line in enumerate(lines):
        line.pop("uuid")
        line.pop("parentUuid", None)
        line["timestamp"] = f"2026-03-04T10:{place // 600 % 60:02}:{place // 10 % 60:02}.{place % 10}{place % 997:03}Z"
    history.write(lines, at=1)
    history.ingest()
    damage(history)
    history.write([*lines[-2:], *talk("apart", session=FORK)], FORK, at=9)
    history.ingest()

    forget(history, ORIGINAL, erase=True)

    assert all_prompts(history) == ["apart?"]
    assert f"{WORDS[-1]}?".encode() not in copied_bytes(history)


def test_an_erased_copy_that_cannot_be_removed_is_reported(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an erased copy cannot be removed, the problem contains its name and the reason. The next run removes it."""
    history.write(talk("one"))
    history.ingest()
    number = forget(history, ORIGINAL)
    Deletions(history.store, history.raw).expire(number)

    def fails(copy: Copy) -> None:
        raise PermissionError(13, f"Permission denied: {copy.path}")

    with monkeypatch.context() as patch:
        patch.setattr(deletions, "remove", fails)
        [problem] = CopyEraser(history.store, history.raw).finish()
    assert problem.path.name == f"{ORIGINAL}.jsonl"
    assert "denied" in problem.reason.lower()
    assert not history.ingest().problems
    assert history.store.sources.all() == []
    assert b"one?" not in copied_bytes(history)
