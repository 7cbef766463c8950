"""Search over HTTP: the request of machines, and the tools of the MCP server, on a real PostgreSQL."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import anyio
import httpx2
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from msgspec import Raw, json

from palaver.agents.conversation_tools import CONVERSATION
from palaver.core.query import Filters
from palaver.team.protocol import Hello, Scope, TeamHits, TeamQuery
from palaver.team.server import identity
from palaver.team.server.database import TeamDatabase, administering

from .members import Machine, Refused, exchange, invited, request, serving
from .postgres import DatabaseUrls
from .test_team_search import KETTLE, MODEL, embedded, push, said, shared_session

ERAS = ["legacy", "2026-07-28"]
Scenario = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def url(pool: TeamDatabase) -> Iterator[str]:
    """URL of a running server with a small embedding model."""
    with serving(pool, MODEL) as address:
        yield address


class People(NamedTuple):
    """Two people of one team, and one of another, who share an exchange each."""

    ann: Machine
    bob: Machine
    cid: Machine


@pytest.fixture(scope="module")
def people(url: str, urls: DatabaseUrls) -> People:
    """Return the machines of the people."""
    found = People(*(Machine(url, invited(urls, name, team)) for name, team in zip("abc", "xxy", strict=True)))
    for machine, text in zip(found, (KETTLE, f"{KETTLE} too", f"{KETTLE} elsewhere"), strict=True):
        name = machine.joined.person_name
        push(machine, shared_session(f"s{name}"), embedded(said(f"{name}-1", text, session=f"s{name}"), text))
    return found


def hits(machine: Machine, query: TeamQuery) -> list[str]:
    """Return the titles of the hits of a machine, in alphabetical order."""
    return sorted(hit.title for hit in machine.post("search", query, TeamHits).hits)


def token(urls: DatabaseUrls, machine: Machine, audience: str, scopes: Sequence[Scope] = (Scope.READ,)) -> str:
    """Return a token of `palaver team token` for the person with a machine."""
    with administering(urls.owner) as connection:
        team, person = UUID(machine.joined.team), UUID(machine.joined.person)
        return identity.issue_token(connection, team, person, scopes, audience, 1)


def test_a_machine_finds_what_its_team_shares(people: People) -> None:
    """The hits contain the own items, unless the machine asks for those of others only."""
    assert hits(people.ann, TeamQuery(KETTLE)) == [KETTLE, f"{KETTLE} too"]
    assert hits(people.ann, TeamQuery(KETTLE, others=True)) == [f"{KETTLE} too"]
    assert hits(people.bob, TeamQuery(KETTLE, others=True)) == [KETTLE]
    assert hits(people.cid, TeamQuery(KETTLE, others=True)) == []
    assert hits(people.ann, TeamQuery(KETTLE, filters=Raw(json.encode(Filters(projects=("fork",)))))) == []


def test_a_relevant_item_of_the_own_shows_no_weak_hits_of_others(people: People) -> None:
    """The relevance threshold applies to what others share: nearest hits are left out, as on a machine."""
    words = "lantern oil burns low"
    item = embedded(said("a-2", words, session="sa"), words)
    push(people.ann, item)

    assert hits(people.ann, TeamQuery(words)) == [words]
    assert hits(people.ann, TeamQuery(words, others=True)) == []
    assert hits(people.bob, TeamQuery(words, others=True)) == [words]
    people.ann.push(withdrawn=[item.id])


def test_a_machine_can_compare_its_model(url: str) -> None:
    """The server states the name of its embedding model, as vectors are stored under it."""
    with httpx2.Client(trust_env=False) as client:
        assert json.decode(client.get(f"{url}/v1/hello").content, type=Hello).model == MODEL.name


@pytest.mark.parametrize(
    "query",
    [TeamQuery("x"), TeamQuery("kettle", limit=0), TeamQuery("kettle", filters=Raw(b'{"roles": 3}'))],
    ids=["short", "limit", "filters"],
)
def test_an_invalid_search_is_refused_with_a_reason(people: People, query: TeamQuery) -> None:
    """The reply names what is wrong."""
    with pytest.raises(Refused) as refused:
        people.ann.post("search", query, TeamHits)

    assert refused.value.status == 422
    assert refused.value.reason


def test_a_search_needs_the_scope_read(people: People, url: str, urls: DatabaseUrls) -> None:
    """A token that only allows to push cannot search, and one of another server cannot do anything."""
    for scopes, audience, status in (
        ((Scope.PUSH,), f"{url}/mcp", 403),
        ((Scope.READ,), "https://elsewhere/mcp", 401),
        ((Scope.READ,), f"{url}/mcp", 200),
    ):
        access = token(urls, people.ann, audience, scopes)
        try:
            assert len(request(url, "search", TeamQuery(KETTLE), TeamHits, access).hits) == 2
            found = 200
        except Refused as refused:
            found = refused.status
        assert found == status


def connected(url: str, access: str, era: str, scenario: Scenario) -> None:
    """Run a scenario with an MCP client."""

    async def run() -> None:
        headers = {"Authorization": f"Bearer {access}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client,
        ):
            await scenario(client)

    anyio.run(run)


def text_of(result: CallToolResult) -> str:
    """Return the text of the reply of a tool."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_searches_and_reads_what_a_colleague_shares(
    people: People, url: str, urls: DatabaseUrls, era: str
) -> None:
    """The three tools work with a token, in all protocol versions."""

    async def scenario(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "get_observations", "read"]
        found = await client.call_tool("search", {"query": f"{KETTLE} too", "response_format": "json"})
        assert found.structured_content is not None
        best = found.structured_content["results"][0]
        assert (best["title"], best["project"]) == (f"{KETTLE} too", "spoon (b)")
        assert "elsewhere" not in text_of(found)
        details = await client.call_tool("get_observations", {"ids": [best["id"]]})
        assert f"{KETTLE} too" in text_of(details)
        lines = await client.call_tool("read", {"path": best["id"]})
        assert f"{KETTLE} too" in text_of(lines)

    connected(url, token(urls, people.ann, f"{url}/mcp"), era, scenario)


