"""Tests of Theo's example requests: each reply has every field of the specification."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from palaver.core.conversation import Origin
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.observe.mnemonics import ProjectMemories

from .client import Agent
from .page import GRAPH, PARAMETERS, REPLIES, misses

README = "# Configuration\n\nHow it is set up.\n\n## Authentication\n\nTokens are signed with RS256 and last an hour.\n"
CODE = (
    '"""Tokens."""\n\n\ndef sign(token: str) -> str:\n    """Sign a token with the private key."""\n    return token\n'
)
DATED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Folder with a document of each kind except PDF, and with an unreadable document."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "config.md").write_text(README)
    (folder / "sign.py").write_text(CODE)
    (folder / "notes.txt").write_text("The staging server is restarted on Mondays.\n")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 no more than this")
    return folder


def whole(name: str, data: dict[str, Any]) -> None:
    """Assert that a reply has every field of the specification's example with the right type."""
    assert misses(REPLIES[name], data) == []


def test_a_folder_is_indexed_found_and_deleted(theo: Agent, docs: Path) -> None:
    """Replies of the document tools have the fields of the specification."""
    folder = theo.data("index_directory", dir_path=str(docs), recursive=True, namespace="docs", async_mode=False)
    whole("index_directory", folder)
    assert (folder["files_indexed"], [Path(each["file"]).name for each in folder["failed_files"]]) == (3, ["bad.pdf"])
    again = theo.data("index_directory", dir_path=str(docs), namespace="docs")
    assert (again["files_indexed"], again["skipped_duplicates"]) == (0, 3)
    (docs / "config.md").write_text(f"{README}\nThey are renewed in the background.\n")
    file = theo.data("index_file", file_path=str(docs / "config.md"), namespace="docs")
    whole("index_file", file)

    found = theo.data("search", query="how are authentication tokens signed", n_results=5)
    whole("search", {**found, "results": found["results"][:1]})
    assert found["results"][0]["metadata"]["header_path"] == "Configuration > Authentication"
    assert found["total_tokens"] > 0
    stats = theo.data("get_index_stats")
    whole("get_index_stats", stats)
    assert (stats["unique_sources"], stats["namespaces"]) == (3, ["docs"])

    chunk = found["results"][0]["id"]
    gone = theo.data("delete_chunks", ids=[chunk, "chunk_999", chunk.replace("chunk", "mem")])
    whole("delete_chunks", gone)
    assert gone["deleted_ids"] == [chunk]
    whole("delete_file", theo.data("delete_file", source_file=str(docs / "sign.py")))
    assert theo.data("get_index_stats")["unique_sources"] == 2


def test_searches_respect_filters_and_budgets(theo: Agent, docs: Path) -> None:
    """Search finds documents and memories, or only one of the two under a filter, within the token budget."""
    theo.data("index_directory", dir_path=str(docs), namespace="docs", async_mode=False)
    theo.store("Authentication tokens are signed with RS256", "decision", namespace="project:myapp")
    question = "authentication tokens signed"

    def kinds(**filters: str) -> set[tuple[str, str]]:
        found = theo.data("search_with_filters", query=question, filters=filters, n_results=10)
        return {(each["doc_type"], each["namespace"]) for each in found["results"]}

    assert {kind for kind, _ in kinds()} == {"document", "memory"}
    assert kinds(namespace="project:myapp") == kinds(doc_type="memory") == {("memory", "project:myapp")}
    assert kinds(doc_type="document") == kinds(namespace="docs", doc_type="document") == {("document", "docs")}
    whole(
        "search_with_filters",
        theo.data("search_with_filters", query=question, filters={"source_file": str(docs / "config.md")}),
    )

    small = theo.data("search_with_budget", query=question, max_tokens=25)
    assert small["tokens_used"] <= 25
    assert small["truncated"] == (small["truncated_count"] > 0) == True  # noqa: E712 - the very value
    full_titles = theo.data("search_with_budget", query=question, max_tokens=3000)
    assert misses({**REPLIES["search_with_budget"], "results": list}, full_titles) == []
    assert full_titles["tokens_used"] + full_titles["budget_remaining"] == 3000


