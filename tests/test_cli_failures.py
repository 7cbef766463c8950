"""Tests for src/palaver/cli/failures.py: what a script reads when a command fails."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from palaver.cli import main
from palaver.cli.commands import COMMANDS
from palaver.cli.failures import failure_of, report_failure
from palaver.core import errors
from palaver.core.home import Home

from .commands import EVERY, LEAVES, PLAIN

ARGUMENTS = {
    "archive": ["/no/such/folder"],
    "context": ["--budget", "0"],
    "documents forget": ["/no/such/file"],
    "export": ["obs-1", "folder"],
    "forget": ["obs-1"],
    "index": ["/no/such/file"],
    "memories edit": ["mem_1"],
    "memories graph": ["mem_1"],
    "memories history": ["mem_1"],
    "memories show": ["mem_1"],
    "memories undo": ["mem_1"],
    "model use": ["/no/such/model"],
    "read": ["nowhere"],
    "recall": ["xx"],
    "remember": ["xx"],
    "search": ["xx"],
    "show": ["obs-1"],
    "timeline": ["obs-1"],
}
"""What the commands that need words are called with here."""
NEEDS_NO_HOME = {"toolsets"}


def palaver(*arguments: str) -> Result:
    """Run one command in this process."""
    return CliRunner().invoke(main, arguments)


def failure(result: Result) -> dict[str, Any]:
    """The error that was printed, and nothing else may have been."""
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert told.keys() == {"error"}
    assert told["error"].keys() == {"kind", "message", "hint"}
    found: dict[str, Any] = told["error"]
    return found


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_call_that_was_typed_wrongly_fails_in_json(words: tuple[str, ...]) -> None:
    """Every command answers an unknown option with JSON where it is asked for, and ends with 2 in both forms."""
    plain, told = palaver(*words, "--nonsense"), palaver(*words, "--nonsense", "--json")

    assert (plain.exit_code, plain.stdout, told.exit_code) == (2, "", 2)
    found = failure(told)
    assert plain.stderr == f"palaver: {found['message']}\n{found['hint']}\n"
    assert (found["kind"], "--nonsense" in found["message"]) == ("usage", True)
    assert f"palaver {' '.join(words)} --help".replace("  ", " ") in found["hint"].replace("main", "palaver")


@pytest.mark.parametrize("words", [words for words in LEAVES if words not in PLAIN], ids=" ".join)
def test_what_a_command_cannot_do_is_told_in_json(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that fails says so as words on standard error, or as JSON on standard output, and ends alike."""
    name = " ".join(words)
    if name in NEEDS_NO_HOME:
        pytest.skip("it needs no home")
    monkeypatch.setenv("PALAVER_HOME", "somewhere")
    arguments = [*words, *ARGUMENTS.get(name, []), *(["--print"] if name == "setup service" else [])]
    plain, told = palaver(*arguments), palaver(*arguments, "--json")

    assert (plain.exit_code, plain.stdout, told.exit_code) == (1, "", 1)
    found = failure(told)
    assert found["kind"] == "config_invalid"
    assert plain.stderr == f"palaver: {found['message']}\n{found['hint']}\n"


def test_every_error_of_ours_has_a_kind_of_its_own() -> None:
    """A script can tell them apart by one word, made of the name that core/errors.py draws."""
    ours = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.PalaverError)]
    kinds = [failure_of(each.__new__(each)).kind for each in ours]

    assert len(set(kinds)) == len(ours) > 40
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", kind) for kind in kinds)
    assert {"failed", "store_missing", "unknown_ids"} <= set(kinds)


