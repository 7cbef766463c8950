"""Tests of the pages of a session."""

import base64
import random
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from palaver.core.home import Home

from ..archiver.deletion.steps import exchange, forget
from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..archiver.formats.codex.codex_lines import CALL, PATCH, agent_reply, item, meta, user_prompt
from ..archiver.formats.codex.codex_lines import SESSION as CODEX_SESSION
from ..archiver.history import ORIGINAL, History
from ..archiver.redaction.planted import TOKENS, pem
from ..observe.transcript.sessions import bash, conversation, edit, long_session
from .crawling import Page, crawl, dangers
from .payloads import PAYLOADS
from .viewing import Viewer, text_of, viewing

SESSION = f"/sessions/{ORIGINAL}"
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def picture(data: bytes, media_type: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def everywhere(words: str) -> list[dict[str, Any]]:
    """Return a session with the same words in every place of a text."""
    thinking = {"type": "thinking", "thinking": words}
    return conversation(
        user(words),
        assistant(thinking, text(words), id="msg-1"),
        *bash(words, words, "toolu-bash"),
        *bash(f"make test # {words}", words, "toolu-failed", failed=True),
        assistant(text("Now the edit."), id="msg-2"),
        *edit(f"{words[:80]}.py", f"a\n{words}", f"{words}\nb", "toolu-edit"),
        assistant(text(f"# {words}\n\n- {words}\n\n`{words}`\n\n```\n{words}\n```\n\n[{words}]({words})"), id="msg-3"),
        assistant(tool(words[:90], {words: words}, "toolu-odd"), id="msg-4"),
        result([{"type": "text", "text": words}], {"stdout": words, words: words}, "toolu-odd"),
        assistant(tool("Task", {"description": words, "prompt": words}, "toolu-task"), id="msg-5"),
        result(words, {"agentId": "none"}, "toolu-task"),
        {"type": "system", "subtype": "compact_boundary", "content": words, "compactMetadata": {"trigger": words}},
        {**user(words * 2), "isCompactSummary": True},
        {"type": "system", "subtype": "away_summary", "content": words},
        {**user(words), "isMeta": True},
        user(f"{words}\n\n" * 40),
        assistant(text(words), id="msg-6"),
    )  # fmt: skip


def archived(root: Path, records: list[dict[str, Any]]) -> Home:
    """Return a home in which one session is archived."""
    with History(root) as history:
        history.write(records)
        history.ingest()
        return history.home


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Viewer of a session that needs several pages."""
    with viewing(archived(tmp_path_factory.mktemp("long"), long_session())) as viewer:
        yield viewer.enter()


def test_a_session_reads_as_its_story(tmp_path: Path) -> None:
    records = conversation(
        user("Fix the total"),
        assistant(text("I look at **it**."), id="msg-1"),
        *edit("cart.py", "a", "b", "toolu-1"),
        *bash("make test", "1 failed", "toolu-2", failed=True),
        *bash("make test", "3 passed", "toolu-3"),
        assistant(text("Done."), id="msg-2"),
    )
    with viewing(archived(tmp_path, records)) as viewer:
        html = viewer.enter().page(SESSION)

    story = text_of(html.partition('<div class="step')[2])
    words = [
        "You",
        "Fix the total",
        "I look at it .",
        "3 calls: 1 edit in cart.py +1 −1, tests failed, then passed",
        "Done.",
    ]
    places = [story.index(word) for word in words]
    assert places == sorted(places)


def test_the_first_page_is_small(long: Viewer) -> None:
    html = long.page(SESSION)

    assert len(Page(html).elements) < 900
    assert "Prose 0-0" in html
    assert "Prose 5-24" not in html


def test_calls_are_loaded_when_they_are_opened(tmp_path: Path) -> None:
    records = conversation(
        user("Go"), *bash("make test", "output of the tests", "toolu-1"), *bash("ls", "names", "toolu-2")
    )
    with viewing(archived(tmp_path, records)) as viewer:
        html = viewer.enter().page(SESSION)
        run = viewer.page(f"{SESSION}/calls?part=1&line=2&position=0&fragment=1")
        call = viewer.page(f"{SESSION}/call?part=1&line=2&position=0&call=0&fragment=1")
        whole = viewer.page(f"{SESSION}/call?part=1&line=2&position=0&call=0")

    assert "output of the tests" not in html + run
    assert "<code>make test</code>" in run
    assert "output of the tests" in call
    assert not call.lstrip().startswith("<!doctype")
    assert "output of the tests" in whole
    assert whole.startswith("<!doctype")


def test_every_link_of_a_session_leads_to_a_page(tmp_path: Path) -> None:
    with viewing(archived(tmp_path, long_session(2, 4))) as viewer:
        pages = crawl(viewer.enter(), SESSION)

    assert len(pages) > 50
    assert any("/edits" in path for path in pages)


def test_an_edit_opens_to_a_diff(tmp_path: Path) -> None:
    records = conversation(user("Go"), *edit("cart.py", "one\ntwo", "one\n2", "toolu-1"))
    with viewing(archived(tmp_path, records)) as viewer:
        html = viewer.enter().page(f"{SESSION}/edit?part=1&line=2&position=0")

    assert '<span class="minus">-two\n</span>' in html
    assert '<span class="plus">+2\n</span>' in html
    assert '<span class="same"> one\n</span>' in html


def test_a_patch_of_several_files_is_listed_by_file(tmp_path: Path) -> None:
    """Each file has its own counts, and opens to its own changes."""
    records = [meta(), *user_prompt("Go"), item("custom_tool_call", name="apply_patch", input=PATCH, call_id=CALL)]
    output = item("custom_tool_call_output", call_id=CALL, output="Exit code: 0\nOutput:\nSuccess")
    with History(tmp_path) as history:
        name = f"rollout-2026-03-01T10-00-00-{CODEX_SESSION}.jsonl"
        (history.folder / name).write_bytes(jsonl([*records, output, *agent_reply("Done.")]))
        history.ingest()
        home = history.home
    with viewing(home) as viewer:
        html = viewer.enter().page(f"/sessions/{CODEX_SESSION}/edits")
        one, two = (unescape(link) for link in re.findall(r'href="/view(/sessions/[^"]*/edit\?[^"]*)"', html))
        opened = [text_of(viewer.page(address)) for address in (one, two)]

    listed = text_of(html)
    assert "a.py 1 edit · over all sessions Apply patch +1 −1" in listed
    assert "b.py 1 edit · over all sessions Apply patch +1 Show" in listed
    assert ("+y" in opened[0], "+z" in opened[0]) == (True, False)
    assert ("+y" in opened[1], "+z" in opened[1]) == (False, True)


def test_a_link_to_a_line_marks_one_step(long: Viewer) -> None:
    for line in (1, 2, 4, 5, 6, 120):
        page = Page(long.page(f"{SESSION}?line={line}"))
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        marked = [attributes["id"] for _, attributes in page.elements if "found" in attributes.get("class", "").split()]

        assert marked == [f"L{line}"]
        assert len(set(ids)) == len(ids)


def test_a_session_opens_at_its_start_or_its_end(long: Viewer) -> None:
    assert "Prose 0-0" in long.page(SESSION)
    assert "Prose 5-24" in long.page(f"{SESSION}?end=1")


def test_a_hit_opens_the_line_that_its_snippet_shows(tmp_path: Path) -> None:
    """The fold that contains the line is open."""
    thought = {"type": "thinking", "thinking": "There are 2 failing tests related to the notice.", "signature": "s"}
    records = conversation(
        user("Fix the notice"),
        assistant(thought, id="msg-1"),
        assistant(text("I fix them."), id="msg-2"),
        *bash("make test", "2 passed", "toolu-1"),
        *bash("ls", "names", "toolu-2"),
        assistant(text("Done"), id="msg-9"),
    )
    with viewing(archived(tmp_path, records)) as viewer:
        near = "…There are 2 failing tests related to"
        answer = viewer.enter().client.get(f"/view{SESSION}?item=ex-1&line=1&near={near}", follow_redirects=False)
        opened = viewer.page(answer.headers["location"].removeprefix("/view").partition("#")[0])
        run = viewer.page(f"{SESSION}?line=6")

    assert answer.headers["location"].endswith("?part=1&line=2#L2")
    assert "failing tests" in opened
    assert re.search(r'<details class="step run found" id="L6"[^>]* open>', run)


def test_a_notice_before_the_first_prompt_opens(tmp_path: Path) -> None:
    caveat = {**user("Caveat: " + "the messages below were generated by a program. " * 5), "isMeta": True}
    records = conversation(caveat, user("Hello"), assistant(text("Hi"), id="msg-1"))
    with viewing(archived(tmp_path, records)) as viewer:
        viewer.enter()

        assert "text?part=1&amp;line=1" in viewer.page(SESSION)
        assert "generated by a program" in viewer.page(f"{SESSION}/text?part=1&line=1&position=0&fragment=1")
        assert "generated by a program" in viewer.page(f"{SESSION}/record?part=1&line=1")


def test_each_exchange_can_be_forgotten(tmp_path: Path) -> None:
    records = conversation(
        user("One"), assistant(text("First"), id="msg-1"), user("Two"), assistant(text("Second"), id="msg-2")
    )
    with viewing(archived(tmp_path, records)) as viewer:
        links = re.findall(r'href="/view(/forget\?target=ex-[^"]*)"', viewer.enter().page(SESSION))
        previews = [text_of(viewer.page(link)) for link in links]

    assert len(set(links)) == 2
    assert all("1 exchange" in preview for preview in previews)


def test_a_tag_that_begins_the_first_prompt_is_in_no_title(tmp_path: Path) -> None:
    records = conversation(
        user("<planning_context>\n**Mode:** quick\n</planning_context>"), assistant(text("Done"), id="msg-1")
    )
    with viewing(archived(tmp_path, records)) as viewer:
        html = viewer.enter().page(SESSION)

    assert "<h1>Mode: quick" in html
    assert "&lt;planning_context&gt;" not in html.partition("</h1>")[2]


def test_find_searches_the_whole_session(long: Viewer) -> None:
    html = long.page(f"{SESSION}/find?q=prose+0-3")

    assert "<mark>Prose 0-3</mark>" in html
    assert "line=" in html


def test_a_search_without_text_and_without_match_explains_itself(long: Viewer) -> None:
    assert "0 matches" in text_of(long.page(f"{SESSION}/find?q=zzz"))
    assert "match" not in text_of(long.page(f"{SESSION}/find?q="))


def test_following_returns_only_what_is_new(long: Viewer) -> None:
    lines = len(long_session())
    known = long.client.get(f"/view{SESSION}/after?part=1&line={lines - 1}&known={lines}&fragment=1")
    grown = long.client.get(f"/view{SESSION}/after?part=1&line={lines - 3}&known={lines - 2}&fragment=1")

    assert (known.status_code, known.text) == (204, "")
    assert grown.status_code == 200
    assert f'data-lines="{lines}"' in grown.text
    assert "Prompt 5" in grown.text
    assert "Prose 5-20" not in grown.text


@pytest.mark.parametrize(
    "query",
    ["?line=x", "?part=9", "?line=-1", "?start=1e9", "/call?line=1", "/call", "/text?line=9999", "/record?line=0"],
)
def test_a_wrong_address_is_explained(long: Viewer, query: str) -> None:
    html = long.page(f"{SESSION}{query}", 400)

    assert "Go back to the session" in html or "It has 1" in html


def test_an_unknown_session_is_not_found(long: Viewer) -> None:
    long.page("/sessions/ffffffff-0000-4000-8000-000000000000", 404)


def test_pictures_are_recognised_by_their_first_bytes(tmp_path: Path) -> None:
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    records = conversation(
        user([picture(PICTURE), picture(drawing, "image/svg+xml"), {"type": "text", "text": "Look"}]),
        assistant(text("I see."), id="msg-1"),
    )
    with viewing(archived(tmp_path, records)) as viewer:
        html = viewer.enter().page(SESSION)
        first = viewer.client.get(f"/view{SESSION}/picture?part=1&line=1&position=0")
        viewer.page(f"{SESSION}/picture?part=1&line=1&position=1", 400)

    assert "<img" in html
    assert (first.headers["content-type"], first.content) == ("image/png", PICTURE)
    assert "svg" not in html.replace("image/svg+xml", "")


def test_no_page_shows_a_secret(tmp_path: Path) -> None:
    token = TOKENS["github-pat"](random.Random(3))
    key = pem(random.Random(4))
    with viewing(archived(tmp_path, everywhere(f"token {token} and\n{key}\nend"))) as viewer:
        pages = crawl(viewer.enter(), SESSION)
        found = viewer.page(f"{SESSION}/find?q={token}")

    lines = [line for line in key.splitlines() if len(line) > 20 and "KEY" not in line]
    assert lines
    assert {path.partition("?")[0].rpartition("/")[2] for path in pages} >= {"call", "calls", "edit", "record", "text"}
    for path, html in pages.items():
        assert token not in html, path
        assert not [line for line in lines if line in html], path
    assert "0 matches" in text_of(found)
    assert any("[secret:" in html for html in pages.values())


def test_a_hit_with_a_bare_prompt_has_the_title_of_its_session(tmp_path: Path) -> None:
    records = conversation(
        user("Fix the tide table of the harbour"),
        assistant(text("Fixed."), id="msg-1"),
        user("commit"),
        assistant(text("Committed the lagoon."), id="msg-2"),
    )
    with viewing(archived(tmp_path, records)) as viewer:
        page = viewer.enter().page("/search?q=lagoon&kind=exchange")

    assert re.findall("data-row>([^<]*)<", page) == ["Fix the tide table of the harbour"]
    assert "prompt “commit”" in text_of(page)


def test_a_session_names_the_commands_that_continue_it(tmp_path: Path) -> None:
    home = archived(tmp_path, conversation(user("Go"), assistant(text("Done."), id="msg-1")))
    with viewing(home) as viewer:
        shown = text_of(viewer.enter().page(SESSION))

    assert "ID 1111 " in shown
    assert "Resume palaver resume 1111 Copy in /code/app" in shown
    assert "palaver handoff 1111" in shown


def test_no_page_shows_a_deleted_line(tmp_path: Path) -> None:
    records = conversation(
        user("First"),
        assistant(text("Kept"), id="msg-1"),
        user("DeletedCanary prompt"),
        assistant(text("DeletedCanary prose"), id="msg-2"),
        *bash("echo DeletedCanary", "DeletedCanary output", "toolu-1"),
        *edit("DeletedCanary.py", "DeletedCanary", "x", "toolu-2"),
        user("Third"),
        assistant(text("Kept too"), id="msg-3"),
    )
    home = archived(tmp_path, records)
    with viewing(home) as viewer:
        before = [*crawl(viewer.enter(), SESSION)]
    with History(tmp_path) as history:
        forget(history, exchange(history, "DeletedCanary prompt"))
    with viewing(home) as viewer:
        viewer.enter()
        pages = crawl(viewer, SESSION)
        answers = [viewer.client.get(path).text for path in before]

    assert "Kept too" in pages[f"/view{SESSION}"]
    assert "DeletedCanary" not in "".join([*pages.values(), *answers])


def test_hostile_payloads_execute_and_load_nothing(tmp_path: Path) -> None:
    assert len(PAYLOADS) >= 200
    records = [
        record
        for number, payload in enumerate(PAYLOADS)
        for record in (user(payload), *_hostile(payload, f"toolu-{number}"))
    ]
    with viewing(archived(tmp_path, conversation(*records))) as viewer:
        pages = crawl(viewer.enter(), SESSION, most=400)

    found = {path: dangers(html) for path, html in pages.items() if dangers(html)}
    assert found == {}
    assert len(pages) == 400


def _hostile(payload: str, name: str) -> list[dict[str, Any]]:
    return [
        assistant(text(payload), {"type": "thinking", "thinking": payload}, id=f"msg-{name}"),
        *edit(f"{payload[:60]}", payload, f"{payload}\n+", f"{name}-e"),
        *bash(payload, payload, f"{name}-b", failed=True),
        assistant(text(f"```{payload}\n{payload}\n```\n| {payload} |\n|---|\n> {payload}"), id=f"msg-2-{name}"),
    ]


@pytest.mark.parametrize(
    "prompt",
    ["Use this. <private> zebra", [{"type": "text", "text": "Use <private>"}, {"type": "text", "text": "zebra"}]],
    ids=["text", "parts"],
)
def test_no_page_shows_text_after_an_open_private_tag(tmp_path: Path, prompt: Any) -> None:
    home = archived(tmp_path, conversation(user(prompt), assistant(text("Noted."), id="msg-1")))
    with viewing(home) as viewer:
        viewer.enter()

        refused = viewer.page(f"{SESSION}/record?part=1&line=1", 400)

        assert "contains private text" in text_of(refused)
        assert "Noted." in viewer.page(f"{SESSION}/record?part=1&line=2")
        assert "zebra" not in refused + viewer.page(SESSION) + viewer.page(f"{SESSION}/text?part=1&line=1")
