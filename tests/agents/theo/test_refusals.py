"""Tests of every error of Theo's specification, and of other refusals."""

from pathlib import Path
from typing import Any

import pytest

from palaver.core.home import Home

from .client import Agent


def refusal(theo: Agent, name: str, **arguments: object) -> str:
    """Return the error of a call that must fail."""
    reply = theo.call(name, **arguments)
    assert reply["success"] is False, reply
    return str(reply["error"])


def test_errors_of_files_have_a_reason(theo: Agent, tmp_path: Path) -> None:
    """The error says whether the file is missing, of an unknown type, or unreadable."""
    (tmp_path / "notes.xlsx").write_text("x")
    (tmp_path / "bad.pdf").write_bytes(b"no pdf")
    missing = str(tmp_path / "none.md")

    assert refusal(theo, "index_file", file_path=missing) == f"File not found: {missing}"
    assert refusal(theo, "index_file", file_path=str(tmp_path / "none")) == f"File not found: {tmp_path / 'none'}"
    assert refusal(theo, "index_file", file_path=str(tmp_path)) == "Failed to read file: the path is a folder"
    assert refusal(theo, "index_directory", dir_path=" ") == "dir_path cannot be empty"
    assert refusal(theo, "index_directory", dir_path=str(tmp_path / "none")) == f"File not found: {tmp_path / 'none'}"
    refused = refusal(theo, "index_directory", dir_path=str(tmp_path / "bad.pdf"))
    assert refused == "Failed to read file: the path is not a folder"
    assert refusal(theo, "index_file", file_path=str(tmp_path / "notes.xlsx")) == "Unsupported file type: .xlsx"
    assert refusal(theo, "index_file", file_path=str(tmp_path / "bad.pdf")).startswith("Failed to read file: ")
    assert refusal(theo, "trace_query", file=missing) == f"File not found: {missing}"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("search", {}),
        ("search_with_filters", {"filters": {}}),
        ("search_with_budget", {"max_tokens": 10}),
        ("memory_recall", {}),
        ("memory_forget", {}),
    ],
)
def test_an_empty_query_is_refused(theo: Agent, name: str, more: dict[str, Any]) -> None:
    """A query of only whitespace is refused as empty."""
    for query in ("", "  \n"):
        assert refusal(theo, name, query=query, **more) == "Query cannot be empty"


def test_a_memory_has_a_known_type(theo: Agent) -> None:
    """Golden rules cannot be stored, and an unknown type in a filter is an error."""
    for kind in ("opinion", "golden_rule", "document"):
        assert refusal(theo, "memory_store", content="x", memory_type=kind) == f"Invalid memory type: {kind}"
    for name in ("memory_recall", "memory_count", "memory_list"):
        more = {"query": "x"} if name == "memory_recall" else {}
        assert refusal(theo, name, memory_type="opinion", **more) == "Invalid memory type: opinion"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("memory_forget", {}),
        ("memory_apply", {"context": "x"}),
        ("memory_outcome", {"success": True}),
        ("memory_inspect_graph", {}),
        ("validation_history", {}),
        ("memory_detect_contradictions", {}),
        ("memory_check_supersedes", {}),
        ("memory_edge_forget", {}),
    ],
)
def test_an_unknown_memory_is_refused(theo: Agent, name: str, more: dict[str, Any]) -> None:
    """Every unknown ID is an error, whatever its format."""
    for memory in ("mem_404", "obs-1", "chunk_1", "mem_1; DROP TABLE memory"):
        assert refusal(theo, name, memory_id=memory, **more) == f"Memory not found: {memory}"


def test_a_forgotten_memory_is_not_found(theo: Agent) -> None:
    """Every tool rejects the ID of a forgotten memory, and graphs omit it."""
    near, gone = theo.store("Deploys go out on Friday", "decision"), theo.store("Secret walrus canary", "fact")
    beyond = theo.store("Moss grows slowly", "fact")
    for target in (near, beyond):
        theo.data("memory_relate", source_id=gone, target_id=target, relation="relates_to")
    theo.data("memory_forget", memory_id=gone)

    for name, more in (
        ("memory_apply", {"context": "x"}),
        ("memory_outcome", {"success": True}),
        ("memory_inspect_graph", {}),
        ("validation_history", {}),
        ("memory_detect_contradictions", {}),
        ("memory_check_supersedes", {}),
        ("memory_edge_forget", {}),
    ):
        assert refusal(theo, name, memory_id=gone, **more) == f"Memory not found: {gone}"
    for ends in ({"source_id": gone, "target_id": near}, {"source_id": near, "target_id": gone}):
        assert refusal(theo, "memory_relate", relation="relates_to", **ends) == f"Memory not found: {gone}"
        assert refusal(theo, "memory_edge_forget", **ends) == f"Memory not found: {gone}"
    around = theo.call("memory_inspect_graph", memory_id=near, max_depth=3)
    assert ([each["id"] for each in around["nodes"]], around["edges"]) == ([near], [])
    assert "walrus" not in str(theo.call("memory_inspect_graph", memory_id=near, output_format="mermaid"))


