"""Tests of the output schemas: every reply of every tool with a schema conforms to it, as the SDK's client sees it."""

import re
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import orjson
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from palaver.agents.server import build
from palaver.agents.toolset import TOOLSETS, ServedTools, ServerConfig, find_toolset
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from .. import demo

Calls = list[tuple[str, dict[str, Any]]]
MARKS = {"notice", "truncated", "hint"}
"""Fields that any JSON reply can have: the notice about quoted text, and the marks of a truncated reply."""
QUERY = {"query": "which database keeps the readings"}
SESSION = {"sessionId": "s1"}
EVENT = {
    "type": "error_occurred",
    "payload": {"error": "ValueError: max() arg is an empty sequence"},
    "timestamp": "2026-02-25T09:00:00.000Z",
    "cliType": "claude-code",
    **SESSION,
}
CALLS: dict[str, Calls] = {
    "theo": [
        ("memory_store", {"content": "Use SQLite, one file", "memory_type": "decision"}),
        ("memory_store", {"content": "Use SQLite, one file", "relates_to": [{"target": "mem_99"}]}),
        ("memory_store", {"content": "The key is AKIAIOSFODNN7EXAMPLE, deploy on Fridays", "memory_type": "session"}),
        ("memory_store", {"content": "Use Postgres instead of SQLite", "supersedes_query": "SQLite, one file"}),
        ("memory_recall", QUERY),
        ("memory_recall", {"query": "hotel booking"}),
        ("memory_apply", {"memory_id": "FIRST", "context": "store.py"}),
        ("memory_outcome", {"memory_id": "FIRST", "success": True}),
        ("memory_relate", {"source_id": "FIRST", "target_id": "SECOND", "relation": "relates_to"}),
        ("memory_inspect_graph", {"memory_id": "FIRST"}),
        ("memory_inspect_graph", {"memory_id": "FIRST", "output_format": "mermaid"}),
        ("memory_edge_forget", {"memory_id": "FIRST"}),
        ("memory_count", {}),
        ("memory_list", {"limit": 1}),
        ("memory_list_namespaces", {}),
        ("memory_context", QUERY),
        ("memory_context", {"token_budget": 120}),
        ("validation_history", {"memory_id": "FIRST"}),
        ("memory_detect_contradictions", {"memory_id": "FIRST"}),
        ("memory_check_supersedes", {"memory_id": "FIRST"}),
        ("memory_analyze_health", {"stale_days": 0}),
        ("memory_backfill_edges", {}),
        ("memory_forget", {"memory_id": "FIRST"}),
        ("memory_forget", {"query": "hotel booking"}),
        ("index_file", {"file_path": "PROJECT/tide.py"}),
        ("index_directory", {"dir_path": "PROJECT"}),
        ("search", QUERY),
        ("search_with_filters", {**QUERY, "filters": {"doc_type": "document"}}),
        ("search_with_budget", {**QUERY, "max_tokens": 40}),
        ("get_index_stats", {}),
        ("trace_query", {"file": "PROJECT/tide.py"}),
        ("trace_query", {"file": "PROJECT/tide.py", "line": 1}),
        ("trace_list", {}),
        ("delete_chunks", {"ids": ["chunk_1"]}),
        ("delete_file", {"source_file": "PROJECT/tide.py"}),
        ("clear_index", {"confirm": True}),
    ],
    "historian": [
        ("memory_list_types", {}),
        ("memory_remember", {"title": "Store", "content": "Use SQLite, one file", "memoryType": "context"}),
        ("memory_remember", {"title": "Store", "content": "Use SQLite, one file", "memoryType": "context"}),
        ("memory_recall", {"query": "SQLite"}),
        ("memory_recall", {"query": "hotel booking"}),
        ("memory_compound", {"query": "SQLite", "modifications": "Use SQLite, one file for each year"}),
        ("memory_compound", {"query": "hotel booking", "modifications": "Book by the sea"}),
        ("memory_forget", {"query": "SQLite", "confirm": True}),
        ("memory_forget", {"query": "SQLite", "confirm": True}),
    ],
    "rag": [
        ("store_memory", {"content": "Use SQLite, one file", "category": "fact"}),
        ("store_memory", {"content": "Use SQLite, one file", "category": "fact"}),
        ("retrieve_memories", QUERY),
        ("retrieve_preferences", {"query": "which language"}),
        ("retrieve_project_context", {"query": "which language"}),
        ("retrieve_session_state", {"query": "which language"}),
        ("get_memory_stats", {}),
        ("show_current_context", {}),
        ("show_current_context", QUERY),
        ("index_codebase", {"directory_path": "PROJECT"}),
        ("search_code", {"query": "tide"}),
        ("delete_memory", {"memory_id": "FIRST"}),
        ("delete_memory", {"memory_id": "FIRST"}),
    ],
    "fabric": [
        ("context.store", {"type": "decision", "content": "Use SQLite, one file", "metadata": {}, "layer": 1}),
        ("context.store", {"type": "decision", "content": "Use SQLite, one file", "metadata": {}, "layer": 1}),
        ("context.store", {"type": "convention", "content": "Compare instants in UTC", "metadata": {"tags": ["time"]}}),
        ("context.getCurrent", {**SESSION, "currentCommand": "sqlite readings", "language": "python"}),
        ("context.recall", {**QUERY, **SESSION, "threshold": 0}),
        ("context.orient", {"expression": "next Monday", "also": ["Asia/Tokyo"]}),
        ("context.orient", {}),
        ("context.searchCode", {"query": "tide"}),
        ("context.get", {"memoryId": "FIRST"}),
        ("context.update", {"memoryId": "FIRST", "targetLayer": 2}),
        ("context.update", {"memoryId": "FIRST", "tags": ["store"], "targetLayer": 3}),
        ("context.update", {"memoryId": "SECOND", "content": "Compare all instants in UTC"}),
        ("context.list", {}),
        ("context.list", {"stats": True}),
        ("context.reportEvent", {"event": EVENT}),
        ("context.reportEvent", {"event": EVENT}),
        ("context.summarize", {**SESSION, "options": {"targetTokens": 200}, "olderThanDays": 0}),
        ("context.summarize", {**SESSION, "options": {"targetTokens": 200}, "olderThanDays": 900}),
        ("context.setup", {"cli": "gemini", "preview": True}),
        ("context.setup", {"cli": "generic"}),
        ("context.setup", {"cli": "cursor"}),
        ("context.delete", {"memoryId": "SECOND"}),
    ],
}


