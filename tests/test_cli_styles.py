"""Tests for cli/output.py: styled output on a terminal."""

import pytest

from palaver.cli.output import styled

PAGE = """## Search Results (1 observation)
<recalled-4f9c2a>
[tide-clock]
obs-12 03-01 bug-fix 0.71 High water was one hour late

**Facts:**
- It takes `2**3` &lt;seconds>
\\# Not a heading
---
</recalled-4f9c2a>
~61 tokens. Details: palaver show ID...
"""


def test_markdown_becomes_styles() -> None:
    """Headings and labels are bold, IDs are coloured, costs are dim, and the envelope for agents is removed."""
    assert styled(PAGE).split("\n") == [
        "\x1b[1mSearch Results (1 observation)\x1b[0m",
        "\x1b[1m[tide-clock]\x1b[0m",
        "\x1b[36mobs-12\x1b[0m 03-01 bug-fix 0.71 High water was one hour late",
        "",
        "\x1b[1mFacts:\x1b[0m",
        "- It takes `2**3` <seconds>",
        "# Not a heading",
        "\x1b[2m---\x1b[0m",
        "\x1b[2m~61 tokens. Details: palaver show ID...\x1b[0m",
        "",
    ]


def test_no_color_prints_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR the text has neither Markdown markers nor escape codes."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b" not in styled(PAGE)
    assert "\nFacts:\n" in styled(PAGE)
