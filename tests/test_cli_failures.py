"""Tests for cli/output.py: errors of commands as a script reads them."""

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
from palaver.cli.output import failure_of, report_failure
from palaver.cli.team_server import SERVER_COMMANDS
from palaver.core import errors
from palaver.core.home import Home

from .cases import for_each
from .commands import EVERY, LEAVES, PLAIN

ARGUMENTS = {
    "ask": ["xx"],
    "blame": [__file__],
    "archive": ["/no/such/folder"],
    "context": ["--budget", "0"],
    "documents add": ["/no/such/file"],
    "documents remove": ["/no/such/file"],
    "export": ["obs-1", "folder"],
    "fix": ["xx"],
    "forget": ["obs-1"],
    "handoff": ["0b6f"],
    "how": ["xx"],
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
    "resume": ["0b6f"],
    "session pin": ["0b6f"],
    "session rename": ["0b6f"],
    "session tag": ["0b6f"],
    "share": ["0b6f"],
    "search": ["xx"],
    "show": ["obs-1"],
    "team join": ["http://127.0.0.1:9", "code"],
    "team share": ["xx"],
    "team unshare": ["xx"],
    "timeline": ["obs-1"],
}
"""Minimal valid arguments of the commands that need some."""
NEEDS_NO_HOME = {"toolsets", *(f"team {command.name}" for command in SERVER_COMMANDS)}


def palaver(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments)


def failure(result: Result) -> dict[str, Any]:
    """Return the printed JSON error, and check that nothing else was printed."""
    assert result.stderr == ""
    reply = json.loads(result.stdout)
    assert reply.keys() == {"error"}
    assert reply["error"].keys() == {"kind", "message", "hint"}
    found: dict[str, Any] = reply["error"]
    return found


@for_each("words", EVERY, label=" ".join)
def test_a_usage_error_is_printed_as_json(words: tuple[str, ...]) -> None:
    """Every command rejects an unknown option with status 2, in JSON if `--json` is given."""
    plain, as_json = palaver(*words, "--nonsense"), palaver(*words, "--nonsense", "--json")

    assert (plain.exit_code, plain.stdout, as_json.exit_code) == (2, "", 2)
    found = failure(as_json)
    assert plain.stderr == f"palaver: {found['message']}\n{found['hint']}\n"
    assert (found["kind"], "--nonsense" in found["message"]) == ("usage", True)
    assert f"palaver {' '.join(words)} --help".replace("  ", " ") in found["hint"].replace("main", "palaver")


