"""Tests of the gate: only the viewer's own pages, in the browser that opened the link, get an answer."""

from collections.abc import Iterator

import pytest

from palaver.core.home import Home

from .viewing import HOST, PORT, Viewer, viewing


@pytest.fixture
def closed(built: Home) -> Iterator[Viewer]:
    """Viewer whose link was not opened yet."""
    with viewing(built) as viewer:
        yield viewer


@pytest.fixture
def viewer(closed: Viewer) -> Viewer:
    """Viewer whose link was opened."""
    return closed.enter()


def test_link_opens_the_home_page(viewer: Viewer) -> None:
    assert "<h1" in viewer.page("/")


def test_link_leads_to_the_requested_page(closed: Viewer) -> None:
    answer = closed.client.get(closed.access.link("/view/search?q=a b"), follow_redirects=False)

    assert answer.headers["location"] == "/view/search?q=a%20b"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/view/", "/elsewhere", "/view/\r\nx: y"])
def test_link_never_leads_elsewhere(closed: Viewer, target: str) -> None:
    answer = closed.client.get(closed.access.link(target), follow_redirects=False)

    assert answer.headers["location"].startswith("/view/")
    assert "x" not in answer.headers


def test_link_works_once(closed: Viewer) -> None:
    link = closed.access.link()
    closed.enter()
    closed.client.cookies.clear()

    assert closed.client.get(link, follow_redirects=False).status_code == 403
    assert closed.client.get("/view/").status_code == 403


def test_next_link_opens_another_browser(viewer: Viewer) -> None:
    viewer.client.cookies.clear()

    assert viewer.client.get(viewer.access.link()).status_code == 200


def test_cookie_is_for_this_port_and_hidden_from_scripts(closed: Viewer) -> None:
    cookie = closed.client.get(closed.access.link(), follow_redirects=False).headers["set-cookie"]

    assert cookie.startswith(f"palaver-{PORT}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize("path", ["/", "/view", "/view/", "/view/static/viewer.css", "/view/nothing", "/other"])
def test_nothing_is_answered_without_the_cookie(closed: Viewer, path: str) -> None:
    assert closed.client.get(path).status_code == 403


@pytest.mark.parametrize(
    "cookie", ["palaver-9101=wrong", "palaver-9102={cookie}", "palaver-9101=", 'palaver-9101="', "=", "palaver-9101=é"]
)
def test_a_foreign_cookie_is_refused(closed: Viewer, cookie: str) -> None:
    header = cookie.format(cookie=closed.access.cookie).encode("latin-1")

    assert closed.client.get("/view/", headers={b"cookie": header}).status_code == 403


@pytest.mark.parametrize(
    "host",
    [f"127.0.0.1:{PORT}", f"localhost:{PORT}", HOST, f"{HOST}:80", f"evil.example:{PORT}", f"{HOST}:{PORT}.evil"],
)
def test_a_foreign_host_is_refused(viewer: Viewer, host: str) -> None:
    assert viewer.client.get("/view/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unknown"])
def test_requests_of_other_pages_are_refused(viewer: Viewer, site: str) -> None:
    assert viewer.client.get("/view/", headers={"sec-fetch-site": site}).status_code == 403
    assert viewer.client.get(viewer.access.link(), headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_own_requests_pass(viewer: Viewer, site: str) -> None:
    assert viewer.client.get("/view/", headers={"sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize("origin", ["null", "http://evil.example", f"http://127.0.0.1:{PORT}", f"http://{HOST}:1"])
def test_a_foreign_origin_is_refused(viewer: Viewer, origin: str) -> None:
    headers = {"origin": origin}
    form = {"form_token": viewer.access.form_token, "deletion": "1"}

    assert viewer.client.get("/view/", headers=headers).status_code == 403
    assert viewer.client.post("/view/deletions/undo", data=form, headers=headers).status_code == 403


def test_a_form_needs_an_origin(viewer: Viewer) -> None:
    form = {"form_token": viewer.access.form_token, "deletion": "1"}

    assert viewer.client.post("/view/deletions/undo", data=form).status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_a_form_needs_the_form_token(viewer: Viewer, token: str) -> None:
    form = {"form_token": token, "deletion": "1"} if token else {"deletion": "1"}
    headers = {"origin": viewer.access.origin}

    assert viewer.client.post("/view/deletions/undo", data=form, headers=headers).status_code == 403


def test_a_form_token_is_sent_once(viewer: Viewer) -> None:
    """Two fields could be read differently by the gate and by the page."""
    body = f"form_token={viewer.access.form_token}&form_token=x&deletion=1"
    headers = {"origin": viewer.access.origin, "content-type": "application/x-www-form-urlencoded"}

    assert viewer.client.post("/view/deletions/undo", content=body, headers=headers).status_code == 403


def test_a_form_with_the_token_reaches_its_page(viewer: Viewer) -> None:
    assert "palaver forget --list" in viewer.submit("/deletions/undo", {"deletion": "99"}, 400)


def test_a_long_form_is_refused(viewer: Viewer) -> None:
    viewer.submit("/deletions/undo", {"deletion": "9" * 1_000_001}, 413)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(viewer: Viewer, method: str) -> None:
    assert viewer.client.request(method, "/view/").status_code == 403


@pytest.mark.parametrize("path", ["/view/", "/view/nothing", "/view/static/viewer.js", "/view/items/obs-999999"])
@pytest.mark.parametrize("entered", [True, False])
def test_every_answer_has_the_headers(closed: Viewer, path: str, *, entered: bool) -> None:
    if entered:
        closed.enter()
    headers = closed.client.get(path).headers

    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("name", ["..%2fgate.py", "viewer.py", "%2e%2e/pages.py", ""])
def test_only_static_files_are_served(viewer: Viewer, name: str) -> None:
    assert viewer.client.get(f"/view/static/{name}").status_code == 404