def test_an_agent_is_offered_only_kinds_that_a_team_shares(people: People, url: str, urls: DatabaseUrls) -> None:
    """Documents, code and computed lists are neither in the schema nor accepted."""
    kinds = ["observation", "exchange", "memory"]

    async def scenario(client: Client) -> None:
        search = (await client.list_tools()).tools[0]
        assert search.input_schema["properties"]["kind"]["enum"] == kinds
        for kind in ("document", "code", "command"):
            refused = await client.call_tool("search", {"query": KETTLE, "kind": kind})
            assert refused.is_error
            assert "'observation', 'exchange' or 'memory'" in text_of(refused)
        found = await client.call_tool("search", {"query": KETTLE, "kind": "exchange"})
        assert KETTLE in text_of(found)

    connected(url, token(urls, people.ann, f"{url}/mcp"), ERAS[-1], scenario)


def test_an_agent_is_offered_only_what_a_team_answers(people: People, url: str, urls: DatabaseUrls) -> None:
    """Output cannot be searched and sessions have no IDs, so no parameter and no help mentions them."""
    access = token(urls, people.ann, f"{url}/mcp")

    async def scenario(client: Client) -> None:
        tools = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
        own = {tool.name: tool.schema["properties"] for tool in CONVERSATION.tools}
        assert {name: [*parameters] for name, parameters in tools.items()} == {
            name: [parameter for parameter in parameters if parameter != "in"] for name, parameters in own.items()
        }
        assert tools["search"]["by"]["description"] == "session: the best hit of each session"
        assert tools["read"]["path"]["description"] == "An id or a path from search"
        for name in ("query", "limit", "types", "also"):
            assert tools["search"][name] == own["search"][name]
        output = await client.call_tool("search", {"query": "kettle", "in": "output"})
        assert "in is not a parameter" in text_of(output)
        session = await client.call_tool("read", {"path": "s1a2b3c4"})
        assert session.is_error
        assert "session ID" not in text_of(session)
        for query in ("k", 3, ["kettle", KETTLE]):
            reply = await client.call_tool("search", {"query": query, "by": "session", "limit": 5.0})
            assert reply.is_error == (query in {"k", 3} if isinstance(query, str | int) else False)
        assert (await client.call_tool("read", {})).is_error

    connected(url, access, ERAS[-1], scenario)


