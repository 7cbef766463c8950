"""Files with large results of Claude Code are copied with their session, and removed with their last mention."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.copies.verification import copies_without_row
from palaver.archiver.store import Store

from ..deletion.steps import forget
from ..formats.claude_code.claude_lines import assistant, result, text, tool, user
from ..history import ORIGINAL, History, named

NAMES = ("b1.txt", "b2.txt")


def records(folder: Path) -> list[dict[str, Any]]:
    """Return a session with two exchanges, each with a result in a file."""
    rows = list[dict[str, Any]]()
    for number, name in enumerate(NAMES):
        preview = f"<persisted-output>\nOutput too large. Full output saved to: {folder / name}\n</persisted-output>"
        rows += [
            user(f"Question {number}"),
            assistant(tool("Bash", {"command": "make"}, f"t{number}"), id=f"m{number}"),
            result(preview, {"persistedOutputPath": str(folder / name)}, f"t{number}"),
            assistant(text(f"Answer {number}"), id=f"n{number}"),
        ]
    return [{**row, "sessionId": ORIGINAL, "uuid": named(f"row {number}")} for number, row in enumerate(rows)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Archive a session with its result files. The folder also has a file that the session does not mention."""
    history = History(tmp_path)
    folder = history.path().with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    for name in (*NAMES, "other.txt"):
        (folder / name).write_bytes(b"\xff" + name.encode())
    (folder / "link.txt").symlink_to("/etc/hostname")
    history.write(records(folder))
    assert history.ingest().problems == []
    return history


def copied(history: History) -> dict[str, bytes]:
    """Return the copied result files by name."""
    return {path.name: path.read_bytes() for path in history.home.archive.rglob("tool-results/*")}


def test_mentioned_files_are_copied_byte_for_byte(history: History) -> None:
    with history.store:
        assert copied(history) == {name: b"\xff" + name.encode() for name in NAMES}
        assert copies_without_row(history.home.archive, history.store) == []


def test_a_changed_file_is_copied_again_when_its_session_grows(history: History) -> None:
    with history.store:
        (history.path().with_suffix("") / "tool-results" / "b1.txt").write_bytes(b"longer than before")
        history.append([user("Next", uuid=named("next"), sessionId=ORIGINAL)])
        history.ingest()

        assert copied(history)["b1.txt"] == b"longer than before"


def test_a_copy_outlives_the_agents_file(history: History) -> None:
    with history.store:
        (history.path().with_suffix("") / "tool-results" / "b1.txt").unlink()
        history.append([user("Next", uuid=named("next"), sessionId=ORIGINAL)])
        history.ingest()

        assert copied(history).keys() == set(NAMES)


def test_erasing_a_session_removes_its_files(history: History) -> None:
    """A later run does not copy them again."""
    with history.store:
        forget(history, ORIGINAL, erase=True)
        history.ingest()

        assert copied(history) == {}
        assert [path for path in history.home.archive.rglob("*") if ORIGINAL in path.name] == []


def test_erasing_an_exchange_removes_the_files_that_only_it_mentions(history: History) -> None:
    """They do not return when the session grows."""
    with history.store:
        forget(history, f"{ORIGINAL}:1-4", erase=True)
        history.ingest()
        assert copied(history).keys() == {"b2.txt"}

        history.append([user("Next", uuid=named("next"), sessionId=ORIGINAL)], at=9)
        history.ingest()
        assert copied(history).keys() == {"b2.txt"}


def test_a_deletion_that_can_be_undone_keeps_the_files(history: History) -> None:
    with history.store:
        forget(history, ORIGINAL)
        history.ingest()

        assert copied(history).keys() == set(NAMES)
        assert isinstance(history.store, Store)
