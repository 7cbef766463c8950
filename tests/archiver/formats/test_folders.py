"""The walk through an agent's folders, and the names of its files in the archive."""

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats.folders import archive_name, files


def is_transcript(name: str) -> bool:
    return name.endswith(".jsonl")


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_wanted_files_come_sorted_from_every_depth(tmp_path: Path) -> None:
    """Files of other names and folders that were named are passed over."""
    make(tmp_path, "b/2.jsonl", "b/1.jsonl", "a/x/3.jsonl", "a/notes.md", "files/4.jsonl")

    found = files(tmp_path, is_transcript, without={"files"})

    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a/x/3.jsonl", "b/1.jsonl", "b/2.jsonl"]


def test_a_file_given_as_root_is_the_only_one(tmp_path: Path) -> None:
    """Whatever its name."""
    make(tmp_path, "a.txt", "b.jsonl")

    assert list(files(tmp_path / "a.txt", is_transcript)) == [tmp_path / "a.txt"]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    """No folder is entered twice."""
    make(tmp_path, "a/1.jsonl")
    (tmp_path / "a" / "again").symlink_to(tmp_path)

    assert [path.name for path in files(tmp_path, is_transcript)] == ["1.jsonl"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_closed_folder_is_passed_over_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The others are still found."""
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
    """At least a folder deep, with everything made harmless that a file name may not hold."""
    assert archive_name(Path(path), Path("/r")) == name


@given(st.lists(st.text(min_size=1).filter(lambda part: "/" not in part and "\0" not in part), min_size=1))
def test_no_name_leads_out_of_the_archive(parts: list[str]) -> None:
    """No part of a name is a step upwards, or empty."""
    name = archive_name(Path("/r").joinpath(*parts), Path("/r"))

    assert not {"", ".", ".."} & set(name.split("/"))
