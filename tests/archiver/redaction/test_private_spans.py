"""Private spans and excluded prompts stay in the raw copies only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.lines import clip, trim
from palaver.archiver.redaction.redactor import PLACEHOLDER, Unindexed, opt_out_in, redact_printed, redact_typed

from ...cases import for_each


@pytest.mark.parametrize(
    ("text", "shown", "open_"),
    [
        ("a <private>x</private> b", f"a {PLACEHOLDER} b", 0),
        ("a <PRIVATE>x</Private> b", f"a {PLACEHOLDER} b", 0),
        ("a <private>x <private>y</private> z</private> b", f"a {PLACEHOLDER} b", 0),
        ("a <private>x", f"a {PLACEHOLDER}", 1),
        ('a <private reason="q">x</private>', f"a {PLACEHOLDER}", 0),
        ("write `<private>` around it", "write `<private>` around it", 0),
        ("a <privateer> b", "a <privateer> b", 0),
    ],
)
def test_private_spans_are_removed(text: str, shown: str, open_: int) -> None:
    """Private spans are removed, whether nested, in upper or lower case, or unclosed to the end of the text."""
    assert redact_typed(text) == (shown, open_)


def test_an_open_span_continues_in_the_next_part() -> None:
    """A span that is open at the end of one part also removes the next part up to the closing tag."""
    assert redact_typed("x</private> b", 1) == (f"{PLACEHOLDER} b", 0)


def test_only_closed_spans_are_removed_from_output() -> None:
    """In program output, only a pair of tags removes text, unless the output was truncated."""
    long = clip("a <private>" + "x" * 9000 + "</private> b", 300)

    assert redact_printed("a <private>x</private> b <private> c") == f"a {PLACEHOLDER} b <private> c"
    assert "x" not in trim(redact_printed(long)).replace("characters", "")


@given(st.lists(st.sampled_from(["<private>", "</private>", "<PRIVATE>", "s", " ", "`"])).map("".join))
def test_hiding_twice_changes_nothing(text: str) -> None:
    """After private spans were removed once, no span is left, for any tags."""
    shown, _ = redact_typed(text)

    assert redact_typed(shown)[0] == shown


@for_each(
    "prompt, asked",
    [
        ("Please do not index this chat.", Unindexed.SESSION),
        ("DO NOT INDEX THIS CONVERSATION", Unindexed.SESSION),
        ("Don't index this\nsession", Unindexed.SESSION),
        ("이 대화는 인덱싱하지 마세요", Unindexed.SESSION),
        ("do not index this message: my salary is 1", Unindexed.EXCHANGE),
        ('what does "do not index this chat" do?', None),
        ("remove `DO NOT INDEX THIS CHAT` from a.py", None),
        ("```\nDO NOT INDEX THIS CHAT\n```", None),
        ("> do not index this chat\nwho wrote that?", None),
        ("index this chat", None),
    ],
)
def test_markers_in_quotes_and_code_are_ignored(prompt: str, asked: Unindexed | None) -> None:
    """A marker counts in plain words, and is ignored in quotations and in code."""
    assert opt_out_in(prompt) == asked
