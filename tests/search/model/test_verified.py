"""Is what was read and found whole known again, and nothing else?"""

import os
from pathlib import Path

import pytest

from palaver.search.model import verified
from palaver.search.model.verified import Identity, Verified


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that nobody touched for long."""
    path = tmp_path / "file"
    path.write_bytes(b"whole")
    os.utime(path, (1_000, 1_000))
    return path


def test_what_was_found_whole_is_known_again(file: Path, tmp_path: Path) -> None:
    """A later look knows the file by its name, as long as it is the one that was looked at."""
    found = Identity.of(file)
    Verified(tmp_path / "record").keep({"name": found})

    later = Verified(tmp_path / "record")

    assert later.has("name", found)
    assert not later.has("another", found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "record"]


@pytest.mark.parametrize("change", ["written", "longer", "replaced"])
def test_a_changed_file_is_noticed(file: Path, tmp_path: Path, change: str) -> None:
    """Another time, another size or another file at its place is another identity."""
    Verified(tmp_path / "record").keep({"name": Identity.of(file)})
    if change == "written":
        file.write_bytes(b"other")
    elif change == "longer":
        file.write_bytes(b"wholes")
        os.utime(file, (1_000, 1_000))
    else:
        other = file.with_name("other")
        other.write_bytes(b"other")
        os.utime(other, (1_000, 1_000))
        other.replace(file)

    assert not Verified(tmp_path / "record").has("name", Identity.of(file))


def test_what_may_change_unseen_is_not_kept(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file written just now could be written once more within the grain of the clock: it is read again."""
    file.write_bytes(b"fresh")
    monkeypatch.setattr(verified, "SETTLED_NS", 3_600_000_000_000)  # a busy machine makes moments long
    Verified(tmp_path / "record").keep({"name": Identity.of(file)})

    assert not Verified(tmp_path / "record").has("name", Identity.of(file))


def test_a_record_that_cannot_be_written_is_done_without(file: Path, tmp_path: Path) -> None:
    """Where there is no folder for it, and for who only looks or names no place, nothing is kept and nothing fails."""
    found = {"name": Identity.of(file)}
    Verified(tmp_path / "none" / "record").keep(found)
    Verified(tmp_path / "record", only_look=True).keep(found)
    nowhere = Verified(None)
    nowhere.keep(found)

    assert not nowhere.has("name", found["name"])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
