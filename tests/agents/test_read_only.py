"""Tests of read-only mode: every read tool of every toolset works, and no byte of the home changes."""

import hashlib
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent
from msgspec.structs import replace

from palaver.agents.server import build
from palaver.agents.toolset import TOOLSETS, Effect, ServedTools, ServerConfig, find_toolset
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from .. import demo

READ_ONLY = "Server is in read-only mode. Write operations are disabled."
QUERY = {"query": "which database keeps the tide readings"}
READS: list[tuple[str, dict[str, Any]]] = [
    ("conversation_search", QUERY),
    ("conversation_search", {"query": "passed", "in": "output"}),
    ("conversation_get_observations", {"ids": ["obs-23"]}),
    ("conversation_read", {"path": "obs-23"}),
    ("theo_search", QUERY),
    ("theo_search_with_filters", {**QUERY, "filters": {}}),
    ("theo_search_with_budget", {**QUERY, "max_tokens": 1000}),
    ("theo_memory_recall", QUERY),
    ("theo_memory_context", {}),
    ("theo_memory_inspect_graph", {"memory_id": "MEMORY"}),
    ("theo_memory_count", {}),
    ("theo_memory_list", {}),
    ("theo_memory_list_namespaces", {}),
    ("theo_validation_history", {"memory_id": "MEMORY"}),
    ("theo_memory_analyze_health", {}),
    ("theo_get_index_stats", {}),
    ("theo_trace_query", {"file": "FILE"}),
    ("theo_trace_list", {}),
    ("historian_memory_list_types", {}),
    ("historian_memory_recall", QUERY),
    ("rag_retrieve_memories", QUERY),
    ("rag_retrieve_preferences", QUERY),
    ("rag_retrieve_project_context", QUERY),
    ("rag_retrieve_session_state", QUERY),
    ("rag_get_memory_stats", {}),
    ("rag_show_current_context", QUERY),
    ("rag_search_code", {"query": "tide"}),
    ("fabric_context.getCurrent", {"sessionId": "s1", "currentCommand": "tide readings"}),
    ("fabric_context.recall", {**QUERY, "sessionId": "s1"}),
    ("fabric_context.orient", {}),
    ("fabric_context.searchCode", {"query": "tide"}),
    ("fabric_context.get", {"memoryId": "MEMORY"}),
    ("fabric_context.list", {"layer": 3}),
]


def contents(home: Home) -> dict[str, str]:
    """Return the SHA-256 of each file, and an empty text for each folder."""
    found = {path.relative_to(home.root).as_posix(): path for path in home.root.rglob("*")}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for name, path in found.items()
    }


@pytest.fixture
def config(tmp_path: Path) -> ServerConfig:
    """Return the configuration of a read-only server over the demo archive, with a memory and indexed code."""
    home, project = demo.archived(tmp_path), tmp_path / "tide-clock"
    notes = project / ".mnemonics" / "learning"
    notes.mkdir(parents=True)
    (notes / "edited-by-hand.md").write_text("The tide readings lie in SQLite\n")
    (project / "tide.py").write_text("def tide(): ...\n")
    with Archive(home).memories as core:
        core.remember(Memory("The database keeps the tide readings in SQLite", "preference"))
    with Archive(home).documents([project]) as documents:
        documents.index_directory(project, "project:tide-clock", async_mode=False)
    return ServerConfig(Archive(replace(home, read_only=True)), Renderer(), (project,), project)


async def call(config: ServerConfig, *calls: tuple[str, dict[str, Any]]) -> dict[str, CallToolResult]:
    """Call tools of all toolsets on one connection, and return their results."""
    served = ServedTools.of([find_toolset(name) for name in TOOLSETS], prefix=True)
    async with Client(build(served, config), mode="2026-07-28") as client:
        return {name: await client.call_tool(name, arguments) for name, arguments in calls}


