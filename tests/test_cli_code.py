"""`palaver search --symbol` and `--in code` find indexed code by name and by exact text."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, whose code is indexed in a project's namespace."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "kiln.py").write_text('def heat_kiln(degrees):\n    """Heat it."""\n    return degrees\n')
    (tmp_path / "shop" / "notes.md").write_text("# Notes\n\nCall heat_kiln(900).\n")
    palaver("index", "shop", "--namespace", "project:shop")
    return tmp_path / "shop"


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str) -> Any:
    return json.loads(palaver("search", *arguments, "--json").stdout)


def test_a_symbol_is_printed_with_its_place_and_declaration(folder: Path) -> None:
    """The page and the JSON output contain the unit, its file and lines, and an ID for `show`."""
    page = palaver("search", "--symbol", "heatKiln").stdout
    [found] = answer("--symbol", "heat_kiln")["symbols"]

    assert f"{found['id']} function heat_kiln {folder / 'kiln.py'}:1-3\n    def heat_kiln(degrees)" in page
    assert (found["match"], found["doc"], found["namespace"]) == ("exact", "Heat it.", "project:shop")
    assert "def heat_kiln" in palaver("show", found["id"]).stdout


def test_a_line_is_printed_with_its_context(folder: Path) -> None:
    """The page and the JSON output contain the line with its indentation, its number, and the lines around it."""
    page = palaver("search", "--in", "code", "RETURN deg", "--context", "1").stdout
    [found] = answer("--in", "code", "return", "degrees", "--context", "1")["lines"]

    assert f"{folder / 'kiln.py'}:3 heat_kiln\n" in page
    assert "  >     return degrees" in page
    assert (found["before"], found["after"], found["line"]) == (['    """Heat it."""'], [], 3)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--project", "shop"), 1),
        (("--project", "./shop"), 1),
        (("--project", "other"), 0),
        (("--file", "shop/*.py"), 1),
        (("--file", "*.js"), 0),
        (("--language", "python", "--unit", "function"), 1),
        (("--unit", "class"), 0),
    ],
)
def test_filters_apply_to_code(options: tuple[str, ...], count: int) -> None:
    """Symbols, lines and hits must satisfy the filters. Without a result, the page names the filters."""
    assert len(answer("--symbol", "heat_kiln", *options)["symbols"]) == count
    assert len(answer("--in", "code", "heat_kiln", *options)["lines"]) == count
    if not count:
        assert "under these filters" in palaver("search", "--symbol", "heat_kiln", *options).stdout
        assert "under these filters" in palaver("search", "--in", "code", "heat_kiln", *options).stdout


def test_words_find_code_with_filters_for_units() -> None:
    """`--kind code` with words finds a unit, and names an unknown language."""
    assert [hit["type"] for hit in answer("heat the kiln", "--kind", "code", "--unit", "function")["results"]] == [
        "function"
    ]
    assert "No file is in the language `cobol`" in palaver("search", "heat", "--language", "cobol").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--symbol", "a", "words"), "--symbol cannot be combined with WORDS"),
        (("--symbol", "a", "--agent", "codex"), "--symbol cannot be combined with --agent"),
        (("--in", "code"), "--in code requires WORDS"),
        (("--in", "code", "a", "--weak"), "--in code cannot be combined with --weak"),
        (("--symbol", "a", "--file", "b", "--file", "c"), "one --file"),
        (("--symbol", ""), "Invalid name"),
    ],
)
def test_other_options_are_usage_errors(arguments: tuple[str, ...], message: str) -> None:
    """An option that does not apply to code is a usage error."""
    assert message in palaver("search", *arguments, code=2).stderr
