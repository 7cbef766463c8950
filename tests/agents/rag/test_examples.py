"""Tests of the replies of the rag tools, with the examples of their specification."""

import re
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from msgspec.structs import replace

from palaver.core.memory import Memory, MemoryState, Relation
from palaver.core.runtime import silent
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import DEFAULT_MODEL, load

from .client import Agent
from .page import MEMORY, REPLIES

PYTHON = "I prefer Python over JavaScript for backend development"
PANDAS = "I prefer pandas over numpy for data analysis"
HOUR = 3_600_000


def odd(shape: object, reply: object, where: str = "reply") -> list[str]:
    """Return the paths at which a reply lacks a field of a shape, or has a value of another type."""
    if isinstance(shape, dict):
        wanted, shown = cast("dict[str, object]", shape), cast("dict[str, object]", reply)
        return [
            fault
            for name, each in wanted.items()
            for fault in ([f"{where}.{name}"] if name not in shown else odd(each, shown[name], f"{where}.{name}"))
        ]
    if isinstance(shape, list):
        [entry] = cast("list[object]", shape)
        entries = cast("list[object]", reply)
        return [where] if not entries else [fault for each in entries for fault in odd(entry, each, f"{where}[]")]
    kinds = (int, float) if shape is float else shape
    return [] if isinstance(reply, cast("type", kinds)) else [where]


def write_code(rag: Agent) -> None:
    """Write a module with two functions into the project."""
    source = rag.project / "src" / "auth" / "handlers.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        '"""Handlers."""\n\n\nasync def login(request: str) -> str:\n    """Log a user in, return a token."""\n'
        "    return request\n\n\ndef paint(colour: str) -> None:\n    print(colour)\n"
    )


def test_a_stored_memory_is_retrieved_and_deleted(rag: Agent) -> None:
    """The examples of the specification work in sequence: store, retrieve, delete."""
    stored = rag.call(
        "store_memory",
        content=PYTHON,
        category="preference",
        scope="global",
        importance=0.8,
        tags=["python", "backend", "languages"],
    )
    assert (odd(REPLIES["store_memory"], stored), stored.keys() - REPLIES["store_memory"]) == ([], set())
    assert (stored["status"], stored["context_level"]) == ("stored", "USER_PREFERENCE")
    assert str(UUID(stored["memory_id"])) == stored["memory_id"]

    query = {"query": "Python for the backend", "limit": 3, "context_level": "USER_PREFERENCE", "min_importance": 0.5}
    found = rag.call("retrieve_memories", **query)
    assert (odd(REPLIES["retrieve_memories"], found), found["count"]) == ([], 1)
    [row] = found["results"]
    assert row.keys() == MEMORY.keys()
    assert (row["memory_id"], row["content"], row["category"], row["importance"]) == (
        stored["memory_id"],
        PYTHON,
        "preference",
        0.8,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["created_at"])

    deleted = rag.call("delete_memory", memory_id=stored["memory_id"])
    assert (odd(REPLIES["delete_memory"], deleted), deleted["deleted"]) == ([], True)
    assert rag.call("retrieve_memories", **query) == {"results": [], "count": 0}
    again = rag.call("delete_memory", memory_id=stored["memory_id"])
    assert again == {"deleted": False, "memory_id": stored["memory_id"]}
    assert deleted["undo"] == f"palaver memories undo mem_{UUID(stored['memory_id']).int & 0xFFFF}"


def test_an_unknown_memory_is_not_deleted(rag: Agent) -> None:
    """The ID of the specification is valid, and deletes nothing, even if a memory has the same key."""
    memory = rag.store(PYTHON, "preference")
    for unknown in ("550e8400-e29b-41d4-a716-446655440000", f"0{memory[1:-1]}9", f"1{memory[1:]}"):
        assert rag.call("delete_memory", memory_id=unknown) == {"deleted": False, "memory_id": unknown}

    assert rag.contents("retrieve_preferences", "Python backend") == [PYTHON]


def test_filters_select_memories(rag: Agent) -> None:
    """Level, scope, project, category, importance and tags each select memories. Tags ignore case."""
    rag.store(PYTHON, "preference", importance=0.8, tags=["Backend"])
    rag.store("The Python backend runs on port 8080", "fact", scope="project", project_name="my-web-app")
    rag.store("The Python backend of the shop is slow", "fact", scope="project", project_name="shop", importance=0.2)

    def found(**filters: object) -> set[str]:
        return {each.split()[-1] for each in rag.contents("retrieve_memories", "Python backend", limit=10, **filters)}

    assert found() == {"development", "8080", "slow"}
    assert found(context_level="PROJECT_CONTEXT") == {"8080", "slow"}
    assert found(scope="global") == {"development"}
    assert found(scope="project") == {"8080", "slow"}
    assert found(project_name="shop") == {"slow"}
    assert found(category="preference") == {"development"}
    assert found(min_importance=0.5) == {"development", "8080"}
    assert found(tags=["BACKEND", "other"]) == {"development"}
    assert found(scope="project", project_name="unknown") == set()


def test_a_memory_is_global_unless_the_scope_is_project(rag: Agent) -> None:
    """Without a scope, a memory is global even if it names a project. The project's name then selects it too."""
    rag.store("The gateway of the shop listens on port 8080", project_name="shop")
    rag.store("The gateway of the bank listens on port 9090", project_name="bank")
    rag.store("The gateway is restarted on Sundays", scope="project", project_name="shop")
    query = "gateway"

    def found(tool: str = "retrieve_memories", **filters: object) -> set[str]:
        return {each.split()[-1] for each in rag.contents(tool, query, limit=10, **filters)}

    assert {(each.memory.namespace, each.memory.project) for each in rag.context.core.page()} == {
        ("global", "shop"),
        ("global", "bank"),
        ("project:shop", "shop"),
    }
    assert found(scope="global") == {"8080", "9090"}
    assert found(scope="global", project_name="shop") == {"8080"}
    assert found(scope="project", project_name="shop") == {"Sundays"}
    assert found(project_name="shop") == {"8080", "Sundays"}
    assert found("retrieve_project_context", project_name="shop") == {"8080", "Sundays"}