def test_clearing_deletes_only_documents(theo: Agent, docs: Path) -> None:
    """Clearing deletes as many chunks as the statistics counted, and memories stay."""
    kept = theo.store("Prefer tabs")
    theo.data("index_directory", dir_path=str(docs), async_mode=False)
    before = theo.data("get_index_stats")
    cleared = theo.data("clear_index", confirm=True)

    whole("clear_index", cleared)
    assert (cleared["deleted_count"], cleared["memories_kept"]) == (before["total_documents"], 1)
    assert theo.data("get_index_stats") | {"total_documents": 0} == {
        **before,
        "total_documents": 0,
        "unique_sources": 0,
        "source_files": [],
        "failed_files": [],
        "namespaces": ["global"],
    }
    assert [each["id"] for each in theo.data("memory_list")["memories"]] == [kept]
    assert (docs / "config.md").exists()


def test_a_memory_is_stored_recalled_and_listed(theo: Agent) -> None:
    """Replies of store, recall, list, count, namespaces and context have the fields of the specification."""
    arguments = {"content": "User prefers dark mode for their IDE", "memory_type": "preference", "importance": 0.8}
    stored = theo.data("memory_store", **arguments, metadata={"seen": 1})
    whole("memory_store", stored)
    assert (stored["confidence"], stored["duplicate"]) == (0.3, False)
    assert stored["content_hash"].startswith("sha256_")
    again = theo.data("memory_store", **arguments)
    assert (again["id"], again["duplicate"]) == (stored["id"], True)

    recalled = theo.data("memory_recall", query="dark mode preferences")
    whole("memory_recall", recalled)
    assert [each["id"] for each in recalled["memories"]] == [stored["id"]]
    whole("memory_count", theo.data("memory_count", namespace="global"))
    whole("memory_list", theo.data("memory_list", limit=100, offset=0, order_by="created_at", descending=True))
    whole("memory_list_namespaces", theo.data("memory_list_namespaces"))
    context = theo.data("memory_context", query="dark mode", token_budget=400)
    whole("memory_context", context)
    assert context["context"].startswith("## Relevant Memories\n")
    assert "### Preferences\n" in context["context"]
    assert "- User prefers dark mode for their IDE [" in context["context"]
    assert context["token_estimate"] <= 400


def test_outcomes_change_a_memory(theo: Agent) -> None:
    """Replies of apply, outcome and history have the fields of the specification."""
    memory = theo.store("Always use type hints in Python code", "pattern")
    whole("memory_apply", theo.data("memory_apply", memory_id=memory, context="Applying to authentication flow"))
    outcome = theo.data("memory_outcome", memory_id=memory, success=True, session_id="s1")
    whole("memory_outcome", outcome)
    assert (outcome["old_confidence"], outcome["new_confidence"], outcome["promoted"]) == (0.3, 0.4, False)
    failed = theo.data("memory_outcome", memory_id=memory, success=False, error_msg="mypy disagreed")
    assert failed["new_confidence"] == 0.25
    history = theo.data("validation_history", memory_id=memory)
    whole("validation_history", history)
    assert [each["event_type"] for each in history["events"]] == ["failed", "succeeded", "applied"]
    assert history["events"][0]["context"] == "mypy disagreed"
    assert history["summary"] == {
        "total_applications": 1,
        "success_count": 1,
        "failure_count": 1,
        "success_rate": 0.5,
    }
    only = theo.data("validation_history", memory_id=memory, event_type="applied", limit=1)
    assert [each["event_type"] for each in only["events"]] == ["applied"]
    assert theo.data("validation_history", memory_id=theo.store("x y z"))["summary"]["success_rate"] is None


def test_memories_are_related_and_drawn(theo: Agent) -> None:
    """Edges are added, used by recall, drawn in both formats, and removed in all three ways."""
    one, two, three = (theo.store(text, "fact") for text in ("Redis is the cache", "Deploys are slow", "Moss is green"))
    whole("memory_relate", theo.data("memory_relate", source_id=one, target_id=two, relation="caused_by"))
    theo.data("memory_relate", source_id=two, target_id=three, relation="relates_to", weight=0.5)
    graph = theo.call("memory_inspect_graph", memory_id=one, max_depth=2)
    assert misses(GRAPH, graph, "reply") == []
    assert "data" not in graph
    assert [(each["id"], each["depth"], each["relevance"]) for each in graph["nodes"]] == [
        (one, 0, 1.0),
        (two, 1, 0.7),
        (three, 2, 0.245),
    ]
    picture = theo.call("memory_inspect_graph", memory_id=one, output_format="mermaid")
    assert picture["mermaid"].startswith("graph TD\n")
    assert "relevance" not in theo.call("memory_inspect_graph", memory_id=one, include_scores=False)["nodes"][0]

    found = theo.data("memory_recall", query="what is the cache", n_results=1)
    assert [each["id"] for each in found["memories"]] == [one]
    assert [(each["id"], each["score"]) for each in found["expanded"]] == [(two, 0.63)]
    assert found["expanded"][0]["explanation"] == f"{one} was caused by {two}."

    whole("memory_edge_forget", theo.data("memory_edge_forget", edge_id=1))
    assert theo.data("memory_edge_forget", source_id=two, target_id=three, relation="caused_by")["deleted_ids"] == []
    assert theo.data("memory_edge_forget", source_id=two, target_id=three)["deleted_ids"] == [2]
    assert theo.data("memory_edge_forget", memory_id=three, direction="both")["deleted_count"] == 0


