"""Tests of the pages in Chromium: accessibility, widths, keys, and pages of other ports."""

import os
import shutil
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from palaver.core.home import Home
from palaver.viewer.gate import Access

from .browsing import opened, serving
from .test_pages import PAGES

pytestmark = pytest.mark.browser
AXE = Path(os.environ.get("AXE", "node_modules/axe-core/axe.min.js"))
"""Script of axe-core, which `.ci/run` installs."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SHOWN = [
    *(page for page in PAGES if "99" not in page),
    "/search?q=tide&explain=1",
    "/items/obs-18",
    "/forget?target=obs-18",
    "/memories/review",
    "/memories/review?declined=1",
    "/files?path=tide.py",
    "/sessions/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01",
    "/sessions/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01/edits",
    "/sessions/3a17e5d0-91f4-4b8a-a2e6-7d3c0b5f8204",
]


@pytest.fixture(scope="module")
def served(built: Home) -> Iterator[Access]:
    """Viewer of the demo archive on a free port."""
    with serving(built) as access:
        yield access


@cache
def axe() -> str:
    if not AXE.exists() and not os.environ.get("CI"):
        pytest.skip("axe-core is not installed: npm install axe-core")
    return AXE.read_text("utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_pages_are_accessible_and_fit(browser: Browser, served: Access, scheme: str, width: int) -> None:
    """No page violates WCAG 2.2 AA, and none is wider than the window."""
    problems, script = dict[str, object](), axe()
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with opened(browser, served, "/view/", **options) as page:
        for path in SHOWN:
            page.goto(f"{served.origin}/view{path}")
            page.wait_for_load_state("networkidle")
            page.evaluate(script)
            found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
            if violations := [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]]:
                problems[path] = violations
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                problems[f"{path} too wide"] = True
    assert problems == {}


def test_keys_move_through_a_list_and_search(browser: Browser, served: Access) -> None:
    with opened(browser, served, "/view/sessions") as page:
        rows = page.locator("[data-row]")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert rows.nth(1).evaluate("row => row === document.activeElement")
        page.keyboard.press("k")
        assert rows.nth(0).evaluate("row => row === document.activeElement")
        page.keyboard.press("/")
        page.keyboard.type("tide j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/view/search?q=tide+j")
        page.keyboard.press("Control+k")
        assert page.locator("[data-search]").evaluate("field => field === document.activeElement")


def test_a_filter_is_applied_when_it_changes(browser: Browser, served: Access) -> None:
    with opened(browser, served, "/view/sessions") as page:
        page.locator("summary").first.click()
        page.get_by_label("Sub-agents").select_option("Listed too")
        page.wait_for_url("**/view/sessions?subagents=1")


def test_a_session_is_labelled_without_script(browser: Browser, built: Home, tmp_path: Path) -> None:
    """The form of a session, and the pages that show what it stored, are accessible and fit."""
    shutil.copytree(built.root, tmp_path / "own")
    size = {"width": 360, "height": 800}
    with serving(Home(tmp_path / "own")) as access:
        with opened(browser, access, "/view/sessions", java_script_enabled=False, viewport=size) as page:
            page.locator("[data-row]").last.click()
            session = page.url
            page.get_by_text("Rename, tag or pin").click()
            page.get_by_label("Title").fill("Ebb and flow")
            page.get_by_label("Tags").fill("tides, later")
            page.get_by_label("Pinned").check()
            page.get_by_role("button", name="Save").click()
            assert page.locator("h1").inner_text() == "Ebb and flow"
            page.locator(".labels a").first.click()
            assert page.locator("[data-row]").all_inner_texts() == ["Ebb and flow"]
        with opened(browser, access, "/view/", viewport=size) as page:
            for address in (session, f"{access.origin}/view/", f"{access.origin}/view/sessions?tag=later"):
                page.goto(address)
                page.evaluate(axe())
                assert page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)["violations"] == []
                assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_lists_work_without_script(browser: Browser, served: Access) -> None:
    with opened(browser, served, "/view/archive", java_script_enabled=False) as page:
        page.get_by_text("Run the checks").click()
        assert page.locator("h1").inner_text() == "Checks"
        page.locator("input[type=search]").fill("tide")
        page.keyboard.press("Enter")
        page.wait_for_url("**/view/search?q=tide")
        assert page.locator(".hit").count() > 0


ATTACK = """<title></title>
<form id=form method=post action="{target}/view/deletions/undo"><input name=deletion value=1></form>
<a id=link href="{target}/view/sessions">link</a>
<script>
fetch("{target}/view/", {{credentials: "include"}}).then(
    (answer) => answer.text().then(() => document.title = "read"), () => document.title = "refused");
</script>"""


class Attacker(BaseHTTPRequestHandler):
    """Page on another local port that tries to read and to change the archive."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(ATTACK.format(target=self.server.target).encode())  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature is the library's
        """Log nothing."""


def test_the_page_of_another_port_reaches_nothing(browser: Browser, served: Access) -> None:
    """Its requests carry the cookie, because cookies do not distinguish ports, but are refused."""
    server = HTTPServer(("127.0.0.1", 0), Attacker)
    server.target = served.origin  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/"
    try:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.link())
        assert page.locator("h1").count() == 1
        page.goto(address)
        page.wait_for_function("document.title !== ''")
        assert page.title() == "refused"
        with page.expect_navigation() as followed:
            page.click("#link")
        assert followed.value.status == 403
        page.goto(address)
        with page.expect_navigation() as sent:
            page.evaluate("document.getElementById('form').submit()")
        assert sent.value.status == 403
        context.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_search_in_a_narrow_window_shows_its_hits_first(browser: Browser, served: Access) -> None:
    """The hits have the whole width, and the facets are folded below them."""
    with opened(browser, served, "/view/search?q=tide", viewport={"width": 360, "height": 800}) as page:
        hits, facets = page.locator(".hits").bounding_box(), page.locator(".facets").bounding_box()
        assert hits is not None
        assert facets is not None
        assert hits["width"] > 300
        assert facets["y"] > hits["y"] + hits["height"]
        assert not page.locator(".facets .facet").first.is_visible()
        page.locator(".facets > summary").click()
        assert page.locator(".facets .facet").first.is_visible()


def test_a_part_that_loads_by_itself_shows_no_link_before(browser: Browser, served: Access) -> None:
    """Until a part is loaded, an ellipsis reserves its line. Without script, the link to the part is visible."""
    with opened(browser, served, "/view/archive") as page:
        assert page.locator(".lazy").count() == 0
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<a class=lazy href=/view/>Load</a>')")
        assert page.locator(".lazy").evaluate("link => getComputedStyle(link).visibility") == "hidden"
        assert page.locator(".lazy").evaluate("link => getComputedStyle(link, '::before').content") == '"…"'
    with opened(browser, served, "/view/archive", java_script_enabled=False) as page:
        assert page.get_by_text("Run the checks").is_visible()
