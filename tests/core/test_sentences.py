"""Markdown is stripped, and text is truncated at clauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text import headline, sentences, strip_markdown, truncate, without_opener

from ..cases import for_each


def test_markdown_becomes_plain() -> None:
    """Emphasis, links, backquotes and decoration are removed, but code keeps its asterisks."""
    text = "✅️ **Added** *all* [the docs](https://example.com/a_(b)) for `src/**/*.ts`  \n<br>now"

    assert strip_markdown(text) == "Added all the docs for src/**/*.ts now"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use `a.b`, e.g. Python 3.11 works.", ["Use `a.b`, e.g. Python 3.11 works."]),
        ("It saw file.py. then stopped.", ["It saw file.py. then stopped."]),
        ("これは文です。次の文。", ["これは文です。", "次の文。"]),
        (
            "Run `sem snapshot --repo . --format json`. It fails.",
            ["Run `sem snapshot --repo . --format json`.", "It fails."],
        ),
        (
            "Fixed `bytes(...)` on line 58. The name is a package.",
            ["Fixed `bytes(...)` on line 58.", "The name is a package."],
        ),
        ("   ", []),
    ],
)
def test_sentence_ends(line: str, expected: list[str]) -> None:
    """Full stops inside names, code, numbers and abbreviations do not end a sentence, but Japanese full stops do."""
    assert [line[start:end] for start, end in sentences(line)] == expected


@given(st.text(max_size=200))
def test_sentences_contain_the_whole_line(line: str) -> None:
    """The sentences of a line contain the whole line except the spaces between them."""
    assert "".join(line[start:end] for start, end in sentences(line)).replace(" ", "") == line.replace(" ", "") or any(
        char.isspace() for char in line
    )


@for_each(
    "text, limit, expected",
    [
        ("short", 10, "short"),
        ("Add a cart with totals and with taxes", 30, "Add a cart with totals"),
        ("Fix login (the page was blank for guests)", 30, "Fix login"),
        ("Nothing to see here. It was all a dream", 30, "Nothing to see here."),
        ("Nothing to see, which was all a dream of us", 29, "Nothing to see"),
        ("It is reported as done, because the part that fails is cut off", 50, "It is reported as done"),
        (
            "The page shows old prices of the shop that nobody has cleared since",
            55,
            "The page shows old prices of the shop",
        ),
        ("The page shows old prices; but the code still has a separatelynamedschema", 60, "The page shows old prices"),
        ("averyveryverylongword", 10, "averyveryv"),
        ("I get [snapshot --repo x --format json --worktree]: exit 1", 40, "I get [snapshot --repo x --format json"),
    ],
)
def test_text_is_truncated_at_a_clause(text: str, limit: int, expected: str) -> None:
    """Truncated text ends after a sentence or clause, without an open bracket or a trailing function word."""
    assert truncate(text, limit) == expected


@given(st.text(max_size=300), st.integers(10, 100))
def test_truncated_text_is_a_prefix(text: str, limit: int) -> None:
    """Truncated text is a prefix of the text and not longer than the limit."""
    left = truncate(text, limit)

    assert len(left) <= limit
    assert text.startswith(left)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ok, can you please add `--json` to the CLI?", "Add --json to the CLI?"),
        ("we should not show the price.", "We should not show the price"),
        ("Great. Also, sort the issues.", "Sort the issues"),
        ("pytest_plugins is ignored", "pytest_plugins is ignored"),
    ],
)
def test_headline_reads_like_a_commit_subject(sentence: str, expected: str) -> None:
    """A title has no courtesies and no final full stop, and starts with a capital letter or a name."""
    assert headline(sentence) == expected


def test_courtesy_alone_is_kept() -> None:
    """A text that consists only of a courtesy is unchanged."""
    assert without_opener("thanks ") == "thanks "