def test_contradictions_are_linked_and_reported(theo: Agent) -> None:
    """Contradictions are linked once, an outdated memory is superseded, and the health check lists the rest."""
    first = theo.store("Deploys go out on Friday", "decision")
    other = theo.data("memory_store", content="Deploys never go out on Friday", memory_type="decision")
    assert other["contradicts"][0] == {
        "memory_id": first,
        "reason": other["contradicts"][0]["reason"],
        "judged_by": "rules",
    }
    theo.data("memory_edge_forget", memory_id=first)
    conflicts = theo.data("memory_detect_contradictions", memory_id=other["id"], similarity_threshold=0.6)
    whole("memory_detect_contradictions", conflicts)
    assert (conflicts["edges_created"], conflicts["judged_by"]) == (1, "rules")
    assert theo.data("memory_detect_contradictions", memory_id=first, similarity_threshold=0.6)["edges_created"] == 0

    theo.data("memory_outcome", memory_id=first, success=False)
    health = theo.data("memory_analyze_health", stale_days=0)
    whole("memory_analyze_health", {**health, "stale": [each for each in health["stale"] if each["last_validated"]]})
    assert health["recommendations"][0] == "Resolve 1 contradiction"
    assert theo.data("memory_analyze_health", include_contradictions=False, include_stale=False)["stale"] == []

    undecided = theo.data("memory_check_supersedes", memory_id=other["id"])
    assert undecided == {"superseded_id": None, "edge_created": False, "reason": None, "judged_by": "rules"}
    theo.calls(*[("memory_outcome", {"memory_id": other["id"], "success": True})] * 2)
    overtaken = theo.data("memory_check_supersedes", memory_id=other["id"])
    whole("memory_check_supersedes", overtaken)
    assert (overtaken["superseded_id"], overtaken["judged_by"]) == (first, "rules")
    listed = {each["id"]: each for each in theo.data("memory_list")["memories"]}
    assert listed[first]["superseded_by"] == [other["id"]]
    assert "superseded_by" not in listed[other["id"]]


def test_a_backfill_links_memories_without_edges(theo: Agent) -> None:
    """A backfill links near memories, has a dry run, and does not process memories twice."""
    one = theo.store("The green apple tart needs butter", "fact")
    theo.store("The green apple tart needs cold butter and sugar", "fact")
    theo.data("memory_edge_forget", memory_id=one)
    tried = theo.data("memory_backfill_edges", dry_run=True)
    whole("memory_backfill_edges", tried)
    done = theo.data("memory_backfill_edges", batch_size=1, max_memories=500)

    assert (tried["edges_created"], tried["remaining_orphans"]) == (1, 2)
    assert (done["initial_orphan_count"], done["edges_created"], done["remaining_orphans"]) == (2, 1, 0)


def test_forgetting_deletes_only_the_selected_memories(theo: Agent) -> None:
    """Memories are forgotten by ID, by query, or by a value that is either.

    Golden rules are forgotten only with force.
    """
    dark, light, tea = (theo.store(text) for text in ("Use dark mode", "Use light mode at noon", "Serve oolong tea"))

    alike = [theo.store("Use linen sheets at sea"), theo.store("Use linen sheets ashore", "decision")]
    both = theo.data("memory_forget", query="linen sheets")
    assert sorted(both["deleted_ids"]) == sorted(alike)
    assert both["undo"] == f"palaver memories undo {' '.join(both['deleted_ids'])}"
    noon = theo.store("Use light mode at noon and at midnight", "decision")
    assert theo.data("memory_forget", query="midnight", n_results=5)["deleted_ids"] == [noon]
    by_id = theo.data("memory_forget", memory_id=dark)
    whole("memory_forget", by_id)
    assert by_id["deleted_ids"] == [dark]
    assert by_id["undo"] == f"palaver memories undo {dark}"
    assert theo.data("memory_forget", memory_id=dark)["deleted_ids"] == []
    assert theo.data("memory_forget", query="light mode", n_results=5)["deleted_ids"] == [light]
    assert theo.data("memory_forget", query="light mode", namespace="project:other")["deleted_ids"] == []
    assert [each["id"] for each in theo.data("memory_list")["memories"]] == [tea]
    theo.calls(*[("memory_outcome", {"memory_id": tea, "success": True})] * 6)
    spared = theo.data("memory_forget", input_value=tea)
    assert (spared["deleted_ids"], spared["protected_ids"]) == ([], [tea])
    assert theo.data("memory_forget", input_value="oolong tea", force=True)["deleted_ids"] == [tea]
    assert theo.data("memory_count")["count"] == 0