def test_specialised_tools_retrieve_one_level(rag: Agent) -> None:
    """Each specialised tool retrieves one level. Project context is that of this project and of all projects."""
    rag.store(PANDAS, "preference")
    rag.store("This project uses pandas for data analysis", "fact", scope="project", project_name="my-web-app")
    rag.store("The shop uses pandas for data analysis", "fact", scope="project", project_name="shop")
    rag.store("Currently replacing pandas in the data analysis", "event")

    assert rag.contents("retrieve_preferences", "pandas data analysis") == [PANDAS]
    assert rag.contents("retrieve_session_state", "pandas data analysis") == [
        "Currently replacing pandas in the data analysis"
    ]
    assert rag.contents("retrieve_project_context", "pandas data analysis") == [
        "This project uses pandas for data analysis"
    ]
    assert rag.contents("retrieve_project_context", "pandas data analysis", project_name="shop") == [
        "The shop uses pandas for data analysis"
    ]


def test_irrelevant_memories_are_marked(rag: Agent) -> None:
    """If no memory is relevant, the nearest are returned and marked as weak."""
    rag.store("The parser of the shop is written in Rust", "fact")
    [found] = rag.call("retrieve_project_context", query="tokenizer")["results"]

    assert (found["content"], found["weak"]) == ("The parser of the shop is written in Rust", True)
    assert rag.call("retrieve_project_context", query="tide tables of Brest") == {"results": [], "count": 0}


def test_a_score_of_at_least_seven_tenths_is_relevant(rag: Agent) -> None:
    """Scores are comparable between replies: those of related texts reach 0.7, those of others do not."""
    rag.store("I like to write my notes with a fountain pen", "preference")
    rag.store("Sketch user interfaces on paper before coding them", "preference")
    rag.store("The billing service retries a payment three times", "fact")
    related = {
        "writing tools I prefer": "I like to write my notes with a fountain pen",
        "how often is a payment tried again": "The billing service retries a payment three times",
        "user interface drafts": "Sketch user interfaces on paper before coding them",
    }
    for query, content in related.items():
        first, *others = rag.call("retrieve_memories", query=query)["results"]
        assert (first["content"], first["score"] >= 0.7) == (content, True), (query, first)
        assert [row["score"] for row in others] == sorted((row["score"] for row in others), reverse=True)
    weak = rag.call("retrieve_memories", query="retries of the importer")["results"]
    assert all(row["score"] < 0.7 for row in weak if row.get("weak")), weak
    write_code(rag)
    rag.call("index_codebase", directory_path=str(rag.project), project_name="my-web-app")
    store, home = rag.context.core.store, rag.place.home
    Indexer(store, Generations(home.index), load(DEFAULT_MODEL)).embed(silent)
    units = rag.call("search_code", query="paint something in a colour")["results"]
    assert {row["unit_name"]: row["score"] >= 0.7 for row in units} == {"login": False, "paint": True}


def test_superseded_memories_are_marked(rag: Agent) -> None:
    """A superseded memory names its successor and follows it, also in the lists of the latest memories."""
    old = rag.store("We deploy the shop with a shell script on one server", "fact")
    new = rag.store("The shop is deployed by a pipeline on three servers", "fact")
    keys = [stored.id for stored in rag.context.core.page()]
    rag.context.core.graph.relate(keys[0], keys[1], Relation.SUPERSEDES)
    query = "We deploy the shop with a shell script on one server"

    found = rag.call("retrieve_memories", query=query)["results"]
    listed = [row for rows in rag.call("show_current_context")["results"].values() for row in rows]
    assert [(row["memory_id"], row.get("superseded_by")) for row in found] == [(new, None), (old, [new])]
    assert {row["memory_id"]: row.get("superseded_by") for row in listed} == {old: [new], new: None}


