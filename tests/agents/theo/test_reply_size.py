"""Tests of the size of replies: lists have the requested length, and other replies fit their budget."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.agents.toolset import BUDGET, truncated
from palaver.archiver.store import Store
from palaver.core import tokens
from palaver.core.home import Home
from palaver.core.memory import Edge, EventKind, Memory, MemoryEvent, Relation

from .client import Agent
from .page import PARAMETERS, REPLIES, misses

MEMORIES = 400
SAID = "The kettle of brass number {0} is cleaned with vinegar whenever its valve is stuck. " * 2
FIRST = "mem_1"
CALLS: dict[str, dict[str, Any]] = {
    "index_file": {"file_path": "kettles.md"},
    "index_directory": {"dir_path": "."},
    "search": {"query": "kettle", "n_results": 50},
    "search_with_filters": {"query": "kettle", "filters": {}, "n_results": 50},
    "search_with_budget": {"query": "kettle", "max_tokens": 3_000},
    "memory_store": {"content": SAID},
    "memory_recall": {"query": "kettle", "n_results": 1_000},
    "memory_context": {"query": "kettle"},
    "memory_apply": {"memory_id": FIRST, "context": SAID},
    "memory_outcome": {"memory_id": FIRST, "success": True},
    "memory_relate": {"source_id": FIRST, "target_id": "mem_2", "relation": "relates_to"},
    "memory_inspect_graph": {"memory_id": FIRST},
    "memory_count": {},
    "memory_list": {"limit": 1_000},
    "memory_list_namespaces": {},
    "validation_history": {"memory_id": FIRST, "limit": 1_000},
    "memory_detect_contradictions": {"memory_id": FIRST},
    "memory_check_supersedes": {"memory_id": FIRST},
    "memory_analyze_health": {},
    "memory_backfill_edges": {"dry_run": True},
    "get_index_stats": {},
    "trace_query": {"file": "kettles.md"},
    "trace_list": {},
    "memory_edge_forget": {"memory_id": FIRST},
    "memory_forget": {"query": "kettle", "n_results": 50},
    "delete_chunks": {"ids": [f"chunk_{key}" for key in range(2_000)]},
    "delete_file": {"source_file": "kettles.md"},
    "clear_index": {"confirm": True},
}
"""Calls of every tool with the largest possible reply. Calls that delete come last."""


def cost(envelope: object) -> int:
    return tokens.count(orjson.dumps(envelope).decode())


@pytest.fixture
def full(theo: Agent, tmp_path: Path) -> Agent:
    """Return a client of a home with a long document and hundreds of memories, all related to the first."""
    home = Home(theo.home)
    home.make()
    with Store.create(home.database) as store, store.transaction():
        for number in range(MEMORIES):
            key = store.memories.insert(Memory(SAID.format(number), namespace=f"project:kettle-{number}"), 1)
            if number:
                store.memory_edges.put(Edge(key, 1, Relation.RELATES_TO, 1.0, SAID.format(number)))
            store.memory_events.add(MemoryEvent(1, EventKind.APPLIED, 1, SAID.format(number)))
    (tmp_path / "kettles.md").write_text("\n".join(f"# Kettle {n}\n\n{SAID.format(n) * 9}\n" for n in range(60)))
    return theo


LIMITED = {"search", "search_with_filters", "memory_list", "memory_recall", "validation_history", "trace_list"}
"""Tools with a parameter for the number of entries."""


def test_other_replies_fit_the_budget(full: Agent, tmp_path: Path) -> None:
    """A reply without a limit parameter fits the budget and is marked if it is truncated."""
    assert CALLS.keys() == PARAMETERS.keys()
    calls = [(name, dict(asked)) for name, asked in CALLS.items()]
    for _, asked in calls:
        for name in asked.keys() & {"file_path", "dir_path", "file", "source_file"}:
            asked[name] = str(tmp_path / asked[name])
    replies = dict(zip(CALLS, full.calls(*calls), strict=True))

    assert {name: reply for name, reply in replies.items() if not reply["success"]} == {}
    assert {name for name, reply in replies.items() if cost(reply) > BUDGET} <= LIMITED
    cut = {name for name, reply in replies.items() if reply.get("data", reply).get("truncated")}
    assert "memory_inspect_graph" in cut
    assert not cut & LIMITED
    for name in cut & REPLIES.keys() - {"search_with_budget"}:
        assert misses(dict.fromkeys(REPLIES[name], object), replies[name]["data"]) == []


def test_a_list_has_as_many_entries_as_requested(full: Agent) -> None:
    """A limit of the caller is respected, whatever the token cost."""
    whole, more = full.data("memory_list", limit=1_000), full.data("memory_list", limit=5_000)
    history = full.data("validation_history", memory_id=FIRST, limit=1_000)

    assert (len(whole["memories"]), whole["has_more"], whole["next_offset"]) == (MEMORIES, False, None)
    assert (len(more["memories"]), more["limit"]) == (MEMORIES, 1_000)
    assert len(history["events"]) == MEMORIES


@pytest.mark.parametrize("limit", [7, 100, 390])
def test_pages_of_any_limit_skip_nothing(full: Agent, limit: int) -> None:
    """`next_offset` is the offset plus the limit until the last page, and the pages list every memory once."""
    seen: list[str] = []
    total, offset = 0, 0
    while offset is not None:
        page = full.data("memory_list", limit=limit, offset=offset)
        seen += [memory["id"] for memory in page["memories"]]
        assert page["has_more"] is (page["next_offset"] is not None)
        assert page["next_offset"] in {None, offset + limit}
        total, offset = page["total"], page["next_offset"]

    assert len(set(seen)) == len(seen) == total == MEMORIES


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=300),
    lambda inside: st.lists(inside, max_size=30) | st.dictionaries(st.sampled_from("abcdef"), inside),
    max_leaves=60,
)


@given(st.dictionaries(st.sampled_from("uvwxyz"), JSON))
def test_replies_are_truncated_to_the_budget(data: dict[str, Any]) -> None:
    """A reply that fits is unchanged. A longer reply keeps its fields and is marked as truncated."""
    envelope = {"success": True, "data": data}
    shown = truncated(envelope, 200)

    if cost(envelope) <= 200:
        assert shown == envelope
    else:
        assert shown["data"].keys() == {*data, "truncated", "hint"}
        assert shown["data"]["truncated"] is True