@pytest.mark.parametrize("era", ERAS)
def test_ids_of_another_team_are_unknown(people: People, url: str, urls: DatabaseUrls, era: str) -> None:
    """An agent with the IDs of a hit gets nothing, neither with that of the protocol nor with that of the tools."""
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            "SELECT id, key, session FROM palaver.item WHERE kind = 'exchange' AND team = %s", (people.ann.joined.team,)
        ).fetchall()

    async def scenario(client: Client) -> None:
        for name, key, session in rows:
            for public in (str(name), f"exch-{key}"):
                result = await client.call_tool("get_observations", {"ids": [public]})
                assert "Invalid observation ID" in text_of(result)
            result = await client.call_tool("read", {"path": f"{session}/a.jsonl"})
            assert "File not found" in text_of(result)

    assert len(rows) == 2

    connected(url, token(urls, people.cid, f"{url}/mcp"), era, scenario)


def call(url: str, access: str = "", **headers: str) -> httpx2.Response:
    """Send the first request of an MCP client."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    sent = {"accept": "application/json, text/event-stream", **headers}
    if access:
        sent["authorization"] = f"Bearer {access}"
    with httpx2.Client(trust_env=False) as client:
        return client.post(f"{url}/mcp", json=body, headers=sent)


def test_a_request_without_a_valid_token_learns_where_to_get_one(people: People, url: str, urls: DatabaseUrls) -> None:
    """An unknown, expired or revoked token, and one of another server, get the address of the metadata."""
    valid, expired = (token(urls, people.ann, f"{url}/mcp") for _ in range(2))
    with psycopg.connect(urls.owner) as connection:
        connection.execute(
            "UPDATE palaver.token SET expires = now() - interval '1 s' WHERE hash = %s", (identity.digest(expired),)
        )
    foreign = token(urls, people.ann, "https://elsewhere/mcp")
    metadata = f"{url}/.well-known/oauth-protected-resource/mcp"

    assert call(url, valid).status_code == 200
    for access in ("", "unknown", expired, foreign):
        response = call(url, access)
        assert response.status_code == 401
        assert f'resource_metadata="{metadata}"' in response.headers["www-authenticate"]
        assert 'scope="read"' in response.headers["www-authenticate"]
    with httpx2.Client(trust_env=False) as client:
        described = client.get(metadata).json()
    assert (described["resource"], described["scopes_supported"]) == (f"{url}/mcp", ["read"])


def test_a_token_without_the_scope_is_told_which_one_it_lacks(people: People, url: str, urls: DatabaseUrls) -> None:
    """A token that only allows to push gets 403."""
    response = call(url, token(urls, people.ann, f"{url}/mcp", (Scope.PUSH,)))

    assert response.status_code == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert 'scope="read"' in response.headers["www-authenticate"]


def test_other_pages_and_names_are_refused(people: People, url: str, urls: DatabaseUrls) -> None:
    """A page of another origin gets nothing, even with a token, and neither does another name of this host."""
    access = token(urls, people.ann, f"{url}/mcp")

    assert call(url, access, origin="https://elsewhere").status_code == 403
    assert call(url, access, host="elsewhere").status_code == 421
    assert call(url, access, origin=url).status_code == 200


def test_a_revoked_person_finds_nothing(url: str, urls: DatabaseUrls) -> None:
    """After `palaver team revoke`, the tokens of a person are unknown."""
    dan = Machine(url, invited(urls, "dan", "z"))
    dan.push([exchange("a spoon")])
    access = token(urls, dan, f"{url}/mcp")
    assert call(url, access).status_code == 200

    with administering(urls.owner) as connection:
        identity.revoke(connection, UUID(dan.joined.team), "dan")

    assert call(url, access).status_code == 401
    with pytest.raises(Refused) as refused:
        hits(dan, TeamQuery("spoon"))
    assert refused.value.status == 401
