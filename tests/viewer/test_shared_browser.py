"""Shared files in Chromium, opened from the disk, and their download from the viewer."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.home import Home
from palaver.core.shared_session import ShareOptions
from palaver.observe.archive import Archive
from palaver.observe.pipeline import Pipeline
from palaver.viewer.shared_html import shared_html

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from ..archiver.history import ORIGINAL, History
from ..observe.shared import image, planted, png
from ..observe.transcript.sessions import bash, conversation, edit
from .browsing import opened, serving
from .payloads import PAYLOADS
from .test_browser import RULES, axe

pytestmark = pytest.mark.browser


def write(root: Path, records: list[dict[str, Any]], **options: bool) -> Path:
    """Archive a session, and write it as a file."""
    folder = root / "projects" / "shop"
    folder.mkdir(parents=True)
    (folder / f"{ORIGINAL}.jsonl").write_bytes(jsonl(records))
    home = Home(root / "home")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([folder]))
    with Archive(home) as archive:
        sharing = archive.sharing
        page = shared_html(sharing.session(sharing.number(ORIGINAL), ShareOptions(**options)))
    path = root / "shared.html"
    path.write_text(page)
    return path


@contextmanager
def from_disk(browser: Browser, path: Path, **options: Any) -> Generator[Page]:
    """Open a file from the disk. It must request nothing but itself, and log no error."""
    context = browser.new_context(**options)
    page = context.new_page()
    requests, messages = list[str](), list[str]()

    def refuse(dialog: Dialog) -> None:
        messages.append(dialog.message)
        dialog.dismiss()

    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("dialog", refuse)
    page.goto(path.as_uri())
    page.wait_for_load_state("networkidle")
    yield page
    assert [url for url in requests if url != path.as_uri() and not url.startswith("data:")] == []
    assert messages == []
    context.close()


def rich() -> list[dict[str, Any]]:
    """Return a session with every kind of step."""
    words = "a_very_long_name_without_any_space_" * 20
    return conversation(
        user([{"type": "text", "text": "# Paint\n\nLook at this."}, image(png())]),
        assistant({"type": "thinking", "thinking": "Which colour?"}, id="m1"),
        assistant(text(f"I **paint** it.\n\n```py\nx = 1\n```\n\n| {words} | b |\n|---|---|\n| c | d |"), id="m2"),
        *edit("door.py", "a\nb\n", "a\nc\n", "t1"),
        *bash(f"cat {words}", f"{words}\n" * 300, "t2", failed=True),
        assistant(text("One more."), id="m3"),
        *bash("make test", "3 passed", "t3"),
        user("Second prompt " * 400),
        assistant(text("Done."), id="m4"),
    )


@pytest.mark.parametrize("bypass_csp", [True, False], ids=["sanitiser alone", "with policy"])
def test_hostile_payloads_do_nothing_in_a_shared_file(browser: Browser, tmp_path: Path, bypass_csp: bool) -> None:
    records = list[dict[str, Any]]()
    for number, payload in enumerate(PAYLOADS):
        records += [user(payload), assistant(text(payload), id=f"m{number}"), *bash(payload, payload, f"t{number}")]
    path = write(tmp_path, conversation(*records), output=True)
    with from_disk(browser, path, bypass_csp=bypass_csp) as page:
        page.evaluate("document.querySelectorAll('details').forEach((details) => details.open = true)")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.hit") is None
        assert page.locator("main script, main iframe, main object, main style, main form, main svg").count() == 0
        assert page.locator("section.exchange").count() > 200
        addresses = page.locator("main a[href]").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert [url for url in addresses if not url.startswith(("#e", "http://", "https://", "mailto:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_shared_file_is_accessible_and_fits(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    """It does not violate WCAG 2.2 AA, closed or opened, and is not wider than the window."""
    script, path = axe(), write(tmp_path, rich(), output=True)
    with from_disk(browser, path, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        page.evaluate(script)
        for action in ("0", "document.querySelectorAll('details').forEach((details) => details.open = true)"):
            page.evaluate(action)
            found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
            assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_shared_file_is_readable_without_script(browser: Browser, tmp_path: Path) -> None:
    """Calls open, pictures are shown, and the outline leads to each prompt."""
    with from_disk(browser, write(tmp_path, rich(), output=True), java_script_enabled=False) as page:
        assert page.locator("h1").inner_text() != ""
        assert page.locator(".said img").evaluate("picture => picture.naturalWidth") == 8
        page.locator("details.run > summary").first.click()
        assert page.locator(".calls").first.is_visible()
        page.locator(".outline a").nth(1).click()
        assert page.url.endswith("#e2")
        assert page.evaluate("scrollY") > 0
        assert 0 <= page.locator("#e2").evaluate("section => section.getBoundingClientRect().top") < 700


def test_a_shared_file_prints_whole_prompts(browser: Browser, tmp_path: Path) -> None:
    """The outline is left out on paper, and the text of a folded prompt is printed."""
    with from_disk(browser, write(tmp_path, rich())) as page:
        long_prompt = page.locator("#e2 .said .opened p")
        folded = page.locator("#e2 .said").bounding_box()
        page.emulate_media(media="print")
        printed = page.locator("#e2 .said").bounding_box()
        assert folded is not None
        assert printed is not None
        assert printed["height"] > folded["height"] + 200
        assert long_prompt.count() == 1
        assert not page.locator(".outline").is_visible()


def test_the_viewer_shows_a_preview_and_downloads_the_file(browser: Browser, tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.write(conversation(*planted()[:-1]))
        history.ingest()
        with serving(history.home) as access, opened(browser, access, f"/view/sessions/{ORIGINAL}") as page:
            page.get_by_text("Share session…").click()
            page.get_by_text("Redacted", exact=True).wait_for()
            assert "github-pat 1" in page.locator("dl.pairs").inner_text()
            page.get_by_label("Content").select_option("output")
            page.get_by_text("Update the preview").click()
            page.get_by_text("tool outputs").wait_for()
            page.evaluate(axe())
            violations = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)["violations"]
            assert [rule["id"] for rule in violations] == []
            with page.expect_download() as download:
                page.get_by_text("Download the file").click()
            target = tmp_path / "downloaded.html"
            download.value.save_as(target)
    assert download.value.suggested_filename.endswith(".html")
    with from_disk(browser, target) as page:
        assert page.locator("section.exchange").count() == 2
