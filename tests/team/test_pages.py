"""Pages of a team server over HTTP, with the checks that protect them."""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

import httpx2
import pytest

from palaver.team.protocol import Scope
from palaver.team.server import identity
from palaver.team.server.database import TeamDatabase, administering

from .members import Machine, invited, memory, serving
from .postgres import DatabaseUrls
from .test_search_requests import token
from .test_team_search import MODEL, learned, push, said, shared_session

HOSTILE = "kettle <script>alert(1)</script> ![x](https://evil.example/x.png)"


class Team(NamedTuple):
    """Person of a team who looks at pages, and what others share."""

    url: str
    ann: Machine
    eve: Machine
    access: str
    urls: DatabaseUrls


@pytest.fixture(scope="module")
def team(urls: DatabaseUrls, pool: TeamDatabase) -> Iterator[Team]:
    """Return a server with two teams."""
    with serving(pool, MODEL) as url:
        ann, bob, eve = (
            Machine(url, invited(urls, name, group)) for name, group in (("ann", "x"), ("bob", "x"), ("eve", "y"))
        )
        answers = [f"Answer {number}: **polish** the kettle." for number in range(3)]
        push(bob, shared_session("s"), said("one", "Which kettle?", *answers, session="s"), memory("Tea is hot"))
        push(bob, said("two", HOSTILE, HOSTILE, session="s", ordinal=1), memory(HOSTILE))
        push(bob, learned("card", "one", "The kettle is made of brass", session="s"))
        push(eve, said("other", "the secret kettle of another team"))
        yield Team(url, ann, eve, token(urls, ann, f"{url}/mcp"), urls)


@pytest.fixture
def browser(team: Team) -> Iterator[httpx2.Client]:
    """Browser without a cookie."""
    with httpx2.Client(base_url=team.url, trust_env=False, headers={"sec-fetch-site": "same-origin"}) as client:
        yield client


def enter(browser: httpx2.Client, team: Team, access: str, **headers: str) -> httpx2.Response:
    """Send the form with a token."""
    return browser.post("/enter", data={"token": access}, headers={"origin": team.url, **headers})


def test_a_person_sees_what_the_team_shares(browser: httpx2.Client, team: Team) -> None:
    """After entering, a search leads to the observation and to the conversation, and to nothing of another team."""
    assert "Enter with your token" in browser.get("/").text
    entered = enter(browser, team, team.access)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=strict" in entered.headers["set-cookie"]

    assert "The kettle is made of brass" in browser.get("/").text
    found = browser.get("/", params={"q": "kettle brass"}).text
    assert "The kettle is made of brass" in found
    assert "spoon (bob)" in found
    assert "another team" not in found
    lines = found.partition('href="/lines/')[2].partition('"')[0]
    conversation = browser.get(f"/lines/{lines}").text
    assert "Answer 2: <strong>polish</strong> the kettle." in conversation
    item = found.partition('href="/items/obs-')[2].partition('"')[0]
    assert 'href="/lines/' in browser.get(f"/items/obs-{item}").text


def test_hostile_text_is_only_text(browser: httpx2.Client, team: Team) -> None:
    """A shared text adds no element that runs or loads anything."""
    enter(browser, team, team.access)
    found = browser.get("/", params={"q": "kettle alert"}).text
    lines = found.partition('href="/lines/')[2].partition('"')[0]
    item = found.partition('href="/items/')[2].partition('"')[0]
    for page in (found, browser.get(f"/lines/{lines}").text, browser.get(f"/items/{item}").text):
        assert "alert(1)" in page
        assert "<script>alert" not in page
        assert "<img" not in page


def test_only_a_valid_token_enters(browser: httpx2.Client, team: Team) -> None:
    """An unknown token, one for another server and one without the scope get the form again."""
    others = (
        token(team.urls, team.ann, "https://elsewhere/mcp"),
        token(team.urls, team.ann, f"{team.url}/mcp", (Scope.PUSH,)),
    )
    for access in ("", "unknown", *others):
        refused = enter(browser, team, access)
        assert refused.status_code == 401
        assert "unknown or expired" in refused.text
        assert "set-cookie" not in refused.headers
    for path in ("/", "/items/obs-1", "/lines/x/a.jsonl"):
        assert browser.get(path).status_code == 401
    assert enter(browser, team, "x" * 2_000).status_code == 413


