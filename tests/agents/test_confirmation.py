"""Tests for agents/tool_calls.py: the user is asked before a deletion, in both eras."""

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import httpx2
import orjson
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent
from msgspec.structs import replace

from palaver.agents.fabric import FABRIC
from palaver.agents.historian_tools import HISTORIAN
from palaver.agents.rag import RAG
from palaver.agents.server import build
from palaver.agents.theo import THEO
from palaver.agents.toolset import ServedTools, ServerConfig, Toolset
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from .test_http_server import Served, serving

ERAS = ["legacy", "2026-07-28"]
Scenario = Callable[[Client], Coroutine[Any, Any, None]]
pytestmark = pytest.mark.parametrize("era", ERAS)


class User:
    """User who answers every question with the same action. `before` runs before each answer."""

    def __init__(self, action: str, before: Callable[[], object] = lambda: None) -> None:
        self.action, self.before = action, before
        self.questions: list[str] = []

    async def __call__(self, context: object, params: object) -> ElicitResult:
        """Answer a question."""
        assert context is not None
        assert isinstance(params, ElicitRequestFormParams)
        assert params.requested_schema == {"type": "object", "properties": {}}
        self.questions.append(params.message)
        self.before()
        return ElicitResult.model_validate({"action": self.action, "content": {} if self.action == "accept" else None})


def connected(
    folder: Path, toolset: Toolset, user: User | None, era: str, scenario: Scenario, *, read_only: bool = False
) -> None:
    """Run the scenario with a client that shows questions to `user`, or that cannot show any."""
    (folder / "project").mkdir(exist_ok=True)

    async def run() -> None:
        home = Home(folder / "palaver", read_only=read_only)
        config = ServerConfig(Archive(home), Renderer(), (folder,), folder / "project")
        context = toolset.open(config)  # stays open for a second connection

        def opened(_: ServerConfig) -> object:
            return context

        served = ServedTools.of([replace(toolset, open=opened)])
        async with Client(build(served, config), mode=era, elicitation_callback=user) as client:
            await scenario(client)

    anyio.run(run)


def stored(folder: Path, *contents: str) -> list[str]:
    """Store memories and return their IDs."""
    with Archive(Home(folder / "palaver")).memories as core:
        return [core.remember(Memory(each, "decision")).stored.id for each in contents]


def remaining(folder: Path) -> int:
    """Return the number of memories."""
    with Archive(Home(folder / "palaver")).memories as core:
        return core.count()


def reply(result: CallToolResult) -> dict[str, Any]:
    """Return the JSON object of a reply."""
    [content] = result.content
    assert isinstance(content, TextContent)
    fields: dict[str, Any] = orjson.loads(content.text)
    return fields


def test_a_deletion_that_the_user_accepts_is_done(tmp_path: Path, era: str) -> None:
    """The question lists what will be deleted."""
    [first, _] = stored(tmp_path, "Use SQLite, one file", "Deploy on Fridays only")
    user = User("accept")

    async def scenario(client: Client) -> None:
        result = await client.call_tool("memory_forget", {"memory_id": first})
        assert reply(result)["data"]["deleted_ids"] == [first]

    connected(tmp_path, THEO, user, era, scenario)
    assert user.questions == [f"Forget this memory?\n- {first} [global] Use SQLite, one file\nYou can undo it."]
    assert remaining(tmp_path) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_deletion_that_the_user_declines_is_not_done(tmp_path: Path, era: str, action: str) -> None:
    """The agent gets an error that tells it not to repeat the call."""
    [first] = stored(tmp_path, "Use SQLite, one file")

    async def scenario(client: Client) -> None:
        result = await client.call_tool("memory_forget", {"memory_id": first})
        assert result.is_error
        assert reply(result)["error"] == "The user declined. Nothing was deleted"
        assert reply(result)["hint"] == "Do not repeat the call unless the user asks for it."

    connected(tmp_path, THEO, User(action), era, scenario)
    assert remaining(tmp_path) == 1


def test_a_client_without_questions_deletes_at_once(tmp_path: Path, era: str) -> None:
    """Without elicitation the call works as its toolset specifies, and the reply has the command that undoes it."""
    [first] = stored(tmp_path, "Use SQLite, one file")

    async def scenario(client: Client) -> None:
        result = await client.call_tool("memory_forget", {"memory_id": first})
        assert reply(result)["data"]["undo"] == f"palaver memories undo {first}"

    connected(tmp_path, THEO, None, era, scenario)
    assert remaining(tmp_path) == 0


