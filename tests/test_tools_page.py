"""Tests of docs/tools.md against the program."""

import subprocess
import sys
from pathlib import Path

from palaver.agents.toolset import TOOLSETS, find_toolset

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tools.md"


def test_the_page_is_current() -> None:
    """The page is what `release/tools_page.py` generates."""
    code = "import tools_page, sys; sys.stdout.write(tools_page.tools_page())"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "release", check=True, capture_output=True, text=True
    )

    assert PAGE.read_text("utf-8") == made.stdout


def test_the_page_lists_every_tool() -> None:
    """Every tool of the five toolsets has a row."""
    text = PAGE.read_text("utf-8")
    names = [tool.name for name in TOOLSETS for tool in find_toolset(name).tools]

    assert len(TOOLSETS) == 5
    assert len(names) > 50
    assert [name for name in names if f"| `{name}` |" not in text] == []