def test_other_pages_are_refused(browser: httpx2.Client, team: Team) -> None:
    """A request of another page, or for another name of this host, is refused before the token is read."""
    assert enter(browser, team, team.access, origin="https://elsewhere").status_code == 403
    assert browser.post("/enter", data={"token": team.access}).status_code == 403
    assert enter(browser, team, team.access).status_code == 303
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "elsewhere"},
        {"origin": "null"},
    ):
        assert browser.get("/", headers=headers).status_code == 403


def test_every_answer_has_the_headers_of_the_viewer(browser: httpx2.Client, team: Team) -> None:
    """Also errors and styles forbid scripts of others, frames and caches."""
    enter(browser, team, team.access)
    for path, status in (
        ("/", 200),
        ("/static/viewer.css", 200),
        ("/items/obs-9999", 404),
        ("/lines/x/y?line=z", 400),
        ("/no/page", 404),
    ):
        response = browser.get(path)
        assert response.status_code == status
        assert response.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert response.headers["cache-control"] == "no-store"


def test_errors_are_explained_on_pages_of_the_team(browser: httpx2.Client, team: Team) -> None:
    """They have no links to pages of the personal viewer, and no help about IDs that a team does not have."""
    enter(browser, team, team.access)
    for path in ("/no/page", "/items/ex-1", "/items/exch-999999", "/lines/x/y", "/lines/x/y?line=z"):
        page = browser.get(path).text
        assert "x, as ann" in page
        assert "Shared with your team" in page
        assert not [word for word in ("Observations", "Usage", "chunk_", "session ID") if word in page]
    browser.cookies.clear()
    assert browser.get("/no/page").status_code == 401
    refused = browser.get("/", headers={"origin": "null"}).text
    assert "Usage" not in refused
    assert "Sign out" not in refused


def test_a_person_signs_out(browser: httpx2.Client, team: Team) -> None:
    """The form of the own pages deletes the cookie. Other forms and other pages do not."""
    enter(browser, team, team.access)
    page = browser.get("/").text
    assert "x, as ann" in page
    value = page.partition('name="form_token" value="')[2].partition('"')[0]
    own = {"origin": team.url}
    for form, headers in (
        ({"form_token": value}, {}),
        ({"form_token": value}, {"origin": "https://elsewhere"}),
        ({"form_token": value}, {**own, "sec-fetch-site": "cross-site"}),
        ({"form_token": "é"}, own),
        ({}, own),
    ):
        refused = browser.post("/sign-out", data=form, headers=headers)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
    assert browser.get("/").status_code == 200
    left = browser.post("/sign-out", data={"form_token": value}, headers=own)
    assert (left.status_code, left.headers["location"]) == (303, "/")
    assert browser.get("/").status_code == 401
    assert enter(browser, team, team.access).status_code == 303


def test_ids_and_paths_of_another_team_are_unknown(browser: httpx2.Client, team: Team) -> None:
    """What a person of another team finds is not shown, also not by its address."""
    enter(browser, team, token(team.urls, team.eve, f"{team.url}/mcp"))
    found = browser.get("/", params={"q": "secret kettle"}).text
    assert "another team" in found
    item = found.partition('href="/items/')[2].partition('"')[0]
    enter(browser, team, team.access)
    shown = browser.get(f"/items/{item}")
    assert shown.status_code == 404
    assert "another team" not in shown.text


def test_a_revoked_token_shows_the_form(browser: httpx2.Client, team: Team) -> None:
    """The token is checked for each page."""
    dan = Machine(team.url, invited(team.urls, "dan", "x"))
    enter(browser, team, token(team.urls, dan, f"{team.url}/mcp"))
    assert browser.get("/").status_code == 200
    with administering(team.urls.owner) as connection:
        identity.revoke(connection, UUID(dan.joined.team), "dan")

    assert browser.get("/").status_code == 401
