"""Does a look find everything that changed, and nothing else?"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import Transcript, near
from palaver.archiver.watch.transcript_scan import TranscriptScan

from ..formats.claude_code.claude_lines import written
from ..history import talk

NUMBER = "11111111-0000-4000-8000-00000000000"


@pytest.fixture
def projects(home: Path) -> Path:
    """Where Claude Code keeps this user's transcripts."""
    folder = home / ".claude" / "projects"
    folder.mkdir(parents=True)
    return folder


def session(projects: Path, number: int = 1, folder: str = "shop") -> Path:
    """A transcript of one exchange."""
    path = projects / folder / f"{NUMBER}{number}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written(talk(f"word{number}")))
    return path


def looked(scan: TranscriptScan) -> list[Path]:
    """What a look finds, which is kept."""
    seen = scan.all()
    scan.keep(seen)
    return [each.transcript.path for each in seen]


def test_only_what_changed(projects: Path) -> None:
    """A transcript is found once as it is, and again when it grew, shrank, was touched or replaced."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()

    assert looked(scan) == [one, two]
    assert looked(scan) == []
    with one.open("ab") as file:
        file.write(b"more")
    assert looked(scan) == [one]
    os.truncate(two, 10)
    assert looked(scan) == [two]
    os.utime(one, ns=(0, 0))
    shutil.copy(two, two.with_suffix(".new"))
    two.with_suffix(".new").replace(two)
    assert looked(scan) == [one, two]


def test_what_is_not_kept_is_found_again(projects: Path) -> None:
    """What could not be taken up counts as new at the next look, and so does what is forgotten."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()
    seen = scan.all()
    scan.keep(seen[1:])

    assert looked(scan) == [one]
    scan.forget([two])
    assert looked(scan) == [two]
    scan.forget()
    assert looked(scan) == [one, two]


def test_a_file_that_comes_back_is_new(projects: Path) -> None:
    """What was deleted is not remembered."""
    one = session(projects)
    scan = TranscriptScan()
    looked(scan)
    kept = one.with_suffix(".kept")
    one.rename(kept)
    assert looked(scan) == []

    kept.rename(one)

    assert looked(scan) == [one]


def test_a_hint_is_followed(projects: Path) -> None:
    """Files that are known are looked at alone; for an unknown one everything has to be looked at."""
    one, two = session(projects, 1), session(projects, 2)
    scan = TranscriptScan()
    looked(scan)
    os.utime(one, ns=(0, 0))
    os.utime(two, ns=(0, 0))

    seen, explained = scan.some([one])
    assert ([each.transcript.path for each in seen], explained) == ([one], True)
    assert scan.some([one, projects / "other"])[1] is False


def test_each_folder_is_looked_into_once(projects: Path) -> None:
    """However many new files are heard of together, their folder is listed once."""
    looked_into = list[Path]()

    def counted(folder: Path) -> Iterator[Transcript]:
        looked_into.append(folder)
        return near(folder)

    scan = TranscriptScan(near=counted)
    looked(scan)
    new = [session(projects, number) for number in range(9)]

    seen, explained = scan.some(new)

    assert ({each.transcript.path for each in seen}, explained) == ({*new}, True)
    assert looked_into == [projects / "shop"]


def test_many_new_folders_are_left_to_a_whole_look(projects: Path) -> None:
    """Where files are new in many folders, none is looked into: a whole look is cheaper, and finds them all."""

    def never(folder: Path) -> Iterator[Transcript]:
        raise AssertionError(folder)

    scan = TranscriptScan(near=never)
    known = session(projects)
    looked(scan)
    os.utime(known, ns=(0, 0))
    new = [session(projects, 2, folder=f"shop{number}") for number in range(100)]

    seen, explained = scan.some([known, *new])

    assert ([each.transcript.path for each in seen], explained) == ([known], False)
    assert set(looked(scan)) == {known, *new}


def test_folders(projects: Path, tmp_path: Path) -> None:
    """The agents' folders are watched, and those of linked files outside; a folder made again is another."""
    session(projects)
    away = session(tmp_path / "away", 2)
    (projects / "linked.jsonl").symlink_to(away)
    scan = TranscriptScan()
    scan.all()

    assert {folder.path for folder in scan.folders()} == {projects, away.parent}
    before = scan.folders()
    projects.rename(tmp_path / "gone")
    projects.mkdir()
    assert {folder.path for folder in scan.folders()} == {projects, away.parent}
    assert scan.folders() != before


def test_a_name_that_is_no_text(projects: Path) -> None:
    """A name in another encoding is found like any other."""
    path = Path(os.fsdecode(os.fsencode(projects / "caf") + b"\xe9")) / f"{NUMBER}1.jsonl"
    path.parent.mkdir()
    path.write_bytes(written(talk("word")))

    assert looked(TranscriptScan()) == [path]
