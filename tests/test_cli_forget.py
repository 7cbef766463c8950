"""`palaver forget`: preview, deletion, erasure and undo."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import DEMO, Home
from palaver.observe.pipeline import Pipeline


@pytest.fixture(autouse=True)
def _archived(home: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([DEMO]))


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_a_preview_prints_the_command_that_confirms_it() -> None:
    """A preview deletes nothing and prints the command with the token that confirms it."""
    shown = palaver("forget", "--mentions", "tide").stdout
    assert "Nothing was deleted yet" in shown
    command = shown.splitlines()[-1].split()
    assert command[:4] == ["palaver", "forget", "--mentions", "tide"]

    wrong = palaver("forget", "--mentions", "tide", "--confirm", "000000000000", code=1).stdout
    assert "Nothing was deleted" in wrong

    assert "palaver forget --undo 1" in palaver(*command[1:]).stdout
    assert palaver("forget", "--mentions", "tide").stdout.startswith("Nothing matches. Widen the options")
    assert "can be undone until" in palaver("forget", "--list").stdout
    assert "Restored" in palaver("forget", "--undo", "1").stdout
    assert "This would delete" in palaver("forget", "--mentions", "tide").stdout


def forgotten(*words: str) -> str:
    """Delete and return the ID of the deletion."""
    token = json.loads(palaver("forget", *words, "--json").stdout)["token"]
    return str(json.loads(palaver("forget", *words, "--confirm", token, "--json").stdout)["number"])


def test_a_deletion_cannot_be_undone_twice() -> None:
    """Undoing a deletion twice is an error that refers to the list of deletions."""
    number = forgotten("--mentions", "tide")
    palaver("forget", "--undo", number)
    assert f"Deletion {number} was undone or never existed" in palaver("forget", "--undo", number, code=2).stderr
    assert f"Deletion {number} was undone or never existed" in palaver("forget", "--erase-now", number, code=2).stderr
    assert "Deletion 7 was undone or never existed" in palaver("forget", "--undo", "7", code=2).stderr


def test_an_erasure_in_json_contains_its_check() -> None:
    """The JSON output of an erasure has the result of the verification and the paths of the agents' own files."""
    token = json.loads(palaver("forget", "--mentions", "tide", "--erase", "--json").stdout)["token"]
    done = json.loads(palaver("forget", "--mentions", "tide", "--erase", "--confirm", token, "--json").stdout)
    assert done["check"]["passed"] is True
    assert done["originals"]


def test_an_unknown_name_is_refused() -> None:
    """An unknown name is refused with a hint that lists accepted names."""
    result = palaver("forget", "nothing-like-it", code=2)
    assert "No match in the archive for nothing-like-it" in result.stderr
    assert "--mentions" in result.stderr


def test_a_session_id_accepts_a_line_range() -> None:
    """A session ID or its prefix accepts a line range, as a path does."""
    by_path = palaver("forget", f"{PATH}:13-13").stdout
    for name in ("0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01", "0b6f21c4"):
        output = palaver("forget", f"{name}:13-13").stdout
        assert "partly, 1 exchange" in output
        assert output.splitlines()[:3] == by_path.splitlines()[:3]
    assert "each with or without :FIRST-LAST" in palaver("forget", "zzzzzz:1-2", code=2).stderr


PATH = "claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl"


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("9000-9001", "line 9000 is past the last line"),
        ("0-3", "lines begin at 1"),
        ("5-2", "the last line 2 is before the first line 5"),
    ],
)
def test_lines_outside_the_file_are_refused(span: str, message: str) -> None:
    """Lines outside the file are rejected with the same error as in `palaver read`."""
    result = palaver("forget", f"{PATH}:{span}", code=2)
    assert message in result.stderr


def test_a_line_selects_its_whole_exchange() -> None:
    """A line or an observation selects its whole exchange, and the preview counts all its lines."""
    by_line = json.loads(palaver("forget", f"{PATH}:2-2", "--json").stdout)
    assert by_line["exchanges"] == 1
    assert by_line["copies"][0]["lines"] > 1
    hits = json.loads(palaver("search", "tide", "--json").stdout)["results"]
    observation = next(hit["id"] for hit in hits if hit["id"].startswith("obs-"))
    assert json.loads(palaver("forget", observation, "--json").stdout)["exchanges"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--undo", "1", "--erase-now", "1"),
        ("--undo", "1", "--list"),
        ("--erase-now", "1", "mem_1"),
        ("--list", "--mentions", "tide"),
    ],
)
def test_undo_erase_now_and_list_reject_other_options(words: tuple[str, ...]) -> None:
    """Other options next to `--undo`, `--erase-now` or `--list` are rejected instead of ignored."""
    message = palaver("forget", *words, code=2).stderr
    assert message.splitlines()[0].endswith("can only be combined with --json")


def test_an_emptied_archive_names_its_deletions() -> None:
    """After the last session was deleted, lists and searches say how many were deleted and how to undo it."""
    number = forgotten("--since", "2000-01-01")
    told = re.compile(rf"\d+ sessions were deleted\. Restore with `palaver forget --undo {number}`")
    for words in (("projects",), ("sessions",), ("search", "tide")):
        page = palaver(*words).stdout
        assert told.search(page), words
        assert "palaver up" not in page, words

    palaver("forget", "--undo", number)
    palaver("archive")
    project = json.loads(palaver("projects", "--json").stdout)["projects"][0]["name"]
    number = forgotten("--project", project)
    for command in (("sessions",), ("search", "tide")):
        page = palaver(*command, "--project", project).stdout
        assert f"deleted. Restore with `palaver forget --undo {number}`" in page, command
    palaver("forget", "--undo", number)
    palaver("archive")
    assert "deleted" not in palaver("sessions").stdout + palaver("projects").stdout

    palaver("forget", "--erase-now", forgotten("--since", "2000-01-01"))
    assert "deleted permanently. `palaver forget --list`" in palaver("projects").stdout
