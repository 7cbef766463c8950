"""Tests for agents/tool_calls.py: progress, pages, cache hints and structured content."""

import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams
from msgspec.structs import replace

from palaver.agents.conversation_tools import CONVERSATION
from palaver.agents.server import build
from palaver.agents.tool_calls import ToolCalls, ToolContexts
from palaver.agents.toolset import REPORTER, TOOLSETS, ServedTools, ServerConfig, Tool, ToolReply, Toolset, find_toolset
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.core.tokens import count
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from .. import demo

ERAS = ["legacy", "2026-07-28"]


def config(folder: Path) -> ServerConfig:
    """Return the configuration of a server without an archive."""
    (folder / "project").mkdir(exist_ok=True)
    return ServerConfig(Archive(Home(folder / "palaver")), Renderer(), (folder,), folder / "project")


@pytest.mark.parametrize("era", ERAS)
def test_a_long_call_reports_its_progress(tmp_path: Path, era: str) -> None:
    """A client that asks for progress gets the seconds since the start and the stage, until the reply."""
    reported = threading.Event()
    received: list[tuple[float, str | None]] = []

    def slow(_context: object) -> ToolReply:
        """Wait until the client has received progress twice."""
        REPORTER.get()("Reading", 12, 3400)
        return ToolReply("done" if reported.wait(60) else "no progress")

    async def reporting(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        received.append((progress, message))
        if len(received) == 2:
            reported.set()

    def fail(error: PalaverError) -> ToolReply:
        return ToolReply(str(error))

    async def run() -> None:
        toolset = Toolset("slow", "", (Tool.of(slow),), fail, lambda _config: None)
        async with Client(build(ServedTools.of([toolset]), config(tmp_path)), mode=era) as client:
            result = await client.call_tool("slow", {}, progress_callback=reporting)
            assert getattr(result.content[0], "text", "") == "done"

    anyio.run(run)
    assert [message for _, message in received[:2]] == ["Reading: 12 of 3,400"] * 2
    assert 0 < received[0][0] < received[1][0]


def test_schemas_are_derived_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second list of tools, as another client of an HTTP server requests it, repeats the first."""
    listed: list[str] = []

    def derived(tool: Tool) -> dict[str, Any]:
        listed.append(tool.name)
        return {"type": "object"}

    async def run() -> None:
        async with Client(build(ServedTools.of([CONVERSATION]), config(tmp_path)), cache=None) as client:
            assert (await client.list_tools()).tools == (await client.list_tools()).tools

    monkeypatch.setattr(Tool, "schema", property(derived))
    anyio.run(run)

    assert listed == ["search", "get_observations", "read"]


@pytest.mark.parametrize("era", ERAS)
def test_lists_are_one_page_in_the_same_order(tmp_path: Path, era: str) -> None:
    """Every list repeats its order, and refuses the cursor of another page."""

    async def run() -> None:
        served = ServedTools.of([find_toolset(name) for name in TOOLSETS], prefix=True)
        async with Client(build(served, config(tmp_path)), mode=era, cache=None) as client:
            lists: list[Any] = [
                client.list_tools,
                client.list_prompts,
                client.list_resources,
                client.list_resource_templates,
            ]
            for listed in lists:
                first, second = await listed(), await listed()
                assert first.next_cursor is None
                assert first.model_dump() == second.model_dump()
                with pytest.raises(MCPError, match=r"Invalid cursor\. The list is a single page"):
                    await listed(cursor="2")

    anyio.run(run)


def test_lists_say_how_long_they_are_valid(tmp_path: Path) -> None:
    """Clients keep lists of tools and prompts for an hour, and those of sessions for as long as changes take."""

    async def run() -> None:
        served = ServedTools.of([find_toolset("conversation")])
        async with Client(build(served, config(tmp_path)), mode="2026-07-28") as client:
            hints = [
                (each.ttl_ms, each.cache_scope)
                for each in (
                    await client.list_tools(),
                    await client.list_prompts(),
                    await client.list_resource_templates(),
                    await client.list_resources(),
                )
            ]
            assert hints == [(3_600_000, "private")] * 3 + [(10_000, "private")]

    anyio.run(run)


def test_instructions_are_short(tmp_path: Path) -> None:
    """The instructions of each toolset have fewer than 200 tokens, with the names of projects too."""
    place = replace(config(tmp_path), archive=Archive(demo.archived(tmp_path / "demo")))
    for name in TOOLSETS:
        instructions = ServedTools.of([find_toolset(name)]).instructions_for(place)
        assert 20 < count(instructions) < 120
        assert ("Projects: seed-library, tide-clock." in instructions) is (name == "conversation")


def called(folder: Path, function: Callable[[], None], report: Callable[..., Coroutine[Any, Any, None]]) -> Any:
    """Call a tool whose client gets its progress by `report`."""

    def slow(_context: object) -> ToolReply:
        """Call the function."""
        function()
        return ToolReply("done")

    toolset = Toolset("slow", "", (Tool.of(slow),), lambda error: ToolReply(str(error)), lambda _config: None)
    calls = ToolCalls(ServedTools.of([toolset]), ToolContexts(config(folder)))
    context: Any = SimpleNamespace(protocol_version="2025-06-18", session=SimpleNamespace(report_progress=report))
    return anyio.run(calls.call_tool, context, CallToolRequestParams(name="slow"))


def test_a_failure_to_report_progress_keeps_the_reply(tmp_path: Path) -> None:
    """If progress cannot be sent, the client still gets the reply of the finished tool."""
    tried = threading.Event()

    async def broken(*_values: object, **_named: object) -> None:
        tried.set()
        raise anyio.BrokenResourceError

    result = called(tmp_path, lambda: None if tried.wait(60) else pytest.fail("no progress"), broken)

    assert result.content[0].text == "done"


def test_a_failure_of_a_tool_is_raised_alone(tmp_path: Path) -> None:
    """An unexpected failure of a tool reaches the server as itself, not in a group."""

    def fail() -> None:
        raise ZeroDivisionError

    async def report(*_values: object, **_named: object) -> None:
        pass

    with pytest.raises(ZeroDivisionError):
        called(tmp_path, fail, report)
