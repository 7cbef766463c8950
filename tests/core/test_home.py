"""Tests of core/home.py."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.core.errors import ConfigInvalid, StoreMissing, StoreReadOnly
from palaver.core.home import Home


def test_one_variable_moves_all_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All paths are below `PALAVER_HOME`."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "here"))
    home = Home.find()

    assert home.root == tmp_path / "here"
    for place in (home.database, home.archive, home.index, home.templates):
        assert place.parent == home.root


@pytest.mark.parametrize("value", [None, ""])
def test_default_home_is_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None) -> None:
    """Without the variable, the home is in the platform's data directory."""
    monkeypatch.delenv("PALAVER_HOME")
    if value is not None:
        monkeypatch.setenv("PALAVER_HOME", value)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    places = {}
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        places[platform] = Home.find().root

    assert places == {
        "linux": tmp_path / ".local" / "share" / "palaver",
        "darwin": tmp_path / "Library" / "Application Support" / "palaver",
        "win32": tmp_path / "local" / "palaver",
    }


def test_xdg_data_home_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On Linux, the home is in `XDG_DATA_HOME` if it is set."""
    monkeypatch.delenv("PALAVER_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")

    assert Home.find().root == tmp_path / "data" / "palaver"


def test_tilde_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tilde in `PALAVER_HOME` is expanded to the user's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PALAVER_HOME", "~/talk")

    assert Home.find().root == tmp_path / "talk"


@pytest.mark.parametrize("value", ["here", "./here", "~nobody-of-that-name/here"])
def test_relative_home_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A relative path in `PALAVER_HOME` raises an error."""
    monkeypatch.setenv("PALAVER_HOME", value)
    with pytest.raises(ConfigInvalid, match="PALAVER_HOME") as refused:
        Home.find()
    assert refused.value.hint


def test_finding_a_home_creates_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only `make` creates the folder, which is accessible only to its owner."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "deep" / "here"))
    home = Home.find()
    assert not list(tmp_path.iterdir())

    home.make()
    home.make()

    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert not list(home.root.iterdir())


def test_home_that_cannot_be_created_is_a_config_error(tmp_path: Path) -> None:
    """A file at the path of the folder raises `ConfigInvalid`."""
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigInvalid, match="cannot be created"):
            Home(root).make()


def test_permissions_of_an_existing_home_are_restricted(tmp_path: Path) -> None:
    """`make` restricts the permissions of an existing folder."""
    (tmp_path / "home").mkdir(mode=0o755)

    Home(tmp_path / "home").make()

    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("closed", ["", "palaver.db"])
def test_read_only_home_stays_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Permissions that the owner removed are not restored."""
    home = Home(tmp_path)
    home.database.write_text("rows")
    path = tmp_path / closed
    path.chmod(0o500)
    may = os.access

    def deny(each: Path, mode: int) -> bool:
        """Deny write access to the path. File permissions do not restrict an administrator who runs the tests."""
        return may(each, mode) and (mode != os.W_OK or each != path)

    monkeypatch.setattr(os, "access", deny)

    with pytest.raises(StoreReadOnly, match="is read-only"):
        home.make()
    home.prepare()

    assert stat.S_IMODE(path.stat().st_mode) == 0o500
    path.chmod(0o700)


KEY_MAKER = """
import sys; from pathlib import Path; from palaver.core.home import Home
print(Home(Path(sys.argv[1])).key().hex())
"""


def test_key_is_created_once(tmp_path: Path) -> None:
    """The key is random, permanent, and readable only by the owner."""
    home, other = Home(tmp_path / "a"), Home(tmp_path / "b")
    home.make()
    other.make()

    assert len(home.key()) == 32
    assert home.key() == home.key() != other.key()
    assert stat.S_IMODE((home.root / "redaction.key").stat().st_mode) == 0o600
    assert [path.name for path in home.root.iterdir()] == ["redaction.key"]


def test_concurrent_processes_get_one_key(tmp_path: Path) -> None:
    """Processes that request the key at the same time get the same key."""
    command = [sys.executable, "-c", KEY_MAKER, str(tmp_path)]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
    keys = {process.communicate()[0] for process in asking}

    assert len(keys) == 1
    assert len(keys.pop()) == 65
    assert [path.name for path in tmp_path.iterdir()] == ["redaction.key"]


@pytest.mark.parametrize("damage", [b"", b"short", bytes(33)])
def test_damaged_key_is_replaced(damage: bytes, tmp_path: Path) -> None:
    """A key of another length is replaced."""
    (tmp_path / "redaction.key").write_bytes(damage)
    key = Home(tmp_path).key()

    assert len(key) == 32
    assert Home(tmp_path).key() == key
    assert [path.name for path in tmp_path.iterdir()] == ["redaction.key"]


def test_key_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    """Without a folder for the key, an error is raised."""
    with pytest.raises(OSError, match="absent"):
        Home(tmp_path / "absent").key()


def test_copies_are_detected_without_a_database(tmp_path: Path) -> None:
    """Any archived file counts as a raw copy. Empty folders and partial files do not."""
    home = Home(tmp_path)
    for name in (".unfinished/tmp1", ".forgotten"):
        path = home.archive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (home.archive / "claude-code" / "app").mkdir(parents=True)
    assert not home.has_copies
    with pytest.raises(StoreMissing, match="No archive at"):
        home.check()

    (home.archive / "claude-code" / "app" / "one.jsonl").write_bytes(b"x")
    assert home.has_copies
    with pytest.raises(StoreMissing, match=r"The database in .* is missing") as missing:
        home.check()
    assert "rebuild --from-archive" in missing.value.hint

    home.database.write_bytes(b"")
    with pytest.raises(StoreMissing, match=r"The database in .* is missing"):
        home.check()
    home.database.write_bytes(b"x")
    home.check()
