"""Giving back: what comes out of the archive is what the agent wrote, or it is said that it is not."""

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.compressor import CopyCompressor
from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX
from palaver.core.errors import CopyDamaged, InvalidInput

from ..history import FORK, ORIGINAL, History, talk


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as history:
        yield history


@pytest.fixture
def originals(history: History) -> Exporter:
    return Exporter(history.store, history.raw)


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("sealed", [False, True])
def test_everything_comes_back_as_it_lay(history: History, originals: Exporter, tmp_path: Path, sealed: bool) -> None:
    """Below the agent's name stands the agent's own folder again, with the bytes and times it had."""
    history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK, project="other")
    history.ingest()
    if sealed:
        assert CopyCompressor(history.store, history.raw).run().compressed == 2
    before, times = tree(history.folder), {path.name: path.stat().st_mtime_ns for path in history.folder.rglob("*")}
    for path in history.folder.rglob("*.jsonl"):
        path.unlink()

    exported = originals.export(history.store.sources.all(), tmp_path / "out")
    assert tree(tmp_path / "out" / "claude-code") == before
    assert (exported.present, exported.problems) == (0, [])
    for file in exported.files:
        assert file.sha256 == hashlib.sha256(file.path.read_bytes()).hexdigest()
        assert file.size == file.path.stat().st_size
        assert file.path.stat().st_mtime_ns == times[file.path.name]


def test_a_second_export_changes_nothing(history: History, originals: Exporter, tmp_path: Path) -> None:
    """What is there already is compared; another file of that name is left alone and told of."""
    history.write(talk("one"))
    other = history.write(talk("two", session=FORK), FORK)
    history.ingest()
    sources, out = history.store.sources.all(), tmp_path / "out"
    originals.export(sources, out)
    changed = out / "claude-code" / "shop" / other.name
    changed.write_bytes(b"mine")

    again = originals.export(sources, out)
    assert again.present == 1
    assert [str(problem) for problem in again.problems] == [f"{changed}: another file exists there, and was left alone"]
    assert changed.read_bytes() == b"mine"
    assert len(tree(out)) == 2


def test_what_a_file_said_before_stands_apart(history: History, originals: Exporter, tmp_path: Path) -> None:
    """An agent finds the session as it is; what it was before it was rewritten is given back too."""
    first = history.write(talk("before")).read_bytes()
    history.ingest()
    second = history.write(talk("after"), at=3).read_bytes()
    history.ingest()

    originals.export(history.store.sources.all(), tmp_path / "out")
    assert tree(tmp_path / "out") == {
        f"claude-code/shop/{ORIGINAL}.jsonl": second,
        f"replaced/claude-code/shop/{ORIGINAL}.jsonl": first,
    }


def test_a_damaged_copy_is_not_given_back(history: History, originals: Exporter, tmp_path: Path) -> None:
    """It is named, leaves nothing behind, and stops none of the others."""
    history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK)
    history.ingest()
    CopyCompressor(history.store, history.raw).run()
    copy = history.home.archive / (history.source().archived + COMPRESSED_SUFFIX)
    data = bytearray(copy.read_bytes())
    data[30] ^= 1
    copy.write_bytes(data)

    exported = originals.export(history.store.sources.all(), tmp_path / "out")
    assert [type(problem) for problem in exported.problems] == [CopyDamaged]
    assert list(tree(tmp_path / "out")) == [f"claude-code/shop/{FORK}.jsonl"]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_plain_copy_is_compared_with_what_is_known_of_it(history: History, originals: Exporter, damage: str) -> None:
    """A copy that lost its end, or whose beginning is another, is not what was archived."""
    history.write(talk("one"))
    history.ingest()
    copy = history.home.archive / history.source().archived
    copy.write_bytes(copy.read_bytes()[:-1] if damage == "cut" else b"?" + copy.read_bytes()[1:])

    with pytest.raises(CopyDamaged, match=r"not what was archived|1 of"):
        originals.write(history.source(), io.BytesIO())


def test_a_file_is_found_by_all_its_names(history: History, originals: Exporter) -> None:
    """The archive's path, whole or not, plain or sealed, the agent's path, and the session's id."""
    path = history.write(talk("one"))
    history.ingest()
    source = history.source()
    CopyCompressor(history.store, history.raw).run()

    for name in (
        source.archived,
        source.archived + COMPRESSED_SUFFIX,
        str(history.home.archive / source.archived),
        str(path),
        os.path.relpath(path),
        ORIGINAL,
    ):
        assert [found.archived for found in originals.find(name)] == [source.archived], name


def test_a_session_is_all_its_files(history: History, originals: Exporter) -> None:
    """What its sub-agents said belongs to it."""
    history.write(talk("one"))
    helper = history.folder / "shop" / ORIGINAL / "subagents" / "agent-a1.jsonl"
    helper.parent.mkdir(parents=True)
    history.write(talk("help"), "help").replace(helper)
    history.ingest()

    assert {Path(found.archived).name for found in originals.find(ORIGINAL)} == {f"{ORIGINAL}.jsonl", "agent-a1.jsonl"}


@pytest.mark.parametrize(
    "name", ["", "nothing", "../projects", "/etc/passwd", "\0", "a" * 5000, "%", "claude-code/shop"]
)
def test_what_is_not_archived_is_said_so(history: History, originals: Exporter, name: str) -> None:
    """Any other name gets one answer, which says what names there are."""
    history.write(talk("one"))
    history.ingest()

    with pytest.raises(InvalidInput) as refused:
        originals.find(name)
    assert "path" in refused.value.hint


def test_a_copy_that_is_gone_is_told_as_such(history: History, originals: Exporter, tmp_path: Path) -> None:
    """Neither is the agent's file said to be gone, nor is the way back kept quiet."""
    history.write(talk("one"))
    history.ingest()
    [source] = history.store.sources.all()
    (history.raw.root / source.archived).unlink()

    [problem] = originals.export(originals.find(source.archived), tmp_path / "out").problems

    assert str(problem) == f"{history.raw.root / source.archived}: the copy is gone from the archive"
    assert "palaver fsck --repair" in problem.hint


def test_a_place_that_cannot_be_made_is_told_once(history: History, originals: Exporter, tmp_path: Path) -> None:
    """A file where the folder should be is the caller's to correct, and not a problem of each session."""
    history.write(talk("one"))
    history.ingest()
    taken = tmp_path / "taken"
    taken.write_text("mine")

    for place in (taken, taken / "below"):
        with pytest.raises(InvalidInput, match="Cannot create"):
            originals.export(history.store.sources.all(), place)
    assert taken.read_text() == "mine"


def test_the_archive_is_no_place_to_export_to(history: History, originals: Exporter) -> None:
    """Nothing is written among the copies."""
    with pytest.raises(InvalidInput, match="inside the archive"):
        originals.export([], history.home.archive / "out")