def text_of(result: CallToolResult) -> str:
    """Return the text of a result."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_reads_work_and_change_no_byte(config: ServerConfig) -> None:
    """Each read tool of each toolset replies, and afterwards each file of the home has the same bytes."""
    [memory] = _memories(config)
    known = {"memory_id": memory, "memoryId": memory, "file": str(config.project / "tide.py")}
    calls = [(name, {field: known.get(field, value) for field, value in given.items()}) for name, given in READS]
    before = contents(config.home)
    results = anyio.run(call, config, *calls)

    assert contents(config.home) == before
    assert {name: text_of(result) for name, result in results.items() if result.is_error} == {}
    assert "SQLite" in text_of(results["rag_retrieve_preferences"])
    assert "SQLite" in text_of(results["historian_memory_recall"])
    assert "SQLite" in text_of(results["fabric_context.recall"])
    assert '"read_only_mode":true' in text_of(results["rag_get_memory_stats"])
    assert _memories(config, accesses=0) == [memory]


def test_every_tool_is_read_or_refused(config: ServerConfig) -> None:
    """The read tools of this test are all tools that do not write."""
    tools = [(toolset.name, tool) for name in TOOLSETS for toolset in [find_toolset(name)] for tool in toolset.tools]
    reading = {f"{name}_{tool.name}" for name, tool in tools if tool.effect in {Effect.READS, Effect.RECORDS}}

    assert reading == {name for name, _ in READS}
    assert config.home.read_only


def test_writes_are_refused_and_change_no_byte(config: ServerConfig) -> None:
    """Each tool that writes returns the read-only error in the envelope of its toolset."""
    writing = [
        (f"{toolset.name}_{tool.name}", dict[str, Any]())
        for name in TOOLSETS
        for toolset in [find_toolset(name)]
        for tool in toolset.tools
        if tool.effect in {Effect.WRITES, Effect.DESTROYS}
    ]
    before = contents(config.home)
    results = anyio.run(call, config, *writing)

    assert contents(config.home) == before
    assert len(results) == 26
    assert {
        name for name, result in results.items() if READ_ONLY not in text_of(result) or not result.is_error
    } == set()
    theo, rag = (orjson.loads(text_of(results[name])) for name in ("theo_memory_store", "rag_store_memory"))
    assert theo == {"success": False, "error": READ_ONLY}
    assert rag == {"error": {"type": "ReadOnlyError", "message": READ_ONLY, "details": {}}}


def test_changes_of_other_processes_are_visible(config: ServerConfig) -> None:
    """A read-only server finds memories that another process stores meanwhile, even before they are checkpointed."""
    writer = Archive(replace(config.home, read_only=False)).memories

    async def run() -> None:
        served = ServedTools.of([find_toolset("rag")])
        async with Client(build(served, config), mode="2026-07-28") as client:
            for number, word in enumerate(("Zurich", "Lisbon")):
                writer.remember(Memory(f"The office with the tide gauge is in {word}", "preference"))
                before = contents(config.home)
                found = await client.call_tool("retrieve_preferences", {"query": f"tide gauge office {word}"})
                assert word in text_of(found), number
                assert contents(config.home) == before

    anyio.run(run)
    writer.close()


def test_a_missing_home_is_not_created(tmp_path: Path) -> None:
    """A read-only server creates no home. Each tool reports that there is no archive."""
    config = ServerConfig(Archive(Home(tmp_path / "palaver", read_only=True)), Renderer(), (), tmp_path)
    nothing = dict[str, Any]()
    results = anyio.run(call, config, ("rag_get_memory_stats", nothing), ("theo_memory_count", nothing))

    assert all(result.is_error and "No archive at" in text_of(result) for result in results.values())
    assert not config.home.root.exists()


def _memories(config: ServerConfig, accesses: int | None = None) -> list[str]:
    with Archive(config.home).memories as core:
        return [stored.id for stored in core.page() if accesses is None or stored.accesses == accesses]
