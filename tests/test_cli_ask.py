"""`palaver ask` answers from past conversations."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main
from palaver.core.home import Home
from palaver.core.tokens import count

from . import demo


@pytest.fixture
def archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return the home of the sample archive, which is the home of this test."""
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    return home


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.usefixtures("archived")
def test_answer_is_printed_with_sources() -> None:
    """`ask` prints the decision of the user first, its citations, the transcripts and the receipt."""
    page = palaver("ask", "sqlite", "or", "json", "files", "--no-model").stdout

    assert page.splitlines()[1].startswith("**Best answer** (decision, 2026-02-03): Use SQLite, one file")
    assert "[obs-19, 0b6f:" in page
    assert "`claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl`" in page
    assert f"\n~{count(page)} tokens; the cited conversations have ~1,312." in page


@pytest.mark.usefixtures("archived")
def test_citations_can_be_read() -> None:
    """`show` and `read` accept the citations as they are printed."""
    assert "SQLite" in palaver("show", "obs-19").stdout
    assert "Lines: 11-11 of 26" in palaver("read", "0b6f", "11").stdout


@pytest.mark.usefixtures("archived")
def test_json_has_whole_paths() -> None:
    """`--json` prints the findings with whole paths, and the cost of the reply."""
    ran = palaver("ask", "sqlite or json files", "--json").stdout
    answer = json.loads(ran)

    assert answer["findings"][0]["sources"][0]["path"].endswith("0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl")
    assert answer["tokens"] == count(ran.rstrip("\n"))
    assert "tokens" not in answer["receipt"]


@pytest.mark.usefixtures("archived")
def test_options_restrict_the_answer() -> None:
    """A project and dates restrict the answer. An unknown project is an error."""
    assert "Nothing found" in palaver("ask", "sqlite or json files", "--after", "2026-04").stdout
    page = palaver("ask", "sqlite or json files", "--project", "seed-library").stdout
    assert "**Closest passages**\n" in page
    assert "ask again without the filters" in page
    assert "tide-clock" not in page
    assert "Unknown project" in palaver("ask", "sqlite", "--project", "nope", code=2).stderr


@pytest.mark.usefixtures("archived")
def test_questions_for_commands_and_fixes() -> None:
    """A question for a command or the fix of an error is answered as by `how` and `fix`, which the answer names."""
    page = palaver("ask", "how do I run the tests", "--project", "tide-clock").stdout
    assert "(command, 2026-03-30): tide-clock: `python -m pytest`, mostly `python -m pytest -q` (3 runs in" in page
    assert "\nTo list all commands: palaver how test\n" in page

    page = palaver("ask", "ValueError: max() arg is an empty sequence").stdout
    assert "`python -m pytest -q tests/test_summer_time.py` worked after edits of `tide_clock/store.py`" in page
    assert "\nTo list all fixes: palaver fix 'ValueError: max() arg is an empty sequence'\n" in page


def test_missing_archive_is_an_error() -> None:
    """Without an archive, the error names the command that creates one."""
    assert "palaver up" in palaver("ask", "anything", code=1).stderr
