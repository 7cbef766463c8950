"""Protection of a running server: limits of requests without a token, an unreachable database, and the log."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.cookies import SimpleCookie
from threading import Barrier
from typing import NoReturn, cast
from uuid import UUID

import httpx2
import psycopg
import pytest
from msgspec import json
from psycopg.conninfo import conninfo_to_dict
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from palaver.archiver.redaction.redactor import Redactor
from palaver.core.errors import TeamRefused
from palaver.team.protocol import ChallengeRequest, Join, Refusal, TeamHits, TeamQuery
from palaver.team.server import app as team_app
from palaver.team.server import database as team_database
from palaver.team.server import identity
from palaver.team.server.app import ServerSettings, TeamServer
from palaver.team.server.database import Database, TeamDatabase
from palaver.team.server.rate_limit import RateLimit
from palaver.team.server.serving import http_server
from palaver.team.server.site import site

from .members import Machine, Refused, invited, request, serving
from .postgres import DatabaseUrls, database, server
from .test_search_requests import call, token
from .test_team_search import MODEL

KEY = "00" * 32


class Clock:
    """Clock of a test, in seconds."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_an_address_has_a_number_of_requests_in_each_minute() -> None:
    """Counts begin anew with the next minute, and other addresses are not affected."""
    clock = Clock()
    limit = RateLimit(2, clock)
    for _ in range(2):
        limit.take("192.0.2.1")
    with pytest.raises(TeamRefused, match="Too many requests"):
        limit.take("192.0.2.1")
    limit.take("192.0.2.2")
    clock.now += 60
    limit.take("192.0.2.1")


def test_all_addresses_of_an_ipv6_network_count_together() -> None:
    """A machine cannot use up more by changing the last 64 bits of its address."""
    limit = RateLimit(1, Clock())
    limit.take("2001:db8::1")
    with pytest.raises(TeamRefused):
        limit.take("2001:db8::ffff:1")
    limit.take("2001:db8:0:1::1")


def test_ipv4_addresses_count_separately_on_a_socket_for_both_versions() -> None:
    """Such a socket states them as addresses of one IPv6 network. They count as the same addresses of IPv4."""
    limit = RateLimit(1, Clock())
    limit.take("::ffff:192.0.2.1")
    for address in ("::ffff:192.0.2.1", "192.0.2.1"):
        with pytest.raises(TeamRefused):
            limit.take(address)
    limit.take("::ffff:192.0.2.2")


def post(url: str, name: str, message: object) -> httpx2.Response:
    """Send a request without a token."""
    with httpx2.Client(trust_env=False) as client:
        return client.post(f"{url}/v1/{name}", content=json.encode(message))


