"""`palaver session` renames, tags and pins sessions, and `palaver sessions --pick` chooses one at a terminal."""

import json
import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.home import Home

from . import demo

SESSION = "0b6f21c4"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return the sample archive."""
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    return home


def palaver(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.usefixtures("home")
def test_labels_are_shown_in_lists_and_survive_a_new_extraction() -> None:
    before = json.loads(palaver("sessions", "--json").output)["sessions"]
    extracted = next(row["title"] for row in before if row["session_id"].startswith(SESSION))

    assert palaver("session", "rename", SESSION, "Where  tides\nlive").output == "0b6f Where tides live\n"
    palaver("session", "tag", SESSION, "#Storage", "later")
    palaver("session", "tag", SESSION, "--remove", "later")
    assert palaver("session", "pin", SESSION).output == "0b6f Where tides live; pinned; tags: storage\n"
    palaver("rebuild", "--parse")

    row = next(row for row in json.loads(palaver("sessions", "--json").output)["sessions"] if row["pinned"])
    assert (row["title"], row["tags"]) == ("Where tides live", ["storage"])
    assert "pinned, tags: storage" in palaver("sessions").output
    assert palaver("session", "pin", SESSION, "--undo").output == "0b6f Where tides live; tags: storage\n"
    assert json.loads(palaver("session", "rename", SESSION, "--json").output)["title"] == extracted


def test_an_erased_session_loses_its_labels(home: Home) -> None:
    palaver("session", "tag", SESSION, "secret")
    token = json.loads(palaver("forget", SESSION, "--erase", "--json").stdout)["token"]
    palaver("forget", SESSION, "--erase", "--confirm", token)

    with Store.open(home.database) as store:
        assert store.session_labels.tags() == {}


@pytest.mark.usefixtures("home")
def test_labels_name_what_is_wrong() -> None:
    for tag in ("two words", "", "x" * 41, "<b>"):
        assert "Invalid tag" in palaver("session", "tag", SESSION, tag).output, tag
    assert "Unknown" in palaver("session", "pin", "ffffffff").output
    assert "--pick needs a terminal" in palaver("sessions", "--pick").output


@pytest.mark.usefixtures("home")
def test_a_session_is_picked_by_typing_at_a_terminal() -> None:
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-m", "palaver", "sessions", "--pick"], environment)

    screen = _until(terminal, "Session")
    os.write(terminal, b"json")
    screen += _until(terminal, "/ json")
    os.write(terminal, b"\r")
    screen += _until(terminal, "Write a brief")
    os.write(terminal, b"\r")
    screen += _until(terminal, "Transcript: palaver read")
    os.waitpid(child, 0)

    assert "Retrieved 1 session" in screen


def _until(terminal: int, text: str) -> str:
    """Read the terminal until it shows a text. The cursor's position is reported when it is asked for."""
    screen, limit = "", time.monotonic() + 60
    while text not in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen):
        ready, _, _ = select.select([terminal], [], [], max(0.0, limit - time.monotonic()))
        assert ready, f"{text!r} did not appear: {screen[-500:]}"
        try:
            output = os.read(terminal, 65_536).decode("utf-8", "replace")
        except OSError:  # The program has ended.
            assert text in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen), screen[-500:]
            return screen
        if "\x1b[6n" in output:
            os.write(terminal, b"\x1b[1;1R")
        screen += output
    return screen


@pytest.mark.usefixtures("home")
def test_tags_filter_sessions_and_searches() -> None:
    palaver("session", "tag", SESSION, "storage")

    listed = json.loads(palaver("sessions", "--tag", "#Storage", "--json").output)["sessions"]
    hits = json.loads(palaver("search", "sqlite", "--tag", "storage", "--json").output)["results"]

    assert [row["session_id"][:8] for row in listed] == [SESSION]
    assert hits
    assert {hit["session_id"][:8] for hit in hits} == {SESSION}
    assert "Sources" in palaver("ask", "sqlite or json files", "--tag", "storage", "--no-model").output
    assert json.loads(palaver("open", "--tag", "storage", "--json").output)["items"] == []
    used = json.loads(palaver("usage", "--by", "session", "--tag", "storage", "--json").output)
    assert [row["name"] for row in used["rows"]] == ["0b6f"]
    done = json.loads(palaver("digest", "--since", "2026-01-01", "--tag", "storage", "--json").output)
    assert (done["sessions"], done["tokens"]) == (1, sum(used["rows"][0]["counts"].values()))
    assert "Tags: storage." in palaver("usage", "--tag", "nowhere").output
    assert "Tags: storage." in palaver("search", "sqlite", "--tag", "nowhere").output
    assert "both this ID and this tag" in palaver("search", "sqlite", "--tag", "storage", "--session", "7e05").output
