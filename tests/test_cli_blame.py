"""`palaver blame` shows which session and prompt wrote the lines of a file."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main

from .commands import unmarked
from .observe.traces.working import Working

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SESSION = "5b1d7c52-8a5e-4a41-9c0e-d3f1a2b3c4d5"


@pytest.fixture
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Working:
    """Return a repository in which a person and an agent wrote a file, and a person moved a line of the agent."""
    working = Working(tmp_path)
    working.type("price.py", "import math\n\n\nRATE = 1.19\n")
    working.commit()
    working.edit(SESSION, "price.py", "RATE", "def gross(net):\n    return math.ceil(net * RATE)\n\n\nRATE")
    working.commit()
    working.traces().close()
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "palaver"))
    monkeypatch.chdir(working.repository)
    return working


def palaver(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_blame_lists_blocks_of_lines_with_their_session_and_prompt(working: Working) -> None:
    first = working.git("rev-parse", "HEAD~1")[:10]
    page = palaver("blame", "price.py").output

    assert unmarked(page).splitlines() == [
        "`price.py`: 8 lines, 4 written by agents",
        "<recalled-N>",
        f"1-3 no archived session, commit {first}",
        "4-7 ex-1 2026-02-02 5b1d claude-code: Please do number 0",
        "    > Please do number 0",
        f"8 no archived session, commit {first}",
        "</recalled-N>",
        "Details: palaver show ID. Transcript: palaver read ID.",
    ]


@pytest.mark.usefixtures("working")
def test_blame_of_one_line_shows_the_line() -> None:
    page = palaver("blame", "price.py:5").output

    assert "`price.py`: 1 line, 1 written by agents" in page
    assert "return math.ceil(net * RATE)" in page, page


def test_blame_reads_the_file_of_a_commit_even_if_it_was_deleted(working: Working) -> None:
    first, second = (working.git("rev-parse", name).strip() for name in ("HEAD~1", "HEAD"))
    (working.repository / "price.py").unlink()

    assert json.loads(palaver("blame", "price.py", "--commit", first, "--json").output)["certain"] == 0
    reply = json.loads(palaver("blame", "price.py", "--commit", second, "--json").output)
    assert (reply["total"], reply["certain"], reply["likely"]) == (8, 4, 0)
    assert [(block["lines"], block["exchange"]) for block in reply["blocks"]] == [
        ([1, 3], ""),
        ([4, 7], "ex-1"),
        ([8, 8], ""),
    ]
    assert reply["blocks"][1]["commit"] == second


@pytest.mark.usefixtures("working")
def test_blame_says_what_is_wrong() -> None:
    cases = {
        ("nothing.py",): "File not found",
        ("price.py:99",): "No such line: 99",
        (":5",): "No file in :5",
        ("price.py", "--commit", "nowhere"): "No such commit: nowhere",
        ("price.py", "--commit", "--output=x"): "No such commit: --output=x",
        ("other.py", "--commit", "HEAD"): "does not contain other.py",
    }

    for arguments, message in cases.items():
        result = palaver("blame", *arguments)
        assert (result.exit_code > 0, message in result.output) == (True, True), (arguments, result.output)


def test_lines_that_occur_in_many_places_belong_to_their_neighbours(working: Working) -> None:
    """A person wrote the same common lines as the agent, in the same commit."""
    block = "{0}_total = {0} + 1\nif not {0}_total:\n    return None\n{0}_name = str({0})\n"
    working.write(SESSION, "shop.py", block.format("cart"))
    working.type("shop.py", block.format("cart") + block.format("page"))
    working.commit()
    working.git("mv", "shop.py", "store.py")
    working.type(
        "store.py", "".join(f"    {row}\n" for row in (working.repository / "store.py").read_text().split("\n"))
    )
    working.commit()
    working.traces().close()

    reply = json.loads(palaver("blame", "store.py", "--json").output)

    assert [(block["lines"], block["session"]) for block in reply["blocks"]] == [([1, 4], "5b1d"), ([5, 9], "")]