def test_wrong_join_codes_are_limited(pool: TeamDatabase, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some wrong codes, an address waits, also with a right one. Right codes do not count."""
    monkeypatch.setattr(team_app, "_FAILED_JOINS", 3)
    with serving(pool) as url:
        _, _, _, machine = (Machine(url, invited(urls, "ann")) for _ in range(4))
        wrong = Join("WRONG", machine.key.public_key().public_bytes_raw().hex(), "laptop", machine.epoch)
        assert [post(url, "join", wrong).status_code for _ in range(4)] == [403, 403, 403, 429]
        refused = post(url, "join", wrong)
        assert refused.headers["retry-after"] == "60"
        assert "Try again in 60 seconds" in json.decode(refused.content, type=Refusal).hint
        with pytest.raises(Refused) as problem:
            Machine(url, invited(urls, "ann"))
        assert problem.value.status == 429
        assert machine.status().person == "ann"


def test_wrong_join_codes_at_the_same_time_are_limited(pool: TeamDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request counts from its beginning, so that nobody sends many guesses before the first reply."""
    monkeypatch.setattr(team_app, "_FAILED_JOINS", 3)
    at_once = Barrier(3)

    def join(_database: TeamDatabase, _request: Join) -> NoReturn:
        at_once.wait(30)
        raise TeamRefused("The code is unknown", status=403)

    monkeypatch.setattr(identity, "join", join)
    with serving(pool) as url, ThreadPoolExecutor(6) as threads:
        wrong = Join("WRONG", "0" * 64, "laptop", str(UUID(int=1)))
        sent = [threads.submit(post, url, "join", wrong) for _ in range(6)]
        statuses = sorted(response.result().status_code for response in sent)

    assert statuses == [403, 403, 403, 429, 429, 429]


def test_challenges_are_limited(pool: TeamDatabase, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every challenge counts, so that nobody fills the table of challenges."""
    monkeypatch.setattr(team_app, "_CHALLENGES", 2)
    with serving(pool) as url:
        machine = Machine(url, invited(urls, "ann"))
        asked = [post(url, "challenge", ChallengeRequest(machine.joined.device)) for _ in range(3)]
    assert [response.status_code for response in asked] == [200, 200, 429]
    assert asked[-1].headers["retry-after"] == "60"


@pytest.mark.parametrize("proxy", ["127.0.0.1", "::1"])
def test_clients_of_a_proxy_count_separately(
    pool: TeamDatabase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, proxy: str
) -> None:
    """A proxy on the same machine states their addresses. If it states none, the log says so once."""
    monkeypatch.setattr(team_app, "_FAILED_JOINS", 1)
    app = site(TeamServer(pool, ServerSettings("https://team.test", "test"), Redactor(b"k" * 16), MODEL))
    running = cast("ASGIApp", http_server(app, None, None).config.loaded_app)  # pyright: ignore[reportUnknownMemberType]
    wrong = json.encode(Join("WRONG", "0" * 64, "laptop", str(UUID(int=1))))
    with TestClient(running, base_url="http://team.test", client=(proxy, 5)) as client:

        def statuses(client_address: str) -> list[int]:
            headers = {"x-forwarded-for": client_address} if client_address else {}
            return [client.post("/v1/join", content=wrong, headers=headers).status_code for _ in range(2)]

        assert statuses("192.0.2.1")[1:] == [429]
        assert statuses("192.0.2.2")[:1] != [429]
        assert not caplog.records
        statuses("")
    [record] = caplog.records
    assert "X-Forwarded-For" in record.message


def test_nobody_who_connects_directly_chooses_an_address(pool: TeamDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header of another machine than this one does not count."""
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    monkeypatch.setattr(team_app, "_FAILED_JOINS", 1)
    app = site(TeamServer(pool, ServerSettings("https://team.test", "test"), Redactor(b"k" * 16), MODEL))
    running = cast("ASGIApp", http_server(app, None, None).config.loaded_app)  # pyright: ignore[reportUnknownMemberType]
    wrong = json.encode(Join("WRONG", "0" * 64, "laptop", str(UUID(int=1))))
    with TestClient(running, base_url="http://team.test", client=("198.51.100.1", 5)) as client:
        claimed = [{"x-forwarded-for": f"192.0.2.{number}"} for number in range(2)]
        assert [client.post("/v1/join", content=wrong, headers=headers).status_code for headers in claimed][1:] == [429]


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Machine, str]]:
    """Server whose database refuses connections, a machine of a member, and a token for agents."""
    monkeypatch.setattr(team_database, "_WAIT", 0.5)
    with database() as urls, closing(TeamDatabase(urls.app, size=1)) as pool, serving(pool, MODEL) as url:
        machine = Machine(url, invited(urls, "ann"))
        access = token(urls, machine, f"{url}/mcp")
        assert machine.status().person == "ann"
        name = conninfo_to_dict(urls.owner)["dbname"]
        with psycopg.connect(server().get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        yield url, machine, access


def test_an_unreachable_database_is_reported_as_such(down: tuple[str, Machine, str]) -> None:
    """Machines, agents and browsers get 503 with a sentence, and no internal error."""
    url, machine, access = down
    for name in ("status", "search"):
        with pytest.raises(Refused, match="The database of the team does not answer") as refused:
            request(url, name, TeamQuery("kettle"), TeamHits, access if name == "search" else machine.token)
        assert refused.value.status == 503
    agent = call(url, access)
    assert (agent.status_code, "does not answer" in agent.text) == (503, True)
    with httpx2.Client(base_url=url, trust_env=False) as browser:
        sent = {"origin": url, "sec-fetch-site": "same-origin"}
        entered = browser.post("/enter", data={"token": access}, headers=sent)
    assert (entered.status_code, "does not answer" in entered.text) == (503, True)


def test_the_log_names_a_failed_statement_without_its_rows(
    pool: TeamDatabase, urls: DatabaseUrls, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL quotes the row that violates a constraint. The log and the reply have only the SQLSTATE."""
    secret = "the text of a colleague"
    create = "CREATE TEMP TABLE note (body text CHECK (length(body) < 3)) ON COMMIT DROP"

    def fail(connection: Database) -> None:
        connection.execute(create.encode())
        connection.execute("INSERT INTO note VALUES (%s)", (secret,))

    with psycopg.connect(urls.app) as connection, pytest.raises(psycopg.errors.CheckViolation, match=secret):
        fail(connection)
    with caplog.at_level(logging.DEBUG), pytest.raises(TeamRefused) as refused, pool.transaction() as connection:
        fail(connection)
    assert (refused.value.status, str(refused.value)) == (500, "The server failed")
    assert refused.value.__suppress_context__
    assert "SQLSTATE 23514 in " in caplog.text
    assert secret not in caplog.text


def test_the_log_names_the_function_of_a_failed_statement(
    pool: TeamDatabase, urls: DatabaseUrls, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member whose request fails gets no detail, and the administrator gets the place to look at."""

    def same(_size: int) -> str:
        return "the same each time"

    monkeypatch.setattr("palaver.team.server.identity.secrets.token_urlsafe", same)
    with serving(pool) as url:
        machine = Machine(url, invited(urls, "ann"))
        ask = ChallengeRequest(machine.joined.device)
        with caplog.at_level(logging.ERROR):
            assert [post(url, "challenge", ask).status_code for _ in range(2)] == [200, 500]

    assert "SQLSTATE 23505 in identity.py: challenge" in caplog.text
    assert "Key (" not in caplog.text


@pytest.mark.parametrize(("url", "secure"), [("https://team.test", True), ("http://127.0.0.1:8347", False)])
def test_the_cookie_is_secure_if_members_use_https(
    pool: TeamDatabase, urls: DatabaseUrls, url: str, *, secure: bool
) -> None:
    """Behind a proxy the server itself speaks HTTP, and `--url` decides."""
    with serving(pool) as address:
        machine = Machine(address, invited(urls, "ann"))
    server = TeamServer(pool, ServerSettings(url, "test"), Redactor(b"k" * 16), MODEL)
    with TestClient(site(server), base_url=url.replace("https", "http"), follow_redirects=False) as browser:
        sent = {"origin": url, "sec-fetch-site": "same-origin"}
        access = token(urls, machine, f"{url}/mcp")
        entered = browser.post("/enter", data={"token": access}, headers=sent)
    [cookie] = SimpleCookie(entered.headers["set-cookie"]).values()

    assert entered.status_code == 303
    assert bool(cookie["secure"]) is secure
    assert cookie.key.startswith("__Host-") is secure