def test_an_answer_counts_only_for_what_was_shown(tmp_path: Path, era: str) -> None:
    """If other memories would be deleted after the answer, nothing is deleted without another question."""
    stored(tmp_path, "Deploy on Fridays only, because the team is complete then")
    more = iter(["Deploy on Fridays only after the tests passed"])
    user = User("accept", lambda: stored(tmp_path, *[each for each in [next(more, "")] if each]))

    async def scenario(client: Client) -> None:
        result = await client.call_tool("memory_forget", {"query": "when do we deploy on Fridays"})
        if era == "legacy":
            assert result.is_error
            assert reply(result)["error"] == "Another process changed some of the selected items"
        else:
            assert len(reply(result)["data"]["deleted_ids"]) == 2

    connected(tmp_path, THEO, user, era, scenario)
    assert user.questions[0].startswith("Forget this memory?")
    assert remaining(tmp_path) == (2 if era == "legacy" else 0)
    if era != "legacy":
        assert user.questions[1].startswith("Forget 2 memories?")


def test_nothing_is_asked_about_a_call_that_fails_or_reads(tmp_path: Path, era: str) -> None:
    """Invalid and unknown arguments are reported without a question, and so is a call in read-only mode."""
    [first] = stored(tmp_path, "Use SQLite, one file")
    user = User("accept")

    async def failing(client: Client) -> None:
        for arguments in ({"memory_id": "mem_99"}, {}, {"memory_id": 7}):
            assert (await client.call_tool("memory_forget", arguments)).is_error
        assert not (await client.call_tool("memory_list", {})).is_error
        assert (await client.call_tool("clear_index", {"confirm": False})).is_error

    async def read_only(client: Client) -> None:
        result = await client.call_tool("memory_forget", {"memory_id": first})
        assert "read-only mode" in reply(result)["error"]

    connected(tmp_path, THEO, user, era, failing)
    connected(tmp_path, THEO, user, era, read_only, read_only=True)
    assert user.questions == []


def test_every_toolset_asks_before_a_deletion(tmp_path: Path, era: str) -> None:
    """The tools of rag, fabric and historian that delete, and those of theo for documents, ask too."""
    user = User("decline")
    page = tmp_path / "page.md"
    page.write_text("# Tides\n\nHigh water is at noon.\n")

    async def rag(client: Client) -> None:
        identity = reply(await client.call_tool("store_memory", {"content": "Tabs", "category": "preference"}))
        result = await client.call_tool("delete_memory", {"memory_id": identity["memory_id"]})
        assert reply(result)["error"]["message"] == "The user declined. Nothing was deleted"

    async def fabric(client: Client) -> None:
        given: dict[str, Any] = {"type": "decision", "content": "Spaces", "metadata": {}, "layer": 3}
        identity = reply(await client.call_tool("context.store", given))["id"]
        assert (await client.call_tool("context.delete", {"memoryId": identity})).is_error
        old: dict[str, Any] = {"sessionId": "s1", "layer": 3, "olderThanDays": 0, "options": {"targetTokens": 100}}
        assert (await client.call_tool("context.summarize", old)).is_error
        assert not (await client.call_tool("context.get", {"memoryId": identity})).is_error

    async def historian(client: Client) -> None:
        given = {"title": "Tides", "content": "High water is at noon", "memoryType": "learning"}
        await client.call_tool("memory_remember", given)
        listed = await client.call_tool("memory_forget", {"query": "high water"})
        assert len(reply(listed)["candidates"]) == 1
        assert (await client.call_tool("memory_forget", {"query": "high water", "confirm": True})).is_error
        change = {"query": "high water", "modifications": "High water is at one"}
        assert (await client.call_tool("memory_compound", change)).is_error
        new = {"query": "harbour dues", "modifications": "Ten a night"}
        assert reply(await client.call_tool("memory_compound", new))["createdNew"]

    async def theo(client: Client) -> None:
        chunks = reply(await client.call_tool("index_file", {"file_path": str(page)}))["data"]["chunk_ids"]
        assert (await client.call_tool("delete_chunks", {"ids": chunks})).is_error
        assert (await client.call_tool("delete_file", {"source_file": str(page)})).is_error
        assert (await client.call_tool("clear_index", {"confirm": True})).is_error
        assert reply(await client.call_tool("get_index_stats", {}))["data"]["total_documents"] == len(chunks)
        one, other = stored(tmp_path, "Use SQLite, one file", "Deploy on Fridays only")
        edge = {"source_id": one, "target_id": other, "relation": "relates_to"}
        await client.call_tool("memory_relate", edge)
        assert (await client.call_tool("memory_edge_forget", {"memory_id": one})).is_error

    for toolset, scenario in ((RAG, rag), (FABRIC, fabric), (HISTORIAN, historian), (THEO, theo)):
        connected(tmp_path, toolset, user, era, scenario)
    assert [each.splitlines()[0] for each in user.questions] == [
        "Forget this memory?",
        "Forget this memory?",
        "Replace 2 memories with a summary?",
        "Forget this memory?",
        "Replace the content of this memory?",
        "Delete 1 chunk?",
        "Delete all chunks of this file from the index?",
        "Delete all documents from the index?",
        "Remove this edge?",
    ]