def test_clearing_needs_a_confirmation(theo: Agent) -> None:
    """Without `confirm`, nothing is deleted."""
    message = refusal(theo, "clear_index", confirm=False)

    assert message == "Safety check: Set confirm=True to delete all documents"
    assert refusal(theo, "clear_index") == "Invalid parameter: confirm is required"


def test_an_unreadable_archive_is_reported(theo: Agent) -> None:
    """An unreadable archive gives the specified error with a hint. After the repair the next call works."""
    theo.home.mkdir()
    Home(theo.home).database.write_bytes(b"this is no database" * 100)
    reply = theo.call("memory_count")

    assert reply["error"] == "Server not initialized"
    assert reply["hint"]
    Home(theo.home).database.unlink()
    assert theo.data("memory_count")["count"] == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("search", {"query": "x", "n_results": 51}, "Invalid number of results: 51"),
        ("search", {"query": "x", "n_results": "5"}, "Invalid parameter: n_results must be a whole number"),
        ("search", {"query": "x", "top": 5}, "Invalid parameter: top is not a parameter"),
        ("search_with_filters", {"query": "x", "filters": {"tag": "y"}}, "Invalid filters: tag"),
        ("search_with_filters", {"query": "x", "filters": {"namespace": 1}}, "Invalid filters: namespace"),
        ("search_with_filters", {"query": "x", "filters": {"doc_type": "y"}}, "Invalid doc_type: y"),
        ("search_with_budget", {"query": "x", "max_tokens": 0}, "Invalid max_tokens: 0"),
        ("memory_store", {"content": " "}, "Content cannot be empty"),
        ("memory_store", {"content": "x", "namespace": "team"}, "Invalid namespace: team"),
        ("memory_store", {"content": "x", "importance": 1.5}, "Importance out of range: 1.5"),
        ("memory_store", {"content": "x", "importance": "high"}, "Invalid parameter: importance must be a number"),
        ("memory_store", {"content": "x", "metadata": []}, "Invalid parameter: metadata must be an object"),
        ("memory_recall", {"query": "x", "min_confidence": 2}, "Invalid min_confidence: 2.0"),
        ("memory_forget", {}, "Give exactly one of memory_id, query and input_value"),
        ("memory_forget", {"query": "x", "input_value": "y"}, "Give exactly one of memory_id, query and input_value"),
        ("memory_context", {"token_budget": 0}, "Invalid token budget: 0"),
        ("memory_edge_forget", {}, "Give edge_id, or memory_id, or source_id and target_id"),
        ("memory_edge_forget", {"source_id": "mem_1"}, "Give edge_id, or memory_id, or source_id and target_id"),
        ("memory_edge_forget", {"edge_id": 1, "relation": "hates"}, "Invalid relation: hates"),
        ("memory_list", {"order_by": "created; DROP TABLE memory"}, "Invalid order: created; DROP TABLE memory"),
        ("memory_list", {"limit": 0}, "Invalid limit or offset: 0, 0"),
        ("memory_analyze_health", {"stale_days": -1}, "Invalid stale_days: -1"),
        ("memory_backfill_edges", {"batch_size": 0}, "Invalid batch_size or max_memories: 0, 500"),
        ("trace_list", {"limit": 0}, "Invalid number of results: 0"),
        ("trace_query", {"file": "--help"}, "File not found: --help"),
    ],
)
def test_invalid_arguments_have_a_message(theo: Agent, name: str, arguments: dict[str, Any], message: str) -> None:
    """Each invalid argument has its own error message."""
    assert refusal(theo, name, **arguments) == message


def test_edges_need_two_different_known_memories(theo: Agent) -> None:
    """A memory cannot be related to itself, to an unknown memory, or by an unknown relation."""
    one, two = theo.store("Use tabs"), theo.store("Moss grows slowly")

    assert refusal(theo, "memory_relate", source_id=one, target_id="mem_9", relation="relates_to") == (
        "Memory not found: mem_9"
    )
    assert refusal(theo, "memory_relate", source_id=one, target_id=one, relation="relates_to") == (
        f"A memory cannot be related to itself: {one}"
    )
    assert refusal(theo, "memory_relate", source_id=one, target_id=two, relation="hates") == "Invalid relation: hates"
    assert refusal(theo, "memory_relate", source_id=one, target_id=two, relation="relates_to", weight=2) == (
        "Invalid weight: 2.0"
    )
    assert refusal(theo, "memory_inspect_graph", memory_id=one, direction="up") == "Invalid direction: up"
    assert refusal(theo, "memory_inspect_graph", memory_id=one, output_format="svg") == "Invalid output format: svg"
    assert refusal(theo, "memory_inspect_graph", memory_id=one, edge_types=["hates"]) == "Invalid relation: hates"
    assert refusal(theo, "validation_history", memory_id=one, event_type="edited") == "Invalid event type: edited"
    assert refusal(theo, "memory_forget", memory_id=one, namespace="project:x") == (
        f"{one} is in global, not in project:x"
    )