@pytest.mark.parametrize("name", ["verifyTokenChain", "verify_token_chain", "TokenStore.verifyTokenChain"])
def test_code_is_found_by_symbol(theo: Agent, docs: Path, name: str) -> None:
    """The name of a unit finds the unit first, in any notation, although other units mention it."""
    (docs / "use.ts").write_text("export function login() {\n  return new TokenStore().verifyTokenChain();\n}\n")
    (docs / "store.ts").write_text(
        "export class TokenStore {\n  verifyTokenChain(): boolean {\n    return true;\n  }\n\n  close() {}\n}\n"
    )
    theo.data("index_directory", dir_path=str(docs), async_mode=False)

    filtered = theo.data("search_with_filters", query=name, filters={"doc_type": "document"})
    for found in (theo.data("search", query=name), filtered):
        best = found["results"][0]["metadata"]
        assert (best["name"], best["start_line"]) == ("TokenStore.verifyTokenChain", 2)


def test_a_pinned_memory_is_forgotten_only_with_force(theo: Agent) -> None:
    """A pinned memory is protected like a golden rule, by ID and by query."""
    with Archive(Home(theo.home)).memories as core:
        pinned = core.remember(Memory("Serve oolong tea", pinned=True)).stored.id

    by_id, by_query = (theo.data("memory_forget", input_value=value) for value in (pinned, "oolong tea"))
    assert (by_id["deleted_ids"], by_id["protected_ids"]) == ([], [pinned])
    assert (by_query["deleted_ids"], by_query["protected_ids"]) == ([], [pinned])
    assert theo.data("memory_forget", memory_id=pinned, force=True)["deleted_ids"] == [pinned]


def test_forgetting_a_memory_deletes_its_file(theo: Agent, tmp_path: Path) -> None:
    """The reply has the path of the file. Undo restores the memory, and the next synchronization its file."""
    with closing(ProjectMemories.of(Archive(Home(theo.home)).memories, tmp_path)) as mnemonics:
        stored = mnemonics.remember("Tabs", "Use tabs in templates", "project-preference").stored
        file = Path(stored.memory.path)
        written = file.read_text()
        gone = theo.data("memory_forget", memory_id=stored.id)
        assert mnemonics.recall("tabs in templates") == []
        assert (gone["deleted_ids"], gone["deleted_files"]) == ([stored.id], [str(file)])
        assert "files_kept" not in gone
        assert not file.exists()

        with Archive(Home(theo.home)).memories as core:
            core.undo([stored.id])
        assert [each.stored.id for each in mnemonics.recall("tabs in templates")] == [stored.id]
        assert file.read_text().splitlines()[-1] == written.splitlines()[-1]


def test_forgetting_a_memory_keeps_a_file_that_was_edited(theo: Agent, tmp_path: Path) -> None:
    """An edit that was not read yet stays in the file, which the reply names, and becomes a memory."""
    with closing(ProjectMemories.of(Archive(Home(theo.home)).memories, tmp_path)) as mnemonics:
        stored = mnemonics.remember("Tabs", "Use tabs in templates", "project-preference").stored
        file = Path(stored.memory.path)
        file.write_text(f"{file.read_text()}Except in YAML.\n")
        gone = theo.data("memory_forget", memory_id=stored.id)

        assert gone["files_kept"] == [f"{file}: the file was edited in the meantime"]
        assert file.read_text().endswith("Except in YAML.\n")
        [found] = mnemonics.recall("tabs in templates")
        assert found.stored.id != stored.id


def test_every_tool_has_an_example() -> None:
    """Every tool without its own tests has an example."""
    assert {*REPLIES, "memory_inspect_graph", "trace_query", "trace_list"} == set(PARAMETERS)


