"""Tests of safe HTML from Markdown and code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.viewer.markdown_html import CODE_MAX, TEXT_MAX, code, inline, markdown, prompt

from .crawling import Page, dangers
from .payloads import PAYLOADS


@pytest.mark.parametrize("render", [markdown, prompt, inline])
def test_hostile_texts_execute_and_load_nothing(render: object) -> None:
    assert callable(render)
    found = {payload: dangers(str(render(payload))) for payload in PAYLOADS}

    assert {payload: found[payload] for payload in PAYLOADS if found[payload]} == {}


@given(st.lists(st.sampled_from([*PAYLOADS, "\n", "\n\n", " ", "x"]), min_size=1, max_size=4))
def test_combined_hostile_texts_execute_and_load_nothing(parts: list[str]) -> None:
    assert dangers(str(markdown("".join(parts)))) == []


@pytest.mark.parametrize(
    "target", ["//evil.example", "javascript:x", "data:text/html,x", "/view/deletions", "a.py", "\\\\evil"]
)
def test_only_links_with_a_web_address_stay(target: str) -> None:
    assert "href" not in markdown(f"[x]({target})")


def test_a_web_link_opens_without_a_referrer() -> None:
    assert 'href="https://example.org/a?b=1"' in markdown("[x](https://example.org/a?b=1)")
    assert 'rel="noopener noreferrer nofollow"' in markdown("<https://example.org>")


def test_a_remote_picture_becomes_a_link() -> None:
    html = markdown("![a chart](https://example.org/chart.png)")

    assert "<img" not in html
    assert ">a chart</a>" in html


def test_headings_are_below_those_of_the_page() -> None:
    tags = [tag for tag, _ in Page(markdown("# One\n\n## Two\n\n###### Six")).elements]

    assert tags == ["h3", "h4", "h6"]


def test_code_is_highlighted_in_its_language() -> None:
    assert '<span class="k">def</span>' in markdown("```python\ndef f(): pass\n```")
    assert code("x = <1>", "nosuchlanguage") == "x = &lt;1&gt;"
    assert "<span" not in code("x = 1\n" * CODE_MAX, "python")


def test_a_long_text_is_shown_whole_but_only_its_start_as_markdown() -> None:
    text = "**a** " * TEXT_MAX
    html = markdown(text)

    assert html.count("<strong>") <= TEXT_MAX // 6 + 1
    assert html.count("a") >= TEXT_MAX


def test_a_prompt_keeps_its_line_breaks() -> None:
    assert prompt("one\n  two <b>") == '<p class="typed">one\n  two &lt;b&gt;</p>'
    assert "<h3>" in prompt("# Plan\n\nDo it")


def test_terminal_escapes_and_direction_overrides_are_not_shown() -> None:
    assert markdown("\x1b[31mred\x1b[0m \u202etxt") == "<p>red txt</p>\n"


def test_a_line_shows_its_emphasis_and_code() -> None:
    line = inline("Outcome of **all** in `run()`, see [it](https://x.example) <b>")

    assert line == "Outcome of <strong>all</strong> in <code>run()</code>, see it &lt;b&gt;"
    assert inline("**All** edits of src/__main__.py") == "<strong>All</strong> edits of src/__main__.py"


def test_lines_with_only_a_tag_are_no_part_of_a_prompt() -> None:
    typed = prompt("<planning_context>\nPlan the phase.\n</planning_context>\n<b_c> stays")

    assert typed == '<p class="typed">Plan the phase.\n&lt;b_c&gt; stays</p>'
