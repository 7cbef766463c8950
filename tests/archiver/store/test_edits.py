"""Edits list the exchanges that changed a file, including exchanges archived by earlier versions."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.store import Edit
from palaver.archiver.store.exchange_table import absolute_path

from ..formats.claude_code.claude_lines import assistant, result, tool, user
from ..history import ORIGINAL, History


def session(*paths: str) -> list[dict[str, Any]]:
    """Return a conversation that writes these files, one file in each exchange."""
    place = {"sessionId": ORIGINAL, "cwd": "/home/demo/shop"}
    rows: list[dict[str, Any]] = []
    for number, path in enumerate(paths):
        call = tool("Write", {"file_path": path, "content": "x = 1"}, id=f"t{number}")
        rows += [
            user(f"Write {number}", uuid=f"a{number}", **place),
            assistant(call, id=f"m{number}", uuid=f"b{number}", **place),
            {**result("done", {"filePath": path, "structuredPatch": []}, id=f"t{number}"), "uuid": f"c{number}"},
        ]
    return rows


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return the archive of a session that wrote four files."""
    history = History(tmp_path)
    history.write(session("/home/demo/shop/a.py", "b.py", "C:\\work\\a.py", "/home/demo/shop/aa.py"))
    history.ingest()
    return history


def names(edits: list[Edit]) -> list[str]:
    """Return the paths of edits in the agent's spelling."""
    return [edit.path for edit in edits]


def test_a_file_is_found_by_its_name(history: History) -> None:
    """A name matches in any folder, with any separator. Suffixes and patterns do not match."""
    edits = history.store.edits

    assert sorted(names(edits.of_names(["a.py"], 10))) == ["/home/demo/shop/a.py", "C:\\work\\a.py"]
    assert names(edits.of_names(["b.py"], 10)) == ["b.py"]
    assert edits.of_names(["*.py"], 10) == edits.of_names(["%"], 10) == edits.of_names([""], 10) == []
    assert len(edits.of_names(["a.py", "b.py"], 2)) == 2


def test_paths_with_a_drive_are_those_of_windows_on_every_system() -> None:
    expected = {
        ("src\\app.py", "D:\\shed"): "D:\\shed\\src\\app.py",
        ("src/app.py", "D:\\shed"): "D:\\shed\\src\\app.py",
        ("D:\\shed\\app.py", "D:\\shed"): "D:\\shed\\app.py",
        ("src/../app.py", "/shed"): "/shed/app.py",
        ("/barn/app.py", "/shed"): "/barn/app.py",
    }

    assert {names: absolute_path(*names) for names in expected} == expected


def test_edits_of_a_session_are_listed_newest_first(history: History) -> None:
    """The edits of a session are listed newest first, with their folders."""
    newest = history.store.edits.newest(None)

    assert names(newest) == ["/home/demo/shop/aa.py", "C:\\work\\a.py", "b.py", "/home/demo/shop/a.py"]
    assert {edit.cwd for edit in newest} == {"/home/demo/shop"}
    assert set(newest) >= set(history.store.edits.newest(ORIGINAL)) > set()
    assert history.store.edits.newest("nobody") == []


def test_a_deleted_exchange_has_no_edits(history: History) -> None:
    """Edits are deleted with their exchange."""
    [first, *_] = history.store.edits.of_names(["b.py"], 1)
    with history.store.transaction():
        history.store.exchanges.delete([first.exchange])

    assert len(history.store.edits.newest(None)) == 3