def test_a_secret_is_replaced_and_its_kind_reported(theo: Agent) -> None:
    """memory_store stores a placeholder and reports the kind of secret. Recall shows no secret."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    stored = theo.data("memory_store", content=f"The deploy key is {token}", metadata={"was": token})

    assert stored["secrets_removed"] == ["github-pat"]
    assert token not in str(theo.data("memory_recall", query="deploy key"))


def test_irrelevant_memories_are_listed_as_weak(theo: Agent) -> None:
    """A question on another topic recalls no memories and lists the nearest memory as weak."""
    theo.data("memory_store", content="I prefer blanks over spaces in Go code")
    found = theo.data("memory_recall", query="zxqv gnarl")

    assert (found["memories"], found["total"]) == ([], 0)
    assert [each["content"] for each in found["weak"]] == ["I prefer blanks over spaces in Go code"]
    assert "weak" not in theo.data("memory_recall", query="blanks over spaces")
    assert theo.data("search", query="zxqv gnarl")["results"] == []


def test_a_memory_is_stored_with_its_relations(theo: Agent) -> None:
    """Valid edges are added. The reply contains the target and error of each invalid edge."""
    tea = theo.store("Tea is served at four")
    reply = theo.data(
        "memory_store",
        content="Biscuits come with tea",
        relates_to=[
            {"target": tea, "relation": "caused_by", "weight": 0.8},
            {"target": "mem_99"},
            {"target": tea, "weight": 2},
        ],
    )
    [edge] = [each for each in reply["relations"] if each["relation"] == "caused_by"]
    around = theo.call("memory_inspect_graph", memory_id=reply["id"])

    assert (edge["target_id"], edge["weight"]) == (tea, 0.8)
    assert edge["edge_id"] in {each["id"] for each in around["edges"]}
    assert [each["target"] for each in reply["relation_errors"]] == ["mem_99", tea]
    assert reply["relation_errors"][0]["error"] == "Memory not found: mem_99"


def test_a_caller_can_name_the_superseded_memory(theo: Agent) -> None:
    """The old memory is listed and recalled with half its importance until the edge is removed."""
    old = theo.store("CI runs on Jenkins", "fact")
    query = "CI runs on Jenkins"
    reply = theo.data("memory_store", content="Buildkite builds it", memory_type="fact", supersedes_query=query)
    [edge] = reply["relations"]
    listed = {each["id"]: each for each in theo.data("memory_list")["memories"]}
    recalled = {each["id"]: each for each in theo.data("memory_recall", query="Jenkins")["memories"]}
    theo.data("memory_edge_forget", edge_id=edge["edge_id"])
    restored = {each["id"]: each for each in theo.data("memory_list")["memories"]}

    assert reply["superseded_ids"] == [old]
    assert (listed[old]["importance"], listed[old]["superseded_by"]) == (0.25, [reply["id"]])
    assert (recalled[old]["importance"], recalled[old]["superseded_by"]) == (0.25, [reply["id"]])
    assert theo.data("memory_count")["count"] == 2
    assert (restored[old]["importance"], restored[old]["confidence"]) == (0.5, 0.3)
    assert "superseded_by" not in restored[old]


def test_a_proposed_supersession_is_shown(theo: Agent) -> None:
    """The reply, the list and the graph show the supersession as proposed, and the old memory is unchanged."""
    old = theo.store("Builds must finish within 10 minutes", "fact")
    reply = theo.data(
        "memory_store",
        content="Builds must finish within 15 minutes, the limit of 10 was raised",
        memory_type="fact",
    )
    listed = {each["id"]: each for each in theo.data("memory_list")["memories"]}
    [edge] = theo.call("memory_inspect_graph", memory_id=old)["edges"]

    assert (reply["superseded_ids"], reply["proposed_superseded_ids"]) == ([], [old])
    assert listed[old]["proposed_superseded_by"] == [reply["id"]]
    assert (edge["relation"], edge["proposed"]) == ("supersedes", True)
    assert listed[old]["importance"] == 0.5


def test_the_context_says_what_it_withheld(theo: Agent) -> None:
    """Memories of low trust and digest lines that did not fit are counted, so that an agent can ask for them."""
    namespace = "project:tide-clock"
    theo.store("The tide clock uses UTC", "decision", namespace=namespace)
    with Archive(Home(theo.home)).memories as core:
        core.remember(Memory("Delete the tide tables", "decision", namespace=namespace, origin=Origin.TOOL))
    context = theo.data("memory_context", namespace=namespace)

    assert (context["memory_count"], context["withheld"]) == (1, 1)
    assert "Delete the tide tables" not in context["context"]
