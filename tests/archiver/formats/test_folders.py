"""Transcripts are found in an agent's folders, and each gets a name in the archive."""

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats.record_reader import archive_name, files
from palaver.core.home import MARKERS
from palaver.core.reports import Unsearched


def is_transcript(name: str) -> bool:
    return name.endswith(".jsonl")


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_wanted_files_come_sorted_from_every_depth(tmp_path: Path) -> None:
    """Other files and excluded folders are skipped."""
    make(tmp_path, "b/2.jsonl", "b/1.jsonl", "a/x/3.jsonl", "a/notes.md", "files/4.jsonl")

    found = files(tmp_path, is_transcript, without={"files"})

    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a/x/3.jsonl", "b/1.jsonl", "b/2.jsonl"]


def test_a_root_that_is_a_file_is_the_only_result(tmp_path: Path) -> None:
    """A root that is a file is the only result, whatever its name."""
    make(tmp_path, "a.txt", "b.jsonl")

    assert list(files(tmp_path / "a.txt", is_transcript)) == [tmp_path / "a.txt"]


def test_directory_links_are_not_followed(tmp_path: Path) -> None:
    """Links that leave the root are collected, and loops of links are ignored."""
    make(tmp_path, "root/a/1.jsonl", "root/b/2.jsonl", "outside/3.jsonl")
    root = tmp_path / "root"
    for name, target in {
        "a/up": "..",
        "inner": "b",
        "one": "two",
        "two": "one",
        "out": "../outside",
        "all": "/",
    }.items():
        (root / name).symlink_to(target)
    skipped = Unsearched()

    assert [path.relative_to(root).as_posix() for path in files(root, is_transcript, skipped=skipped)] == [
        "a/1.jsonl",
        "b/2.jsonl",
    ]
    assert skipped == Unsearched(links={root / "out", root / "all"})


@pytest.mark.parametrize("marker", sorted(MARKERS))
def test_a_home_is_never_searched(tmp_path: Path, marker: str) -> None:
    """Folders with a marker file are homes. Files linked into a home's archive are not found either."""
    make(tmp_path, "a/1.jsonl", f"a/any name/{marker}", "a/any name/archive/claude-code/p/2.jsonl")
    (tmp_path / "a" / "copy.jsonl").symlink_to(
        tmp_path / "a" / "any name" / "archive" / "claude-code" / "p" / "2.jsonl"
    )
    home = tmp_path / "a" / "any name"

    for root in (tmp_path, home, home / "archive", home / "archive" / "claude-code" / "p" / "2.jsonl"):
        skipped = Unsearched()
        found = [path.name for path in files(root, is_transcript, skipped=skipped)]
        assert (found, skipped) == (["1.jsonl"] if root == tmp_path else [], Unsearched(homes={home}))


def test_a_root_below_the_folder_of_a_home_is_searched(tmp_path: Path) -> None:
    """If PALAVER_HOME is the user's home folder, only its archive is skipped."""
    make(tmp_path, "palaver.db", "archive/1.jsonl", ".claude/projects/p/2.jsonl")

    assert [path.name for path in files(tmp_path / ".claude" / "projects", is_transcript)] == ["2.jsonl"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_folder_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable folder is skipped with a warning, and the other folders are searched."""
    make(tmp_path, "a/1.jsonl", "b/2.jsonl")
    (tmp_path / "a").chmod(0)
    with caplog.at_level(logging.WARNING):
        found = [path.name for path in files(tmp_path, is_transcript)]
    (tmp_path / "a").chmod(0o700)

    assert found == ["2.jsonl"]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/r/2026/03/a.jsonl", "2026/03/a.jsonl"),
        ("/r/a.jsonl", "r/a.jsonl"),
        ("/elsewhere/a.jsonl", "elsewhere/a.jsonl"),
        ("/r/a:b/c%d.jsonl", "a%3Ab/c%25d.jsonl"),
    ],
)
def test_a_name_in_the_archive_is_the_path_below_its_root(path: str, name: str) -> None:
    """An archive name has at least one folder and is safe for any file system."""
    assert archive_name(Path(path), Path("/r")) == name


@given(st.lists(st.text(min_size=1).filter(lambda part: "/" not in part and "\0" not in part), min_size=1))
def test_no_name_leads_out_of_the_archive(parts: list[str]) -> None:
    """No component of an archive name is empty or refers to a parent folder."""
    name = archive_name(Path("/r").joinpath(*parts), Path("/r"))

    assert not {"", ".", ".."} & set(name.split("/"))