def test_every_deletion_names_its_undo(tmp_path: Path, era: str) -> None:
    """Clients that cannot ask delete at once, so each reply says how to restore what was deleted."""
    page = tmp_path / "page.md"
    page.write_text("# Tides\n\nHigh water is at noon.\n")
    one, other = stored(tmp_path, "Use SQLite, one file", "Deploy on Fridays only")
    again = "Index the files again with index_file or index_directory."

    async def theo(client: Client) -> None:
        async def undo(name: str, **arguments: object) -> object:
            return reply(await client.call_tool(name, arguments))["data"]["undo"]

        edge = {"source_id": one, "target_id": other, "relation": "relates_to", "weight": 0.5}
        await client.call_tool("memory_relate", edge)
        removed = reply(await client.call_tool("memory_edge_forget", {"memory_id": one}))["data"]
        assert removed["undo"] == "Call memory_relate for each edge in `deleted`."
        [row] = removed["deleted"]
        assert (row["source"], row["target"], row["relation"], row["weight"]) == tuple(edge.values())
        assert await undo("memory_forget", memory_id=one) == f"palaver memories undo {one}"
        indexed = reply(await client.call_tool("index_file", {"file_path": str(page)}))["data"]["chunk_ids"]
        assert await undo("delete_chunks", ids=indexed) == again
        restored = reply(await client.call_tool("index_file", {"file_path": str(page)}))["data"]
        assert restored["chunks_created"] == len(indexed)
        assert await undo("delete_file", source_file=str(page)) == again
        await client.call_tool("index_file", {"file_path": str(page)})
        assert await undo("clear_index", confirm=True) == again
        assert "undo" not in reply(await client.call_tool("clear_index", {"confirm": True}))["data"]

    connected(tmp_path, THEO, None, era, theo)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_question_reaches_a_client_of_a_real_server(tmp_path: Path, era: str, transport: str) -> None:
    """A separate process asks over stdio and over HTTP."""
    first, second = stored(tmp_path, "Use SQLite, one file", "Deploy on Fridays only")
    home = tmp_path / "palaver"

    async def scenario(client: Client, user: User) -> None:
        result = await client.call_tool("memory_forget", {"memory_id": first})
        assert reply(result)["data"]["deleted_ids"] == [first]
        user.action = "decline"
        assert (await client.call_tool("memory_forget", {"memory_id": second})).is_error
        assert [each.splitlines()[0] for each in user.questions] == ["Forget this memory?"] * 2

    async def over_stdio() -> None:
        words, environment = (
            ["-m", "palaver", "mcp", "--toolset", "theo"],
            dict(os.environ) | {"PALAVER_HOME": str(home)},
        )
        user, server = User("accept"), StdioServerParameters(command=sys.executable, args=words, env=environment)
        async with Client(stdio_client(server), mode=era, elicitation_callback=user) as client:
            await scenario(client, user)

    async def over_http(server: Served) -> None:
        user, headers = User("accept"), {"Authorization": f"Bearer {server.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(server.url, http_client=http), mode=era, elicitation_callback=user) as client,
        ):
            await scenario(client, user)

    if transport == "stdio":
        anyio.run(over_stdio)
    else:
        with serving(home, "--toolset", "theo") as server:
            anyio.run(over_http, server)
    assert remaining(tmp_path) == 1
