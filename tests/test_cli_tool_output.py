"""`palaver search --in output` finds the exact text that tools printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main

from .observe.commands.shell_history import ShellHistory

PRINTED = "collected 12 items\ncopper kettle PASSED\n12 passed in 0.31s"


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, home: Path) -> None:
    """Archive a session whose tool printed some lines."""
    history = ShellHistory(tmp_path, home / "palaver")
    history.session(("npm test", PRINTED, False), day=2)
    history.archive()


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str) -> Any:
    return json.loads(palaver("search", "--in", "output", *arguments, "--json").stdout)


def test_a_match_is_printed_with_its_context() -> None:
    """The page and the JSON output contain the match, its surrounding lines, and a place for `read`."""
    page = palaver("search", "--in", "output", "copper kettle").stdout
    [match] = answer("copper", "kettle", "--context", "1")["matches"]

    assert "> copper kettle PASSED" in page
    assert (match["before"], match["after"]) == (["collected 12 items"], ["12 passed in 0.31s"])
    assert f"{match['path']}:{match['line']}" in page
    assert "copper kettle" in palaver("read", match["path"], str(match["line"])).stdout
    assert match["id"] in palaver("show", match["id"]).stdout


def test_filters_apply() -> None:
    """Only the output of exchanges that satisfy the filters is searched."""
    assert answer("copper", "--project", "shop")["matches"]
    assert answer("copper", "--before", "2020-01-01")["matches"] == []
    assert "under these filters" in palaver("search", "--in", "output", "copper", "--before", "2020-01-01").stdout


def test_output_without_a_match_is_reported() -> None:
    """Without a match, the page says so, and the exit status is 0."""
    assert palaver("search", "--in", "output", "tin kettle").stdout.startswith("No tool output contains `tin kettle`.")


def test_an_unindexed_phrase_leads_to_the_search_of_output() -> None:
    """A quoted phrase without a hit is answered with the command that searches tool output."""
    page = palaver("search", '"copper kettle PASSED"', "--mode", "text").stdout

    assert 'palaver search --in output "copper kettle PASSED"' in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--in output requires WORDS"),
        (("copper", "--explain"), "--in output cannot be combined with --explain"),
        (("copper", "--mode", "text"), "--in output cannot be combined with --mode"),
        (("copper", "--kind", "exchange"), "--in output cannot be combined with --kind"),
        (("=> !",), "The text has no letter or digit"),
        (("copper", "--role", "human"), "--in output cannot be combined with --role"),
    ],
)
def test_invalid_calls_name_the_problem(arguments: tuple[str, ...], message: str) -> None:
    """Options that do not apply, and missing words, are usage errors."""
    assert message in palaver("search", "--in", "output", *arguments, code=2).stderr