def filled(given: dict[str, Any], values: dict[str, str]) -> dict[str, Any]:
    """Return arguments with the project's folder, and the IDs of the first and second stored memory."""
    text = orjson.dumps(given).decode()
    for name, value in values.items():
        text = text.replace(name, value)
    filled_: dict[str, Any] = orjson.loads(text)
    return filled_


def undeclared(reply: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Return the fields of a reply, and of its object `data`, that a schema does not declare."""
    fields: dict[str, Any] = schema["properties"]
    inside = undeclared(reply["data"], fields["data"]) if "data" in fields else set[str]()
    return {name for name in reply if name not in fields and name not in MARKS} | inside


@pytest.mark.parametrize("name", CALLS)
def test_every_reply_conforms_to_its_schema(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tool declares all fields of its replies. The structured content is the text of the reply."""
    home, project = demo.archived(tmp_path), tmp_path / "tide-clock"
    project.mkdir()
    (project / "tide.py").write_text("def tide(readings):\n    return max(readings)\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    config = ServerConfig(Archive(home), Renderer(), (project,), project)

    async def run() -> None:
        async with Client(build(ServedTools.of([find_toolset(name)]), config), mode="2026-07-28") as client:
            schemas = {tool.name: tool.output_schema or {} for tool in (await client.list_tools()).tools}
            assert {tool for tool, _ in CALLS[name]} == set(schemas)
            values = {"PROJECT": str(project)}
            for tool, given in CALLS[name]:
                result = await client.call_tool(tool, filled(given, values))
                assert not result.is_error, (tool, given, result.content)
                reply: dict[str, Any] = result.structured_content or {}
                jsonschema.validate(reply, schemas[tool])
                assert undeclared(reply, schemas[tool]) == set(), (tool, given)
                if stored := reply.get("data", reply).get("id", reply.get("memory_id")):
                    values.setdefault("SECOND" if values.get("FIRST", stored) != stored else "FIRST", stored)

    anyio.run(run)


@pytest.mark.parametrize("name", CALLS)
def test_an_error_has_no_structured_content(name: str, tmp_path: Path) -> None:
    """The client of the TypeScript SDK refuses structured content that does not match, even that of an error."""
    config = ServerConfig(Archive(demo.archived(tmp_path)), Renderer(), (), tmp_path)

    async def run() -> None:
        async with Client(build(ServedTools.of([find_toolset(name)]), config), mode="2026-07-28") as client:
            tools = (await client.list_tools()).tools
            for tool in tools:
                result = await client.call_tool(tool.name, {"unknown": 1})
                assert (result.is_error, result.structured_content) == (True, None), tool.name

    anyio.run(run)


def test_every_reply_that_is_always_json_has_a_schema() -> None:
    """Only the tools of `conversation` have none, because they reply in Markdown by default."""
    without = {name for name in TOOLSETS for tool in find_toolset(name).tools if tool.output_schema is None}

    assert without == {"conversation"}


def test_a_schema_is_an_object_with_named_fields() -> None:
    """Some clients refuse other schemas, references, and schemas that name a dialect."""
    for toolset in map(find_toolset, TOOLSETS):
        for schema in filter(None, (tool.output_schema for tool in toolset.tools)):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert schema["properties"]
            assert not {"$ref", "$defs", "$schema"} & set(re.findall(r"\$\w+", str(schema)))


def test_the_client_refuses_a_reply_that_does_not_conform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's client compares each reply with its schema, so the other tests of the toolsets would fail too."""
    toolset = find_toolset("rag")
    [tool] = [each for each in toolset.tools if each.name == "get_memory_stats"]
    monkeypatch.setattr(type(tool), "output_schema", property(lambda _: {"type": "object", "required": ["missing"]}))
    config = ServerConfig(Archive(demo.archived(tmp_path)), Renderer(), (), tmp_path)

    async def run() -> None:
        async with Client(build(ServedTools.of([toolset]), config), mode="2026-07-28") as client:
            await client.call_tool("get_memory_stats", {})

    with pytest.raises((RuntimeError, MCPError, ExceptionGroup)):
        anyio.run(run)