def test_a_file_is_no_folder(rag: Agent) -> None:
    """A file in place of a folder is a mistake of the caller, as is a folder that does not exist."""
    write_code(rag)
    for path in (rag.project / "src" / "auth" / "handlers.py", rag.project / "missing"):
        error = rag.call("index_codebase", directory_path=str(path))["error"]
        assert error["type"] == "ValidationError", error


def test_session_state_is_found_by_any_query(rag: Agent) -> None:
    """If no session state matches, the latest is returned and marked as weak, as for `current task progress`."""
    for page in ("login", "payment"):
        rag.store(f"Currently fixing the {page} page", "event")
    found = rag.call("retrieve_session_state", query="current task progress", limit=1)["results"]

    assert [(each["content"], each["weak"]) for each in found] == [("Currently fixing the payment page", True)]


def test_only_session_state_expires(rag: Agent) -> None:
    """A memory of the level SESSION_STATE expires after 48 hours. An event of another level does not expire."""
    rag.store("The login page is half done", "fact", context_level="SESSION_STATE")
    rag.store("The first release was in May", "event", context_level="PROJECT_CONTEXT")
    event, state = rag.context.core.page()

    assert event.memory.valid_until is None
    assert state.memory.valid_until is not None
    assert abs(state.memory.valid_until - state.created - 48 * HOUR) < 60_000


def test_a_repeated_memory_is_stored_once(rag: Agent) -> None:
    """The same content gets the same ID, and the reply says that it is a duplicate."""
    first = rag.store(PYTHON, "preference")
    again = rag.call("store_memory", content=PYTHON, category="preference")

    assert (again["memory_id"], again["duplicate"]) == (first, True)


def test_content_is_cleaned_before_it_is_stored(rag: Agent) -> None:
    """Control characters are removed except newlines and tabs. Metadata is flat and short, tags are in lower case."""
    memory = rag.store(
        "Tabs\tand\nlines\x00\x07 stay",
        tags=["Python", "python", " Back  End "],
        metadata={"k" * 150: "v" * 2_000, "nested": {"a": [1, 2]}, "count": 3, "flag": True},
    )
    [stored] = rag.context.core.page()

    assert stored.memory.content == "Tabs\tand\nlines stay"
    assert stored.memory.tags == ("python", "back end")
    assert stored.memory.metadata == {
        "k" * 100: "v" * 1_000,
        "nested": "{'a': [1, 2]}",
        "count": 3,
        "flag": True,
    }
    assert rag.call("delete_memory", memory_id=stored.id)["deleted"] is True
    assert rag.context.core.get(stored.id).state is MemoryState.ARCHIVED
    assert memory


def test_code_is_indexed_and_found(rag: Agent) -> None:
    """Indexed functions are found with their lines and signature. A second call skips unchanged files."""
    write_code(rag)
    indexed = rag.call("index_codebase", directory_path=str(rag.project / "src"), project_name="my-web-app")
    assert odd(REPLIES["index_codebase"], indexed) == []
    assert (indexed["status"], indexed["files_indexed"], indexed["project_name"]) == ("completed", 1, "my-web-app")
    assert indexed["semantic_units_extracted"] == 2

    found = rag.call("search_code", query="log a user in", limit=1, language="python")
    assert odd(REPLIES["search_code"], found) == []
    [unit] = found["results"]
    assert unit | {"score": 0, "content": ""} == {
        "file_path": "src/auth/handlers.py",
        "start_line": 4,
        "end_line": 6,
        "unit_type": "function",
        "unit_name": "login",
        "signature": "async def login(request: str) -> str",
        "language": "python",
        "score": 0,
        "content": "",
    }
    assert unit["content"].startswith("async def login")
    again = rag.call("index_codebase", directory_path=str(rag.project), recursive=True)
    assert (again["files_indexed"], again["files_unchanged"], again["project_name"]) == (0, 1, "my-web-app")


def test_code_search_has_filters(rag: Agent) -> None:
    """Project, language and file pattern limit a code search."""
    write_code(rag)
    rag.call("index_codebase", directory_path=str(rag.project), project_name="my-web-app")

    def found(**filters: object) -> list[str]:
        return [each["unit_name"] for each in rag.call("search_code", query="login", **filters)["results"]]

    assert found(project_name="my-web-app")[:1] == ["login"]
    assert found(file_pattern="*/auth/*")[:1] == ["login"]
    assert found(file_pattern="*/billing/*") == found(language="rust") == found(project_name="other") == []


