"""Tests of the replies of the fabric tools, with the examples of their specification."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from palaver.core.memory import Relation
from palaver.core.runtime import silent
from palaver.observe.archive import Archive
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import DEFAULT_MODEL, load

from ..rag.test_examples import odd
from .client import DAY, Agent
from .page import CONVERSION, PREVIEW, PROMOTED, REPLIES, STATS

ZOD = "Use Zod for all API input validation. Schemas live in src/schemas/ alongside the route handlers."
JWT = "Use JWT with 15-minute expiry for API tokens"
MUTEX = "Fixed auth token refresh race condition by adding a mutex lock around the refresh call"


def test_a_memory_is_stored_recalled_updated_and_deleted(fabric: Agent) -> None:
    """The examples of the specification work in sequence: store, get, update, delete."""
    metadata = {"tags": ["validation", "api", "zod"], "confidence": 0.95, "source": "user_explicit", "weight": 5}
    stored = fabric.call("store", type="decision", content=ZOD, metadata=metadata)
    assert odd(REPLIES["context.store"], stored) == []
    assert (str(UUID(stored["id"])), stored["layer"]) == (stored["id"], 2)
    assert stored["routing"] == {"reason": "type decision", "confidence": 0.85}

    got = fabric.call("get", memoryId=stored["id"])
    assert odd(REPLIES["context.get"], got) == []
    assert got["memory"]["metadata"] == {**metadata, "cliType": "generic"}
    assert got["memory"]["accessCount"] == 1

    changes = {"content": "Use Zod for all API validation", "tags": ["validation"], "metadata": {"reviewed": True}}
    updated = fabric.call("update", memoryId=stored["id"], **changes)
    assert odd(REPLIES["context.update"], updated) == []
    assert (updated["memory"]["content"], updated["memory"]["tags"]) == (changes["content"], ["validation"])
    assert (updated["memory"]["metadata"]["reviewed"], updated["memory"]["metadata"]["confidence"]) == (True, 0.95)

    deleted = fabric.call("delete", memoryId=stored["id"])
    assert (odd(REPLIES["context.delete"], deleted), deleted["deletedFrom"]) == ([], 2)
    for name in ("get", "delete", "update"):
        more = {"weight": 2} if name == "update" else {}
        assert fabric.error(name, memoryId=stored["id"], **more) == f"Memory not found: {stored['id']}"


def test_recall_searches_all_layers(fabric: Agent) -> None:
    """Recall returns relevant memories with their layer, and filters select types, layers and tags."""
    fabric.store(MUTEX, "bug_fix", {"tags": ["auth", "race-condition"]})
    fabric.store("Handle authentication errors with a typed AuthError", "convention", {"tags": ["auth"]})
    fabric.store("Refactoring the authentication error handling", "scratchpad")
    query = {"query": "authentication error handling", "sessionId": "s1", "limit": 5, "threshold": 0.3}
    found = fabric.call("recall", **query)
    assert odd(REPLIES["context.recall"], found) == []
    assert {each["layer"] for each in found["results"]} == {1, 2, 3}

    chosen = fabric.call("recall", **query, filter={"types": ["bug_fix"], "layers": [2, 3], "tags": ["auth"]})
    assert [each["memory"]["content"] for each in chosen["results"]] == [MUTEX]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_hopeless_query_finds_nothing(fabric: Agent, mode: str) -> None:
    """Similarity does not depend on the best hit, so an unrelated memory stays below the threshold."""
    fabric.store(ZOD)
    related = fabric.call("recall", query="Zod API input validation", sessionId="s1", mode=mode)["results"]
    hopeless = fabric.call("recall", query="penguins of Antarctica", sessionId="s1", mode=mode)

    assert [0.7 <= each["similarity"] < 1 for each in related] == [True]
    assert hopeless == {"results": [], "total": 0, "message": "No memory matches."}


def test_a_recall_without_results_names_the_highest_similarity(fabric: Agent) -> None:
    """If memories are below the threshold, the message says by how much."""
    fabric.store(ZOD)
    query: dict[str, Any] = {"query": "Zod API input validation", "sessionId": "s1"}
    [best] = fabric.call("recall", **query)["results"]
    none = fabric.call("recall", **query, threshold=1)

    near = f"the nearest has {best['similarity']:.2f}. Lower the threshold to see it."
    assert none == {"results": [], "total": 0, "message": f"No memory reaches a similarity of 1; {near}"}


def test_weight_raises_a_memory(fabric: Agent) -> None:
    """Of two equally similar memories, the one with the higher weight is first."""
    fabric.store("The tide clock stores readings in SQLite", metadata={"weight": 1})
    fabric.store("The tide clock stores readings in a file", metadata={"weight": 5})
    found = fabric.call("recall", query="where does the tide clock store readings", sessionId="s1")["results"]

    assert [each["memory"]["metadata"]["weight"] for each in found] == [5, 1]


def test_promotion_keeps_the_id_and_goes_up_only(fabric: Agent) -> None:
    """A memory of layer 1 cannot be updated but promoted. It then no longer expires, and keeps its ID."""
    note = fabric.store("The auth module needs a mutex", "scratchpad")
    assert "layer 1 cannot be updated" in fabric.error("update", memoryId=note, content="changed")

    promoted = fabric.call("update", memoryId=note, targetLayer=2)
    assert (odd(PROMOTED, promoted), promoted) == ([], {"success": True, "memoryId": note, "newLayer": 2})
    fabric.shift = 30 * DAY
    assert fabric.call("get", memoryId=note)["layer"] == 2
    assert fabric.call("update", memoryId=note, targetLayer=3)["newLayer"] == 3
    assert "cannot be promoted to layer 2" in fabric.error("update", memoryId=note, targetLayer=2)


def test_list_returns_pages_and_counts(fabric: Agent) -> None:
    """A page has the total number. Statistics have counts per layer."""
    fabric.store(ZOD, metadata={"tags": ["validation"]})
    fabric.store(JWT, pinned=True)
    fabric.store("Prefer early returns", "convention")
    listed = fabric.call("list", layer=2, type="decision", limit=1)
    assert (odd(REPLIES["context.list"], listed), listed["total"]) == ([], 2)
    assert [each["content"] for each in listed["memories"]] == [JWT]
    assert fabric.call("list", offset=1, limit=1)["memories"][0]["content"] == ZOD
    assert fabric.call("list", tags=["validation", "other"])["total"] == 1

    stats = fabric.call("list", stats=True)
    assert (odd(STATS, stats), stats) == ([], {"l1": 0, "l2": 2, "l3": 1, "total": 3, "pinned": {"l2": 1, "l3": 0}})


def test_a_summary_links_to_what_it_archived(fabric: Agent) -> None:
    """Summarizing archives old memories except pinned ones. The summary links to them, and undo restores them."""
    fabric.shift = -40 * DAY
    old = fabric.store(ZOD)
    kept = fabric.store(JWT, pinned=True)
    fabric.shift = 0
    new = fabric.store("Deploy with systemd")
    options = {"targetTokens": 200}
    done = fabric.call("summarize", sessionId="s1", options=options)

    assert (odd(REPLIES["context.summarize"], done), done["summarizedCount"]) == ([], 1)
    assert "Use Zod" in done["summary"]
    assert fabric.call("list")["total"] == 3
    assert fabric.error("get", memoryId=old) == f"Memory not found: {old}"
    assert [fabric.call("get", memoryId=each)["layer"] for each in (kept, new)] == [2, 2]
    core, names = fabric.context.core, done["undo"].split()[3:]
    [edge] = core.store.memory_edges.incoming([core.get(names[0]).key])
    assert (edge.relation, edge.reason) == (Relation.RELATES_TO, "summarized")
    core.undo(names)
    assert fabric.call("get", memoryId=old)["memory"]["content"] == ZOD
    assert fabric.call("summarize", sessionId="s1", options=options, olderThanDays=90)["summarizedCount"] == 0


def test_code_is_indexed_on_first_use(fabric: Agent) -> None:
    """The three modes find the example of the specification without an earlier call, and follow changes."""
    source = fabric.project / "src" / "services" / "auth.ts"
    source.parent.mkdir(parents=True)
    source.write_text("/** Handles authentication. */\nexport class AuthService {\n  verifyToken(): void {}\n}\n")
    found = fabric.call("searchCode", query="AuthService", mode="symbol", symbolKind="class", limit=5)
    assert odd(REPLIES["context.searchCode"], found) == []
    [row] = found["results"]
    assert (row["filePath"], row["symbol"]["name"], row["symbol"]["kind"]) == (
        "src/services/auth.ts",
        "AuthService",
        "class",
    )
    assert row["symbol"]["docComment"] == "Handles authentication."
    lines = fabric.call("searchCode", query="verifyToken", mode="text", filePattern="src/**/*.ts")["results"]
    assert [(each["line"], each["symbol"]["name"]) for each in lines] == [(3, "AuthService.verifyToken")]
    units = fabric.call("searchCode", query="AuthService authentication", includeContent=False)["results"]
    assert "content" not in units[0]
    assert fabric.call("searchCode", query="AuthService", mode="symbol", symbolKind="export")["total"] == 1

    source.write_text("export function login(): void {}\n")
    changed = fabric.call("searchCode", query="login", mode="symbol")
    assert ([each["symbol"]["name"] for each in changed["results"]], changed["indexStatus"]["isStale"]) == (
        ["login"],
        False,
    )


@pytest.mark.parametrize(("mode", "reason"), [("symbol", "No symbol has this name."), ("text", "No line contains")])
def test_a_search_for_code_without_results_says_why(fabric: Agent, mode: str, reason: str) -> None:
    """The note names the mode that may find something."""
    (fabric.project / "a.py").write_text("def first(): pass\n")
    fabric.call("searchCode", query="first", mode=mode)
    found = fabric.call("searchCode", query="second", mode=mode)

    assert found["results"] == []
    assert found["note"].startswith(reason)
    assert found["note"].endswith("Mode semantic searches by meaning.")


def test_code_of_new_files_is_found(fabric: Agent) -> None:
    """A file that was added since the last search is found, even though no other file changed."""
    (fabric.project / "a.py").write_text("def first(): pass\n")
    (fabric.project / "b.min.js").write_text("generated()")
    assert fabric.call("searchCode", query="first", mode="symbol")["indexStatus"]["totalFiles"] == 1

    (fabric.project / "new").mkdir()
    (fabric.project / "new" / "c.py").write_text("def second(): pass\n")
    found = fabric.call("searchCode", query="second", mode="symbol")
    assert [each["filePath"] for each in found["results"]] == ["new/c.py"]
    assert (found["indexStatus"]["totalFiles"], found["indexStatus"]["isStale"]) == (2, False)


def test_code_of_notebooks_has_no_line(fabric: Agent) -> None:
    """Cells of a notebook are found without a line number, which the format does not have."""
    cell: dict[str, Any] = {"cell_type": "code", "source": "tide_table = read_tides()", "metadata": {}, "outputs": []}
    notebook: dict[str, Any] = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (fabric.project / "tides.ipynb").write_text(json.dumps(notebook))

    for query in ({"query": "read_tides", "mode": "text"}, {"query": "read tides table", "threshold": 0}):
        [row] = fabric.call("searchCode", **query)["results"]
        assert (row["filePath"], row["content"]) == ("tides.ipynb", "tide_table = read_tides()")
        assert not {"line", "lineStart", "lineEnd"} & row.keys()


def test_conversions_have_the_fields_of_the_specification(fabric: Agent) -> None:
    """Orientation has the time, the project and the gap, and converts a resolved expression."""
    first = fabric.call("orient", timezone="Europe/London")
    assert (odd(REPLIES["context.orient"], first), first["projectPath"]) == ([], str(fabric.project))
    assert first["summary"].endswith("First session in this project.")

    asked = {"expression": "2026-03-02", "timezone": "America/New_York", "also": ["Europe/London", "Asia/Tokyo"]}
    reply = fabric.call("orient", **asked)
    assert [odd(CONVERSION, each) for each in reply["conversions"]] == [[], []]
    assert [each["iso"] for each in reply["conversions"]] == [
        "2026-03-02T05:00:00.000+00:00",
        "2026-03-02T14:00:00.000+09:00",
    ]


def test_setup_writes_the_entry_of_a_client(fabric: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A preview writes nothing. Setting up twice changes nothing the second time. Text targets never write."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    preview = fabric.call("setup", cli="gemini", preview=True)
    assert (odd(PREVIEW, preview), (tmp_path / "user").exists()) == ([], False)

    done = fabric.call("setup", cli="opencode", useDocker=True)
    assert odd(REPLIES["context.setup"], done) == []
    written = Path(done["configFile"]).read_text("utf-8")
    assert ('"docker"' in written, "conversation,fabric" in written) == (True, True)
    again = fabric.call("setup", cli="opencode", useDocker=True)
    assert (Path(again["configFile"]).read_text("utf-8"), "already" in again["message"]) == (written, True)
    for name in ("docker", "generic"):
        assert "conversation,fabric" in fabric.call("setup", cli=name)["snippet"]
        shown = fabric.call("setup", cli=name, preview=True)
        assert (shown["preview"], "success" in shown, bool(shown["snippet"])) == (True, False, True), name
    assert json.loads(fabric.call("setup", cli="generic")["snippet"])["mcpServers"]
    assert "docker build -t palaver-archive ." in fabric.call("setup", cli="docker")["message"]
    broken = tmp_path / "user" / ".cursor" / "mcp.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{ not json")
    assert str(broken) in fabric.error("setup", cli="cursor")
    assert broken.read_text() == "{ not json"
    assert "not absolute" in fabric.error("setup", cli="gemini", serverPath="palaver")


def test_other_surfaces_share_the_memories(fabric: Agent) -> None:
    """A memory of fabric is a memory of the core: weight is importance, layer 3 is global."""
    memory = fabric.store("Prefer early returns", "convention", {"weight": 4})
    with Archive(fabric.home).memories as core:
        [stored] = core.page()

    assert (stored.memory.importance, stored.memory.namespace) == (0.75, "global")
    assert fabric.call("get", memoryId=stored.id)["memory"]["id"] == memory


def test_a_semantic_code_search_says_that_embedding_is_unfinished(fabric: Agent) -> None:
    """As long as units are not embedded, each semantic search says so, also if another program indexed the folder."""
    (fabric.project / "kiln.py").write_text("def heat():\n    return 1\n")
    for _ in range(2):
        found = fabric.call("searchCode", query="how is it heated")
        assert "not embedded yet" in found["note"], found
    assert "note" not in fabric.call("searchCode", query="heat", mode="symbol")
    store, home = fabric.context.core.store, fabric.home
    Indexer(store, Generations(home.index), load(DEFAULT_MODEL)).embed(silent)
    assert "not embedded" not in fabric.call("searchCode", query="heat the kiln").get("note", "")
