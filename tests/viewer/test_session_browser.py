"""Tests of the session page in Chromium. They are skipped where it is missing, except in continuous integration."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from palaver.core.home import Home

from ..archiver.formats.claude_code.claude_lines import assistant, text, user
from ..archiver.history import ORIGINAL, History
from ..observe.transcript.sessions import bash, conversation, long_session
from .browsing import opened, serving
from .payloads import PAYLOADS

pytestmark = pytest.mark.browser
SESSION = f"/view/sessions/{ORIGINAL}"


def archived(root: Path, records: list[dict[str, Any]]) -> Home:
    with History(root) as history:
        history.write(records)
        history.ingest()
        return history.home


@pytest.mark.parametrize("bypass_csp", [True, False], ids=["sanitiser alone", "with policy"])
def test_hostile_payloads_do_nothing_in_a_browser(browser: Browser, tmp_path: Path, bypass_csp: bool) -> None:
    records = [record for payload in PAYLOADS for record in (user(payload), assistant(text(payload), id=payload))]
    home, pages = archived(tmp_path, conversation(*records)), 0
    with serving(home) as access, opened(browser, access, f"{SESSION}?start=1", bypass_csp=bypass_csp) as page:
        while True:
            for summary in page.locator("details.open > summary").all()[:5]:
                summary.click()
            page.wait_for_load_state("networkidle")
            assert page.evaluate("window.hit") is None
            assert page.locator("main script, main iframe, main object, main style").count() == 0
            pages += 1
            if page.locator("a[rel=next]").count() == 0:
                break
            page.locator("a[rel=next]").click()
            page.wait_for_load_state("networkidle")
    assert pages > 3


def test_a_run_opens_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    records = conversation(user("Go"), *bash("ls", "names", "toolu-1"), *bash("make test", "3 passed", "toolu-2"))
    with serving(archived(tmp_path, records)) as access, opened(browser, access, SESSION) as page:
        page.locator("details.run > summary").focus()
        page.keyboard.press("Enter")
        page.locator(".calls summary").nth(1).click()
        page.get_by_text("3 passed").wait_for()

        assert page.locator(".calls .run").count() == 2


def test_calls_open_without_script(browser: Browser, tmp_path: Path) -> None:
    records = conversation(user("Go"), *bash("make test", "3 passed", "toolu-1"))
    with (
        serving(archived(tmp_path, records)) as access,
        opened(browser, access, SESSION, java_script_enabled=False) as page,
    ):
        page.locator("details.run > summary").click()
        page.get_by_text("Show the call").click()

        assert page.get_by_text("3 passed").count() == 1


def test_a_page_follows_the_session_at_its_end_only(browser: Browser, tmp_path: Path) -> None:
    records = long_session(2, 12)
    further = conversation(*records, user("A new prompt"), assistant(text("A new answer"), id="msg-new"))[
        len(records) :
    ]
    with History(tmp_path) as history:
        history.write(records)
        history.ingest()
        with serving(history.home) as access, opened(browser, access, SESSION) as page:
            page.evaluate("scrollTo(0, 0)")
            history.append(further[:1])
            history.ingest()
            page.get_by_role("button", name="1 new step").click()
            page.get_by_text("A new prompt").first.wait_for()
            page.evaluate("scrollTo({top: document.documentElement.scrollHeight, behavior: 'instant'})")
            history.append(further[1:], at=3)
            history.ingest()
            page.get_by_text("A new answer").wait_for()

            assert page.locator("section.exchange").count() == 3
            assert page.locator("#more button").count() == 0
            lines = page.locator("[data-line]").evaluate_all("nodes => nodes.map(node => +node.dataset.line)")
            assert lines == sorted(set(lines))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(browser: Browser, tmp_path: Path, scheme: str) -> None:
    words = "a_very_long_name_without_any_space_" * 20
    records = conversation(
        user(words),
        assistant(text(f"{words}\n\n```\n{words}\n```\n\n| {words} | b |\n|---|---|\n| c | d |"), id="msg-1"),
        *bash(f"cat {words}", words, "toolu-1", failed=True),
    )
    viewport = {"width": 360, "height": 740}
    with (
        serving(archived(tmp_path, records)) as access,
        opened(browser, access, SESSION, viewport=viewport, color_scheme=scheme) as page,
    ):
        page.locator("details.run > summary").click()
        page.locator("pre.output").wait_for()

        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("permissions", [["clipboard-read", "clipboard-write"], []], ids=["allowed", "refused"])
def test_a_button_copies_the_command_that_resumes(browser: Browser, tmp_path: Path, permissions: list[str]) -> None:
    """Without the right to copy, the button selects the command. A click on the command selects it, too."""
    records = conversation(user("Go"), assistant(text("Done."), id="msg-1"))
    with (
        serving(archived(tmp_path, records)) as access,
        opened(browser, access, SESSION, permissions=permissions) as page,
    ):
        if not permissions:
            page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('refused')))")
        page.locator("[data-copy]").first.click()
        page.get_by_role("button", name="Copied" if permissions else "Selected").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()") if permissions else ""
        selected = page.evaluate("String(getSelection())")
        page.locator(".commands code").nth(1).click()

        assert (copied or selected) == "palaver resume 1111"
        assert page.evaluate("String(getSelection())") == "palaver handoff 1111"