def test_code_that_others_indexed_is_found_once(rag: Agent) -> None:
    """Code of the project is found in every namespace in which it was indexed, and shown once."""
    write_code(rag)
    rag.context.documents.index_directory(rag.project)
    rag.context.documents.index_directory(rag.project, "project:other")
    found = [each["unit_name"] for each in rag.call("search_code", query="login handlers")["results"]]

    assert found.count("login") == 1
    assert rag.call("search_code", query="login", project_name="my-web-app")["count"] == 0


def test_prose_is_not_code(rag: Agent) -> None:
    """Indexed documents are not found by a code search."""
    (rag.project / "README.md").write_text("# Login\n\nHow to log in\n")
    rag.call("index_codebase", directory_path=str(rag.project))

    assert rag.call("search_code", query="login")["count"] == 0


def test_statistics_are_counted(rag: Agent) -> None:
    """Statistics count every memory once by category and level, and each query text as a hit or a miss."""
    empty = rag.call("get_memory_stats")
    assert odd(REPLIES["get_memory_stats"], empty) == []
    assert (empty["total_memories"], empty["cache_stats"]) == (0, {"hits": 0, "misses": 0, "hit_rate": 0.0})
    rag.store(PYTHON, "preference")
    rag.context.core.remember(Memory("We chose SQLite", "decision"))
    rag.context.core.remember(Memory("Parser half done", "session"))
    before = rag.call("get_memory_stats")["cache_stats"]
    for query in ("backend language", "backend language", "database"):
        rag.call("retrieve_memories", query=query)
    stats = rag.call("get_memory_stats")

    assert stats["by_category"] == {"preference": 1, "fact": 1, "event": 1, "workflow": 0, "context": 0}
    assert stats["by_context_level"] == {"USER_PREFERENCE": 1, "PROJECT_CONTEXT": 1, "SESSION_STATE": 1}
    assert (stats["total_memories"], stats["storage_backend"], stats["read_only_mode"]) == (3, "sqlite", False)
    after = stats["cache_stats"]
    assert after["misses"] - before["misses"] == 2
    assert after["hits"] - before["hits"] == 1  # the search for the nearest memory is not counted again
    assert after["hit_rate"] == round(after["hits"] / (after["hits"] + after["misses"]), 3)


def test_current_context_shows_each_level(rag: Agent) -> None:
    """The debug tool shows the memories that a query would retrieve, or the latest, and counts no access."""
    rag.store(PYTHON, "preference")
    rag.store("This project uses Python", "fact", scope="project", project_name="my-web-app")
    shown = rag.call("show_current_context", query="Python")
    latest = rag.call("show_current_context")

    assert (shown["project"], shown["count"], latest["count"]) == ("project:my-web-app", 2, 2)
    assert [each["content"] for each in shown["results"]["USER_PREFERENCE"]] == [PYTHON]
    assert [stored.accesses for stored in rag.context.core.page()] == [0, 0]


def test_memories_of_other_toolsets_are_retrieved(rag: Agent) -> None:
    """Memories of every type have a category and a level, and are deleted by their public ID or their UUID."""
    stored = rag.context.core.remember(
        Memory("Deploy the backend with make ship", "code_pattern", source="theo")
    ).stored
    [found] = rag.call("retrieve_memories", query="deploy the backend", category="workflow")["results"]

    assert (found["category"], found["context_level"]) == ("workflow", "PROJECT_CONTEXT")
    assert rag.call("delete_memory", memory_id=found["memory_id"])["deleted"] is True
    assert rag.context.core.get(stored.id).state is MemoryState.ARCHIVED


def test_two_projects_of_one_name_share_no_memories(rag: Agent, tmp_path: Path) -> None:
    """The name of the agent's project selects the agent's own project."""
    other = Agent(tmp_path / "other")
    other.__dict__["context"] = type(rag.context)(replace(rag.place, roots=(), project=other.project))
    rag.store("The backend listens on port 1", scope="project", project_name="my-web-app")
    other.store("The backend listens on port 2", scope="project", project_name="my-web-app")

    def found(agent: Agent) -> list[str]:
        return agent.contents("retrieve_project_context", "backend port", project_name="my-web-app")

    assert (found(rag), found(other)) == (["The backend listens on port 1"], ["The backend listens on port 2"])


def test_long_replies_are_truncated(rag: Agent) -> None:
    """A reply has at most 10,000 tokens. Its IDs stay whole."""
    for number in range(3):
        rag.store(f"Backend note {number}: " + "word " * 9_000)
    reply: dict[str, Any] = rag.call("retrieve_memories", query="backend note")

    assert reply["truncated"] is True
    assert all(UUID(each["memory_id"]) for each in reply["results"])
    assert len(str(reply)) < 60_000
