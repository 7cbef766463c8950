"""Tests of core/text.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text import (
    claims_change,
    headline,
    is_one_word,
    readable,
    sentences,
    strip_markdown,
    title_of_start,
    truncate,
    visible,
    without_ansi,
    without_opener,
)

from ..cases import for_each


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link", "link"),
        ("cut \x1b[", "cut ["),
        ("[31m is text", "[31m is text"),
    ],
)
def test_terminal_sequences_are_removed(text: str, plain: str) -> None:
    """Colours, titles and links are removed, and their words are kept.

    Only the escape of a truncated sequence is removed.
    """
    assert without_ansi(text) == plain


@given(st.text(st.characters()))
def test_readable_text_can_be_encoded(text: str) -> None:
    """Lone surrogates are replaced, and all other characters are unchanged."""
    shown = readable(text)

    assert shown.encode().decode() == shown
    assert shown == text or any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("tide-clock", True), ("v2.0_x", True), ("a" * 40, True), ("a" * 41, False), ("a b", False), ("", False)],
)
def test_a_single_word_is_recognised(name: str, expected: bool) -> None:
    """Only a short name without spaces and punctuation is one word."""
    assert is_one_word(name) is expected


@given(st.text())
def test_a_visible_text_stays_as_it_is(text: str) -> None:
    """Making a text visible twice is making it visible once."""
    assert visible(visible(text)) == visible(text)


def test_what_is_not_seen_is_removed() -> None:
    """Zero-width, format and tag characters, colours and odd spaces never divide a word or a setting."""
    hidden = "\u200b \u200c \u200d \u00ad \u2060 \ufeff \u202e \U000e0041 \ufe0f \u2800 \x07 \x1b[31m \x1b]8;;http://x\x07".split(
        " "
    )
    changed = {sign for sign in hidden if visible(f"fal{sign}con") != "falcon"}

    assert not changed
    assert visible("key\u00a0=\u202fvalue\u3000end") == "key = value end"


def test_scripts_and_emoji_keep_their_joiners() -> None:
    """Joiners between letters of other scripts and inside emoji stay, because they change what is seen."""
    texts = ["👩\u200d💻", "क्\u200dष", "می\u200cخواهم", "1\ufe0f\u20e3", "☁\ufe0f cloud", "straße\tnaïve\n"]

    assert [visible(text) for text in texts] == texts


# Markdown is stripped, and text is truncated at clauses.


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
        (
            "In check() at remote.go:336, when the fetch failed, it printed one message to the standard error stream",
            "",
        ),
        (
            "When the server restarts, the queue is lost because it lives in memory only, and nothing writes it",
            "When the server restarts, the queue is lost because it lives in memory",
        ),
    ],
)
def test_headline_reads_like_a_commit_subject(sentence: str, expected: str) -> None:
    """A title has no courtesies and no final full stop, and starts with a capital letter or a name."""
    assert headline(sentence) == expected


def test_code_at_the_start_of_a_headline_is_not_capitalised() -> None:
    assert headline("npm run start works", code=["npm run start"]) == "npm run start works"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("[[ ## user_query ## ]] Prune the *apple* tree", "Prune the apple tree"),
        ("<planning_context> Plan the orchard", "Plan the orchard"),
        ("Prune the apple tree. Then water the ro…", "Prune the apple tree."),
        ("Print the marker ORCHARD_MARKER_RE…", "Print the marker…"),
        ("ORCHARD_MARKER_RE…", "ORCHARD_MARKER_RE…"),
        ("Prune the apple tree", "Prune the apple tree"),
    ],
)
def test_title_from_the_start_of_a_prompt_ends_with_a_clause_or_a_word(start: str, expected: str) -> None:
    assert title_of_start(start) == expected


def test_titles_that_claim_a_change() -> None:
    claims = ("Empty Shop: Kettle Page Created", "Fixed the footer", "Shop: added a footer", "Footer Implemented.")
    others = ("Add a footer", "Why the added footer is blue", "Footer of the museum shop", "Related pages")

    assert all(map(claims_change, claims))
    assert not any(map(claims_change, others))


def test_courtesy_alone_is_kept() -> None:
    """A text that consists only of a courtesy is unchanged."""
    assert without_opener("thanks ") == "thanks "
