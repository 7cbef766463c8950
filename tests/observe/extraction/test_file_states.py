"""States of the files of live exchanges."""

import os
from pathlib import Path

import pytest

from palaver.archiver.lines import content_hash
from palaver.core.conversation import Session, now
from palaver.observe.extraction.observation_writer import file_states, is_live
from palaver.observe.pipeline import observe_pending

from ...search.history import History, Said

KEY = bytes(32)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def paths_of(project: Path, *writes: str, reads: tuple[str, ...] = ()) -> list[str]:
    """Return the paths with a state, for an exchange with these files."""
    exchange = Said("Edit", writes=writes, reads=reads).exchange(0, str(project))
    return [state.path for state in file_states(exchange, Session("test", "one", cwd=str(project)), KEY)]


def test_files_have_the_paths_that_observations_cite(project: Path) -> None:
    """Modified and read files of the project have a state, under the path that observations cite."""
    for name in ("a.py", "b.py"):
        (project / name).write_text(name)

    assert paths_of(project, str(project / "a.py"), "missing.py", reads=("b.py",)) == ["a.py", "b.py"]


def test_only_regular_files_of_the_project_are_read(project: Path, tmp_path: Path) -> None:
    """Files outside the project, also behind links, long files and named pipes are not read."""
    (tmp_path / "secret").write_text("outside")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "long").write_bytes(bytes((1 << 20) + 1))
    os.mkfifo(project / "pipe")

    assert paths_of(project, str(tmp_path / "secret"), "../secret", "link", "long", "pipe", ".") == []
    assert paths_of(project, *(f"{number}.py" for number in range(99))) == []


def test_an_exchange_without_an_absolute_folder_has_no_states(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths of an unknown folder are not resolved against the folder of this process."""
    (project / "a.py").touch()
    monkeypatch.chdir(project)

    assert file_states(Said("Edit", writes=("a.py",)).exchange(0), Session("test", "one"), KEY) == []


def test_the_hash_depends_on_content_and_key(project: Path) -> None:
    """Equal content has an equal hash, and a missing file an empty one. The key prevents guesses of the content."""
    (project / "a.py").write_text("same")
    (project / "b.py").write_text("same")

    assert content_hash(str(project / "a.py"), KEY) == content_hash(str(project / "b.py"), KEY)
    assert content_hash(str(project / "a.py"), KEY) != content_hash(str(project / "a.py"), bytes(31) + b"1")
    assert content_hash(str(project / "c.py"), KEY) == b""


def test_only_live_exchanges_have_states(project: Path, tmp_path: Path) -> None:
    """An exchange that ended long ago, in the future or at an unknown time has no states."""
    (project / "a.py").write_text("now")
    (tmp_path / "home").mkdir()
    history = History(tmp_path / "home")
    (live,) = history.say("live", Said("Edit", at=now(), writes=("a.py",)), cwd=str(project))
    (old,) = history.say("old", Said("Edit", at=now() - 3_600_000, writes=("a.py",)), cwd=str(project))
    observe_pending(history.store, lambda _done, _total: None)

    states = history.store.file_states.of_exchanges([live, old])
    assert {key: [state.path for state in found] for key, found in states.items()} == {live: ["a.py"]}
    assert not is_live(Said("Edit").exchange(0), now())
    assert not is_live(Said("Edit", at=now() + 3_600_000).exchange(0), now())


def test_an_exchange_that_grows_later_loses_its_states(project: Path, tmp_path: Path) -> None:
    """States of an exchange that changed are dropped, because it may have changed the files again."""
    (project / "a.py").write_text("now")
    (tmp_path / "home").mkdir()
    history = History(tmp_path / "home")
    said = Said("Edit", at=now(), writes=("a.py",))
    (key,) = history.say("live", said, cwd=str(project))
    observe_pending(history.store, lambda _done, _total: None)
    history.say("live", Said("Edit", "And more", said.at and said.at - 3_600_000, writes=("a.py",)), cwd=str(project))
    observe_pending(history.store, lambda _done, _total: None)

    assert history.store.file_states.of_exchanges([key]) == {}
