"""An export writes the agent's original bytes, or reports the reason for not writing them."""

import hashlib
import io
import os
from pathlib import Path

import pytest

from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX
from palaver.archiver.copies.verification import CopyCompressor
from palaver.core.errors import CopyDamaged, InvalidInput

from ..history import FORK, ORIGINAL, History, talk


@pytest.fixture
def exporter(history: History) -> Exporter:
    return Exporter(history.store, history.raw)


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("compressed", [False, True])
def test_files_keep_their_paths_bytes_and_times(
    history: History, exporter: Exporter, tmp_path: Path, compressed: bool
) -> None:
    """An export restores paths, bytes and times of the agent's files, from both storage formats."""
    history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK, project="other")
    history.ingest()
    if compressed:
        assert CopyCompressor(history.store, history.raw).run().compressed == 2
    before, times = tree(history.folder), {path.name: path.stat().st_mtime_ns for path in history.folder.rglob("*")}
    for path in history.folder.rglob("*.jsonl"):
        path.unlink()

    exported = exporter.export(history.store.sources.all(), tmp_path / "out")
    assert tree(tmp_path / "out" / "claude-code") == before
    assert (exported.present, exported.problems) == (0, [])
    for file in exported.files:
        assert file.sha256 == hashlib.sha256(file.path.read_bytes()).hexdigest()
        assert file.size == file.path.stat().st_size
        assert file.path.stat().st_mtime_ns == times[file.path.name]


def test_a_second_export_changes_nothing(history: History, exporter: Exporter, tmp_path: Path) -> None:
    """An export compares existing files. A file with other content is reported and not changed."""
    history.write(talk("one"))
    other = history.write(talk("two", session=FORK), FORK)
    history.ingest()
    sources, out = history.store.sources.all(), tmp_path / "out"
    exporter.export(sources, out)
    changed = out / "claude-code" / "shop" / other.name
    changed.write_bytes(b"mine")

    again = exporter.export(sources, out)
    assert again.present == 1
    assert [str(problem) for problem in again.problems] == [
        f"{changed}: a different file exists at this path and was not changed"
    ]
    assert changed.read_bytes() == b"mine"
    assert len(tree(out)) == 2


def test_earlier_versions_are_exported_separately(history: History, exporter: Exporter, tmp_path: Path) -> None:
    """The earlier content of a rewritten file is exported to a separate folder."""
    first = history.write(talk("before")).read_bytes()
    history.ingest()
    second = history.write(talk("after"), at=3).read_bytes()
    history.ingest()

    exporter.export(history.store.sources.all(), tmp_path / "out")
    assert tree(tmp_path / "out") == {
        f"claude-code/shop/{ORIGINAL}.jsonl": second,
        f"replaced/claude-code/shop/{ORIGINAL}.jsonl": first,
    }


def test_a_damaged_copy_is_not_exported(history: History, exporter: Exporter, tmp_path: Path) -> None:
    """A damaged copy is reported and leaves no file, and the other copies are exported."""
    history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK)
    history.ingest()
    CopyCompressor(history.store, history.raw).run()
    copy = history.home.archive / (history.source().archived + COMPRESSED_SUFFIX)
    data = bytearray(copy.read_bytes())
    data[30] ^= 1
    copy.write_bytes(data)

    exported = exporter.export(history.store.sources.all(), tmp_path / "out")
    assert [type(problem) for problem in exported.problems] == [CopyDamaged]
    assert list(tree(tmp_path / "out")) == [f"claude-code/shop/{FORK}.jsonl"]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_an_uncompressed_copy_is_verified(history: History, exporter: Exporter, damage: str) -> None:
    """A truncated or changed copy is not exported."""
    history.write(talk("one"))
    history.ingest()
    copy = history.home.archive / history.source().archived
    copy.write_bytes(copy.read_bytes()[:-1] if damage == "cut" else b"?" + copy.read_bytes()[1:])

    with pytest.raises(CopyDamaged, match=r"differ from the archived content|1 of"):
        exporter.write(history.source(), io.BytesIO())


def test_a_file_is_found_by_all_its_names(history: History, exporter: Exporter) -> None:
    """The archive path, the agent's path and the session ID find a file in both storage formats."""
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
        f"claude-code/{ORIGINAL}",
    ):
        assert [found.archived for found in exporter.find(name)] == [source.archived], name


def test_a_session_includes_files_of_its_sub_agents(history: History, exporter: Exporter) -> None:
    """Exporting a session includes the files of its sub-agents."""
    history.write(talk("one"))
    helper = history.folder / "shop" / ORIGINAL / "subagents" / "agent-a1.jsonl"
    helper.parent.mkdir(parents=True)
    history.write(talk("help"), "help").replace(helper)
    history.ingest()

    for name in (ORIGINAL, f"claude-code/{ORIGINAL}"):
        assert {Path(found.archived).name for found in exporter.find(name)} == {f"{ORIGINAL}.jsonl", "agent-a1.jsonl"}


@pytest.mark.parametrize(
    "name", ["", "nothing", "../projects", "/etc/passwd", "\0", "a" * 5000, "%", "claude-code/shop"]
)
def test_an_unknown_name_is_an_error(history: History, exporter: Exporter, name: str) -> None:
    """The error lists the valid kinds of names."""
    history.write(talk("one"))
    history.ingest()

    with pytest.raises(InvalidInput) as refused:
        exporter.find(name)
    assert "path" in refused.value.hint


def test_a_missing_copy_is_reported(history: History, exporter: Exporter, tmp_path: Path) -> None:
    """The problem refers to the copy instead of the agent's file, and includes a remedy."""
    history.write(talk("one"))
    history.ingest()
    [source] = history.store.sources.all()
    (history.raw.root / source.archived).unlink()

    [problem] = exporter.export(exporter.find(source.archived), tmp_path / "out").problems

    assert str(problem) == f"{history.raw.root / source.archived}: the raw copy is missing from the archive"
    assert "palaver fsck --repair" in problem.hint


def test_a_folder_that_cannot_be_created_is_one_error(history: History, exporter: Exporter, tmp_path: Path) -> None:
    """A file at the path of the folder causes one usage error instead of a problem for each session."""
    history.write(talk("one"))
    history.ingest()
    taken = tmp_path / "taken"
    taken.write_text("mine")

    for place in (taken, taken / "below"):
        with pytest.raises(InvalidInput, match="Cannot create"):
            exporter.export(history.store.sources.all(), place)
    assert taken.read_text() == "mine"


def test_an_export_into_the_archive_is_refused(history: History, exporter: Exporter) -> None:
    """An export never writes into the folder of the copies."""
    with pytest.raises(InvalidInput, match="inside the archive"):
        exporter.export([], history.home.archive / "out")
