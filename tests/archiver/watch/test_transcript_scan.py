"""A scan finds every changed transcript and no other."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import Transcript, within
from palaver.archiver.watch import file_events
from palaver.archiver.watch.file_events import TranscriptScan

from ..formats.claude_code.claude_lines import jsonl
from ..history import talk

NUMBER = "11111111-0000-4000-8000-00000000000"


@pytest.fixture
def projects(home: Path) -> Path:
    """Return Claude Code's transcript folder for this user."""
    folder = home / ".claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def session(projects: Path, number: int = 1, folder: str = "shop") -> Path:
    """Write a transcript of one exchange."""
    path = projects / folder / f"{NUMBER}{number}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(talk(f"word{number}")))
    return path


def changed_paths(scan: TranscriptScan) -> list[Path]:
    """Return the paths of changed transcripts, and mark the transcripts as ingested."""
    seen = scan.all_changed()
    scan.mark_ingested(seen)
    return [each.transcript.path for each in seen]


def test_only_changed_transcripts_are_found(projects: Path) -> None:
    """A transcript is found once, and again after it grew, shrank, was touched or was replaced."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()

    assert changed_paths(scan) == [one, two]
    assert changed_paths(scan) == []
    with one.open("ab") as file:
        file.write(b"more")
    assert changed_paths(scan) == [one]
    os.truncate(two, 10)
    assert changed_paths(scan) == [two]
    os.utime(one, ns=(0, 0))
    shutil.copy(two, two.with_suffix(".new"))
    two.with_suffix(".new").replace(two)
    assert changed_paths(scan) == [one, two]


def test_transcripts_that_were_not_ingested_are_found_again(projects: Path) -> None:
    """Transcripts that were not ingested, or were marked as changed, are found by the next scan."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()
    seen = scan.all_changed()
    scan.mark_ingested(seen[1:])

    assert changed_paths(scan) == [one]
    scan.mark_changed([two])
    assert changed_paths(scan) == [two]
    scan.mark_changed()
    assert changed_paths(scan) == [one, two]


def test_a_file_that_comes_back_is_new(projects: Path) -> None:
    """A deleted transcript that reappears counts as new."""
    one = session(projects)
    scan = TranscriptScan()
    changed_paths(scan)
    kept = one.with_suffix(".kept")
    one.rename(kept)
    assert changed_paths(scan) == []

    kept.rename(one)

    assert changed_paths(scan) == [one]


def test_a_hint_is_followed(projects: Path) -> None:
    """Changed paths of known files are checked alone. Paths of unknown files require a full scan."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()
    changed_paths(scan)
    os.utime(one, ns=(0, 0))
    os.utime(two, ns=(0, 0))

    seen, complete = scan.changed_among([one])
    assert ([each.transcript.path for each in seen], complete) == ([one], True)
    assert scan.changed_among([one, projects / "other"])[1] is False


def test_each_folder_is_listed_once(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is listed once for any number of new files in it."""
    looked_into = list[Path]()

    def counted(folder: Path) -> Iterator[Transcript]:
        looked_into.append(folder)
        return within(folder)

    monkeypatch.setattr(file_events, "within", counted)
    scan = TranscriptScan()
    changed_paths(scan)
    new = [session(projects, number) for number in range(9)]

    seen, complete = scan.changed_among(new)

    assert ({each.transcript.path for each in seen}, complete) == ({*new}, True)
    assert looked_into == [projects / "shop"]


def test_many_new_folders_require_a_full_scan(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If many folders have new files, a full scan replaces separate searches."""

    def never(folder: Path) -> Iterator[Transcript]:
        raise AssertionError(folder)

    monkeypatch.setattr(file_events, "within", never)
    scan = TranscriptScan()
    known = session(projects)
    changed_paths(scan)
    os.utime(known, ns=(0, 0))
    new = [session(projects, 2, folder=f"shop{number}") for number in range(100)]

    seen, complete = scan.changed_among([known, *new])

    assert ([each.transcript.path for each in seen], complete) == ([known], False)
    assert set(changed_paths(scan)) == {known, *new}


def test_folders(projects: Path, tmp_path: Path) -> None:
    """Agents' folders and the folders of linked files are watched. A recreated folder is a different folder."""
    session(projects)
    away = session(tmp_path / "away", 2)
    (projects / "linked.jsonl").symlink_to(away)
    scan = TranscriptScan()
    scan.all_changed()

    assert {folder.path for folder in scan.folders()} == {projects, away.parent}
    before = scan.folders()
    projects.rename(tmp_path / "gone")
    projects.mkdir()
    assert {folder.path for folder in scan.folders()} == {projects, away.parent}
    assert scan.folders() != before


def test_a_name_in_another_encoding_is_found(projects: Path) -> None:
    """A file name in another encoding is found like any other name."""
    path = Path(os.fsdecode(os.fsencode(projects / "caf") + b"\xe9")) / f"{NUMBER}1.jsonl"
    path.parent.mkdir()
    path.write_bytes(jsonl(talk("word")))

    assert changed_paths(TranscriptScan()) == [path]