@pytest.mark.parametrize(
    ("raised", "code", "kind", "message"),
    [
        (OSError(28, "No space left on device", "/x"), 1, "system", "/x: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted", "stopped"),
        (click.Abort(), 130, "interrupted", "stopped"),
        (click.ClickException("the editor failed"), 1, "failed", "the editor failed"),
        (errors.StoreMissing(Path("/x")), 1, "store_missing", "no archive at /x"),
    ],
)
def test_whatever_ends_a_command_is_told_in_json(
    raised: BaseException, code: int, kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system, a person or a library does to a command comes out in the same shape as an error of ours."""

    def fail() -> Home:
        raise raised

    monkeypatch.setattr(Home, "find", fail)
    result = palaver("status", "--json")

    assert result.exit_code == code
    found = failure(result)
    assert (found["kind"], found["message"]) == (kind, message)


@pytest.mark.parametrize("name", sorted(name for name in COMMANDS if len(name) > 2))
def test_a_mistyped_command_is_guessed(name: str) -> None:
    """A letter that was left out is no riddle."""
    mistyped = name[:1] + name[2:]
    told = failure(palaver(mistyped, "--json"))["message"]

    assert told.startswith(f"No such command '{mistyped}'. ")
    assert f"`palaver {name}`" in told


def test_a_wrong_value_ends_alike_whoever_refuses_it() -> None:
    """Whether click knows the values or the core does, the call has to be corrected: 2."""
    palaver("remember", "Prefer tabs")
    wrong = (
        ["search", "kettle", "--mode", "loud"],
        ["search", "kettle", "--after", "someday"],
        ["search", "kettle", "--limit", "0"],
        ["timeline", "mem_1", "--around", "99"],
        ["show", "mem_9"],
        ["memories", "undo", "mem_1"],
        ["forget", "--undo", "77"],
        ["archive", "/no/such/folder"],
        ["index", "/no/such/file"],
        ["remember", "xx", "--type", "no such type"],
    )

    assert [(words, palaver(*words).exit_code) for words in wrong] == [(words, 2) for words in wrong]


def test_a_wrong_call_is_told_in_one_style() -> None:
    """What click refuses reads like what the core refuses: what is wrong, and how it is called."""
    assert palaver("read").stderr == (
        "palaver: Missing argument 'PATH'\nUsage: main read [OPTIONS] PATH [LINES] (see `main read --help`)\n"
    )
    group = palaver("memories")
    assert (group.exit_code, group.stderr.splitlines()[0]) == (2, "Usage: main memories [OPTIONS] COMMAND [ARGS]...")


def test_no_answer_at_a_prompt_stops_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C and the end of input mean the same wherever they come; nothing was done."""

    def ask() -> Home:
        click.confirm("Go on?", abort=True)
        raise AssertionError

    def interrupted() -> Home:
        raise KeyboardInterrupt

    told: list[tuple[int, str]] = []
    for find in (ask, interrupted):
        monkeypatch.setattr(Home, "find", find)
        result = CliRunner().invoke(main, ["status"], input="")
        told.append((result.exit_code, result.stderr))

    assert told == [(130, "\npalaver: stopped.\n")] * 2


@pytest.mark.parametrize(
    ("typed", "goes_on"), [(["archive"], True), (["forget", "mem_1"], False), (["--help"], False), ([], False)]
)
def test_only_what_goes_on_is_said_to(typed: list[str], goes_on: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the same command would begin anew, "stopped" is all."""
    for words in (typed, [*typed, "--json"]):
        assert report_failure(KeyboardInterrupt(), words) == 130
        said = "".join(capsys.readouterr())
        assert ("stopped" in said, "run the same command to resume" in said) == (True, goes_on)


@pytest.mark.parametrize("typed", ["--yes", "--eras", "--forc", "--erase-no"])
def test_what_cannot_be_undone_is_never_guessed(typed: str) -> None:
    """Who forgets and types an option that there is not hears how what was shown is confirmed."""
    told = failure(palaver("forget", "mem_1", typed, "--json"))["message"]

    assert told == (
        f"No such option '{typed}'. Memories are forgotten at once by id; anything else shows a preview, "
        "which --confirm TOKEN confirms"
    )
    assert "--mentions" in failure(palaver("forget", "--mention", "--json"))["message"]
    assert "at once" not in failure(palaver("documents", "forget", "--yes", "--json"))["message"]


def test_an_option_that_was_meant_as_words_is_told_how_to_be_searched() -> None:
    """One that is spelled much like another is guessed, as everywhere."""
    meant, mistyped = (failure(palaver("search", typed, "--json"))["message"] for typed in ("--no-verify", "--limt"))

    assert meant == """No such option '--no-verify'. To search for it: palaver search '"--no-verify"'"""
    assert "--limit" in mistyped


def test_json_is_asked_for_by_the_option_alone() -> None:
    """After a bare `--` the same letters are a file's name."""
    result = palaver("archive", "--", "--json")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "palaver: --json: No such file or directory" in result.stderr


def test_a_name_in_an_error_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """JSON of an error holds no control characters, those that JSON need not escape included."""
    result = palaver("archive", str(tmp_path / "a\x9b2J\x1b[2Jb"), "--json")

    assert failure(result)["message"] == f"{tmp_path}/a2Jb: No such file or directory"


def test_the_help_describes_the_shape_of_errors() -> None:
    """Who writes a script finds the shape and the exit codes in `palaver --help`."""
    shown = " ".join(palaver("--help").stdout.split())

    assert '{"error": {"kind", "message", "hint"}}' in shown
    assert "Exit status: 0 success, 1 failure, 2 usage error, 130 interrupted." in shown


@pytest.mark.parametrize(
    "arguments",
    [["archive", ""], ["index", ""], ["documents", "forget", ""], ["export", "--all", ""], ["mnemonics", "allow", ""]],
    ids=" ".join,
)
def test_an_empty_path_is_refused(arguments: list[str]) -> None:
    """An unset shell variable does not stand for the folder one is in."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "an empty path; name a file or folder, or `.` for this one" in result.stderr
