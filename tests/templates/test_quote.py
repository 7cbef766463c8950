"""Tests of templates/quote.py."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.tokens import count
from palaver.templates.quote import block, brief, clean, code, inert, line, marked, text_around

from ..cases import for_each

SURROGATES = st.text(st.characters(codec=None), max_size=60)


@given(SURROGATES)
def test_cleaned_text_can_always_be_written(text: str) -> None:
    """Cleaned text is valid Unicode without control characters, and cleaning is idempotent."""
    cleaned = clean(text)
    cleaned.encode("utf-8")

    assert clean(cleaned) == cleaned
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in cleaned)


@pytest.mark.parametrize(
    "text", ["naïve 日本語 👩‍👩‍👧 می‌خواهم", "tab\there\nnew line", 'if a < b and c > d: print("x")', "see [this](a.md)"]
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """Scripts, emoji with joiners, and code are unchanged."""
    assert block(text) == text


@given(SURROGATES)
def test_line_has_no_line_breaks(text: str) -> None:
    """A heading does not contain a line break of any kind."""
    assert len(line(text).splitlines()) <= 1
    assert code(text).count("`") == 2


@pytest.mark.parametrize("row", ["# Title", "## Exchange 2", "---", "===", "**User:** hi", "  # x", "[Sidechain ends]"])
def test_a_line_that_imitates_layout_is_escaped(row: str) -> None:
    """Outside code, headings, rules and Palaver's own labels get a backslash."""
    assert block(f"a\n{row}") == f"a\n\\{row.lstrip()}"
    assert block(f"```\n{row}\n```") == f"```\n{row}\n```"


@pytest.mark.parametrize("text", ["```py\nx = 1", "~~~\n```\n", "````\n```\n"])
def test_an_open_fence_is_closed(text: str) -> None:
    """An open code fence is closed with the same fence."""
    fence = text[: text.index("\n")].removesuffix("py")

    assert block(text).rsplit("\n", 1)[1] == fence


TOOL_SYNTAX = (
    "<invoke", "</invoke>", "<function_calls>", "<tool_result>", "<x:parameter", "<user>", "</system>",
    "<system-reminder>", "<|im_start|>", "[INST]", "[/INST]", "<SYS>", "<｜begin▁of▁sentence｜>",
    "<｜tool▁calls▁begin｜>", "[TOOL_CALLS]", "[/AVAILABLE_TOOLS]", "[SYSTEM_PROMPT]", "[inst]",
    "<start_of_turn>", "<bos>", "</s>",
    "<|begin_of_text|>", "<SYSTEM>", "</SYSTEM>", "<System-Reminder>", "<sYSTEM>", "<TOOL_CALL>", "<x:Function_Calls>",
    "<INSTRUCTIONS>", "<task-notification>", "<function=run>", "<execute_bash>",
)  # fmt: skip


@for_each("text, around", product(TOOL_SYNTAX, ["{}", "so: {} yes", "`{}`", "```\n{}\n```", "a`b{}", "``{}`"]))
def test_tool_syntax_and_role_tags_are_escaped_everywhere(text: str, around: str) -> None:
    """Tool syntax and role tags are also escaped in code."""
    for shown in (line(around.format(text)), block(around.format(text)), inert(around.format(text)), code(text)):
        assert text not in shown
        assert text[1:] in shown


@pytest.mark.parametrize("sign", ["\u200b", "\u200d", "\u00ad", "\u2060", "\ufe0f", "\U000e0041", "\x1b[0m"])
def test_a_tag_with_an_invisible_character_is_escaped(sign: str) -> None:
    """An invisible character inside a tag does not hide it, in any kind of text."""
    text = f"`<sys{sign}tem>` <{sign}invoke> <{sign}|im_start|> [IN{sign}ST]"

    for shown in (line(text), block(text), block(text, is_code=True), inert(text)):
        assert shown == "`&lt;system>` &lt;invoke> &lt;|im_start|> &#91;INST]"


@pytest.mark.parametrize(
    "text",
    [
        "std::vector<std::string> a; if (a < b && c > d) return x<<2;",
        "const [users, set] = useState<User[]>([]); return <App user={user}>{a![0]}</App>",
        "fn get(&self) -> Option<Tool> { vec![1, 2] }",
        "return <User name={model}><Tool/></User>; Vec::<Model>::new(); Map<String, Function>; int[] A = B[INSTANCE];",
        "cat <<EOF | sort; echo ${a[1]} <(ls) 2>&1",
        '<div class="a"><img src="x.png"/></div>',
    ],
)
def test_code_is_unchanged(text: str) -> None:
    """Other code fences, code spans and tool calls are unchanged."""
    assert block(f"```\n{text}\n```") == f"```\n{text}\n```"
    assert block(text, is_code=True) == text
    assert line(f"`{text}`") == f"`{text}`"


def test_markup_in_prose_is_escaped() -> None:
    """Outside code, tags with any name are escaped."""
    assert block('<img src="https://evil.example/?q"> <p>') == '&lt;img src="https://evil.example/?q"> &lt;p>'
    assert line("</recalled-123> a < b <- c") == "&lt;/recalled-123> a < b <- c"
    assert line("cat <<EOF and more") == "cat <<EOF and more"
    assert line("x <<IMG SRC=//evil.example>") == "x <&lt;IMG SRC=//evil.example>"


@for_each(
    "text, around",
    product(
        ["![a](https://evil.example/?q=1)", "![a](//evil.example)", "![a]( http://evil.example)", "![a][b]"],
        ["{}", "\\{}", "```\n{}\n```", "`{}`"],
    ),
)
def test_remote_images_become_links(text: str, around: str) -> None:
    """Remote images become links."""
    assert "![" not in block(around.format(text))
    assert text[1:] in block(around.format(text))


@given(st.text(max_size=300), st.integers(3, 40))
def test_truncated_title_keeps_its_beginning_and_limit(text: str, tokens: int) -> None:
    """A truncated title keeps its beginning, ends with an ellipsis and stays within its limit."""
    whole, short = line(text), brief(text, tokens)

    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))
    assert count(short) <= tokens + 2


def test_a_short_title_stays_whole() -> None:
    """A title within its limit is unchanged."""
    assert brief("Fix the build", 12) == "Fix the build"


def test_truncated_titles_do_not_end_at_a_colon() -> None:
    """A truncated title contains the beginning of the result that follows its subject."""
    title = "Login redirect of the new guests: the token was refreshed twice"

    assert brief(title, 10) == "Login redirect of the new guests: the token…"


def test_matching_whole_words_are_bold() -> None:
    """Only whole words are bold, except in scripts without spaces."""
    shown = marked("pre-commit, previous, uncommitted pre_x 黄铜水壶", ("pre", "commit", "水壶"), "<", ">")

    assert shown == "<pre>-<commit>, previous, uncommitted <pre>_x 黄铜<水壶>"


def test_the_text_around_the_first_word_is_one_line() -> None:
    """About one line is returned, cut between words, with ellipses where text is left out."""
    text = f"{'before ' * 40}the kettle leaks {'after ' * 40}"
    shown = text_around(text, ("kettle", "leaks"))

    assert "the kettle leaks" in shown
    assert len(shown) <= 102
    assert (shown[0], shown[-1]) == ("…", "…")
    assert set(shown.strip("…").split()) == {"before", "the", "kettle", "leaks", "after"}
    assert text_around("the kettle leaks", ("leaks",)) == "the kettle leaks"