@pytest.mark.parametrize("words", [words for words in LEAVES if words not in PLAIN], ids=" ".join)
def test_a_failed_command_prints_json(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every failing command prints text on standard error, or JSON on standard output, with the same status."""
    name = " ".join(words)
    if name in NEEDS_NO_HOME:
        pytest.skip("it needs no home")
    monkeypatch.setenv("PALAVER_HOME", "somewhere")
    arguments = [*words, *ARGUMENTS.get(name, [])]
    plain, as_json = palaver(*arguments), palaver(*arguments, "--json")

    assert (plain.exit_code, plain.stdout, as_json.exit_code) == (1, "", 1)
    found = failure(as_json)
    assert found["kind"] == "config_invalid"
    assert plain.stderr == f"palaver: {found['message']}\n{found['hint']}\n"


def test_every_error_has_a_distinct_kind() -> None:
    """Each error class has a unique `kind`, derived from the name of the class."""
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
        (click.ClickException("The editor failed"), 1, "failed", "The editor failed"),
        (errors.StoreMissing(Path("/x")), 1, "store_missing", "No archive at /x"),
    ],
)
def test_external_errors_have_the_same_json_form(
    raised: BaseException, code: int, kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """External errors and interruptions have the same JSON form as Palaver's errors."""

    def fail() -> Home:
        raise raised

    monkeypatch.setattr(Home, "find", fail)
    result = palaver("status", "--json")

    assert result.exit_code == code
    found = failure(result)
    assert (found["kind"], found["message"]) == (kind, message)


@for_each("name", sorted(name for name in COMMANDS if len(name) > 2))
def test_a_mistyped_command_gets_a_suggestion(name: str) -> None:
    """A command name with one letter missing gets a suggestion."""
    mistyped = name[:1] + name[2:]
    message = failure(palaver(mistyped, "--json"))["message"]

    assert message.startswith(f"No such command '{mistyped}'. ")
    assert f"`palaver {name}`" in message


def test_invalid_values_exit_with_2() -> None:
    """Invalid values exit with status 2, whether click or Palaver rejects them."""
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


def test_usage_errors_have_one_style() -> None:
    """A usage error detected by click has the same form as Palaver's own: the problem, then the usage."""
    assert palaver("read").stderr == (
        "palaver: Missing argument 'PATH'\nUsage: main read [OPTIONS] PATH [LINES] (see `main read --help`)\n"
    )
    group = palaver("memories")
    assert (group.exit_code, group.stderr.splitlines()[0]) == (2, "Usage: main memories [OPTIONS] COMMAND [ARGS]...")


def test_end_of_input_at_a_prompt_stops_like_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C and the end of input at a prompt print the same message with the same status."""

    def ask() -> Home:
        click.confirm("Go on?", abort=True)
        raise AssertionError

    def interrupted() -> Home:
        raise KeyboardInterrupt

    outcomes: list[tuple[int, str]] = []
    for find in (ask, interrupted):
        monkeypatch.setattr(Home, "find", find)
        result = CliRunner().invoke(main, ["status"], input="")
        outcomes.append((result.exit_code, result.stderr))

    assert outcomes == [(130, "\npalaver: stopped.\n")] * 2


@pytest.mark.parametrize(
    ("typed", "goes_on"), [(["archive"], True), (["forget", "mem_1"], False), (["--help"], False), ([], False)]
)
def test_only_resumable_commands_suggest_resuming(
    typed: list[str], goes_on: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message after Ctrl-C suggests resuming only for commands that can resume."""
    for words in (typed, [*typed, "--json"]):
        assert report_failure(KeyboardInterrupt(), words) == 130
        output = "".join(capsys.readouterr())
        assert ("stopped" in output, "Run the same command again to resume" in output) == (True, goes_on)


def test_an_unknown_option_names_the_nearest_one() -> None:
    """A typo is corrected to one option. For --json before the command, the error says where it belongs."""
    assert failure(palaver("search", "--limt", "3", "x", "--json"))["message"] == (
        "No such option '--limt'. Did you mean '--limit'?"
    )
    before = failure(palaver("--json", "search", "x"))["message"]
    assert before == "The option --json follows the command: palaver search WORDS --json"


@pytest.mark.parametrize("typed", ["--yes", "--eras", "--forc", "--erase-no"])
def test_options_that_delete_are_never_suggested(typed: str) -> None:
    """An unknown option of `forget` is never corrected to an option that deletes.

    The error explains previews and `--confirm`.
    """
    message = failure(palaver("forget", "mem_1", typed, "--json"))["message"]

    assert message == f"No such option '{typed}'. To confirm a preview: --confirm TOKEN"
    assert "--mentions" in failure(palaver("forget", "--mention", "--json"))["message"]
    assert "immediately" not in failure(palaver("documents", "forget", "--yes", "--json"))["message"]


def test_an_option_that_looks_like_a_query_gets_a_hint() -> None:
    """An unknown option of `search` gets a hint on how to search for it. A likely typo gets a suggestion."""
    meant, mistyped = (failure(palaver("search", typed, "--json"))["message"] for typed in ("--no-verify", "--limt"))

    assert meant == """No such option '--no-verify'. To search for this text: palaver search '"--no-verify"'"""
    assert "--limit" in mistyped


def test_json_after_a_double_dash_is_a_file_name() -> None:
    """After a bare `--`, the word `--json` is a file name."""
    result = palaver("archive", "--", "--json")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "palaver: --json: No such file or directory" in result.stderr


def test_an_error_cannot_control_the_terminal(tmp_path: Path) -> None:
    """A JSON error contains no control characters, including those that JSON need not escape."""
    result = palaver("archive", str(tmp_path / "a\x9b2J\x1b[2Jb"), "--json")

    assert failure(result)["message"] == f"{tmp_path}/a2Jb: No such file or directory"


def test_help_documents_the_form_of_errors() -> None:
    """`palaver --help` documents the JSON form of errors and the exit statuses."""
    shown = " ".join(palaver("--help").stdout.split())

    assert '{"error": {"kind", "message", "hint"}}' in shown
    assert "Exit status: 0 success, 1 failure, 2 usage error, 130 interrupted." in shown


@pytest.mark.parametrize(
    "arguments",
    [["archive", ""], ["index", ""], ["documents", "remove", ""], ["export", "--all", ""], ["mnemonics", "allow", ""]],
    ids=" ".join,
)
def test_an_empty_path_is_rejected(arguments: list[str]) -> None:
    """An empty path, as from an unset shell variable, does not mean the current folder."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "the path is empty. Give a file, a folder, or `.` for the current folder" in result.stderr
