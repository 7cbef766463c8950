"""No secret is stored with a memory, its history or its edges."""

from pathlib import Path

import pytest

from palaver.archiver.reading.parsing import secrets_in
from palaver.archiver.redaction import VERSION, Redactor, kinds_of
from palaver.archiver.store import Store
from palaver.core.errors import InvalidNamespace
from palaver.core.home import Home
from palaver.core.memory import (
    Edge,
    EventKind,
    Memory,
    MemoryEvent,
    MemoryRevision,
    MemoryState,
    Relation,
    StoredMemory,
)
from palaver.observe.memory.contradictions import parse_snapshot, snapshot_of
from palaver.observe.memory.memory_core import redact_stored_memories
from palaver.observe.pipeline import Pipeline

from .memory_harness import KEY, Harness

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SECRET_TEXT = f"The deploy key is {TOKEN} until May."


def is_absent(harness: Harness) -> bool:
    """Return whether no file of the store contains the secret."""
    files = [path for path in harness.folder.rglob("*") if path.is_file()]
    assert files
    return not any(TOKEN.encode() in path.read_bytes() for path in files)


def test_every_part_of_a_memory_is_without_secrets(harness: Harness) -> None:
    """Content, title, tags, metadata and source are redacted. A metadata key can identify its value as a secret."""
    stored = harness.add(
        SECRET_TEXT,
        title=f"Key {TOKEN}",
        tags=("deploy", f"was {TOKEN}"),
        metadata={"by": [{"token": TOKEN}], "password": "vR7#kq2!xW9p", "count": 2},
        source=TOKEN,
        session_id=TOKEN,
    )

    memory = stored.memory
    assert memory.content.startswith("The deploy key is [secret:github-pat:")
    assert memory.content.endswith("] until May.")
    assert memory.metadata["count"] == 2
    assert "vR7#kq2!xW9p" not in str(memory)
    assert TOKEN not in str(memory)
    assert is_absent(harness)
    assert kinds_of(memory)[0] == "github-pat"


def test_a_namespace_with_a_secret_is_refused(harness: Harness) -> None:
    """A namespace with a secret is rejected with an error that does not repeat the secret."""
    with pytest.raises(InvalidNamespace) as refused:
        harness.add("The timeout is 30 seconds.", namespace=f"project:{TOKEN}")

    assert TOKEN not in str(refused.value)
    assert is_absent(harness)


def test_an_edit_is_without_secrets(harness: Harness) -> None:
    """An edit and its history are redacted, and repeating the same secret is not an edit."""
    stored = harness.add("The deploy key is in the vault.")
    after = harness.core.revise(
        stored.id, MemoryRevision(SECRET_TEXT, title=TOKEN, tags=(TOKEN,), metadata={"key": TOKEN})
    )
    again = harness.core.revise(stored.id, MemoryRevision(SECRET_TEXT))

    assert again == after
    assert "[secret:github-pat:" in after.memory.content
    assert is_absent(harness)


def test_a_memory_with_the_same_secret_is_a_duplicate(harness: Harness) -> None:
    """Duplicates are detected by their redacted content."""
    first = harness.add(SECRET_TEXT)

    again = harness.remember(SECRET_TEXT)
    assert (again.duplicate, again.stored.id) == (True, first.id)


def test_reasons_and_contexts_are_without_secrets(harness: Harness) -> None:
    """Contexts, errors and reasons of events and edges are redacted like the memory."""
    one, other = harness.add("Deploy on Mondays."), harness.add("The kettle is brass.")
    harness.core.feedback.apply(one.id, SECRET_TEXT, TOKEN)
    harness.core.feedback.outcome(one.id, success=False, error=SECRET_TEXT, session_id=TOKEN)
    harness.core.graph.relate(one.id, other.id, Relation.CAUSED_BY, reason=SECRET_TEXT)

    assert is_absent(harness)


def test_the_report_counts_redacted_secrets_of_memories(harness: Harness) -> None:
    """`palaver redact` lists redacted memories with the kinds of their secrets."""
    stored = harness.add(SECRET_TEXT, title=f"Key {TOKEN}")

    report = secrets_in(harness.store)
    assert report.memories == {stored.id: {"github-pat": 2}}
    assert report.kinds == {"github-pat": (1, 2)}


def test_a_memory_without_secrets_is_unchanged(harness: Harness) -> None:
    """Redaction leaves ordinary words, tags and metadata unchanged."""
    memory = Memory("Tabs in templates.", title="Tabs", tags=("style",), metadata={"line": 3, "quote": "use tabs"})

    assert harness.core.remember(memory).stored.memory == memory


def stored_before(harness: Harness) -> StoredMemory:
    """Return a memory as an earlier version stored it, with the secret in its history and an edge."""
    store, memory = (
        harness.store,
        Memory(SECRET_TEXT, "fact", TOKEN, tags=(TOKEN,), metadata={"password": "vR7#kq2!xW9p"}),
    )
    with store.transaction():
        key = store.memories.insert(memory, harness.at)
        stored = store.memories.load([key])[key]
        store.memory_events.add(MemoryEvent(key, EventKind.EDITED, harness.at, TOKEN, TOKEN, snapshot_of(stored)))
        store.memory_edges.put(Edge(key, store.memories.insert(Memory("x"), 1), Relation.RELATES_TO, 1.0, TOKEN))
    return stored


def test_secrets_that_an_earlier_version_stored_are_redacted(harness: Harness) -> None:
    """The memory, its history and its edges lose the secrets without a new event. Nothing else changes."""
    before = stored_before(harness)
    assert redact_stored_memories(harness.store, Redactor(KEY)) == 1

    after = harness.core.get(before.id)
    assert kinds_of(after.memory)[0] == "github-pat"
    assert (after.updated, after.stats, after.state) == (before.updated, before.stats, before.state)
    [event] = harness.core.history(before.id)
    assert parse_snapshot(event.before)[0] == after.memory
    harness.store.close()
    assert is_absent(harness)


def test_checked_memories_are_not_checked_again(harness: Harness) -> None:
    """Neither redacted memories nor memories stored under the current rules are checked again."""
    stored_before(harness)
    redact_stored_memories(harness.store, Redactor(KEY))
    harness.add("The deploy key is in the vault.")

    assert harness.store.memories.to_redact(VERSION, 10) == []
    assert redact_stored_memories(harness.store, Redactor(KEY)) == 0


def test_memories_that_become_equal_by_redaction_are_merged(harness: Harness) -> None:
    """If redaction makes two memories equal, the second is forgotten as a duplicate."""
    now = harness.add(SECRET_TEXT)
    with harness.store.transaction():
        key = harness.store.memories.insert(Memory(SECRET_TEXT, "preference"), harness.at)
    redact_stored_memories(harness.store, Redactor(KEY))

    assert harness.store.memories.load([key])[key].state is MemoryState.ARCHIVED
    assert harness.core.get(now.id).state is MemoryState.ACTIVE


def test_redaction_never_forgets_a_golden_rule_for_another_memory(harness: Harness) -> None:
    """If redaction makes two memories equal and one of them is protected, the other is forgotten."""
    now = harness.add(SECRET_TEXT)
    with harness.store.transaction():
        key = harness.store.memories.insert(Memory(SECRET_TEXT, "preference"), harness.at)
    rule = harness.succeed(f"mem_{key}", 6)
    redact_stored_memories(harness.store, Redactor(KEY))

    assert harness.core.get(rule.id).state is MemoryState.ACTIVE
    assert harness.core.get(now.id).state is MemoryState.ARCHIVED


def test_an_ingest_run_redacts_stored_memories(tmp_path: Path) -> None:
    """`palaver archive` and the background archiver redact memories that were stored under older rules."""
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store, store.transaction():
        key = store.memories.insert(Memory(SECRET_TEXT), 1)
    with Pipeline(home) as pipeline:
        pipeline.run(())
    with Store.open(home.database) as store:
        assert TOKEN not in store.memories.load([key])[key].memory.content
    assert not any(TOKEN.encode() in path.read_bytes() for path in home.root.rglob("*") if path.is_file())


def test_invalid_bytes_become_replacement_characters(harness: Harness) -> None:
    """Lone surrogates, which stand for invalid bytes of a command line, become U+FFFD in every field."""
    odd = "ab\udcffcd"
    stored = harness.add(odd, title=odd, project=odd, tags=(odd,), metadata={"where": odd, odd: [odd]})
    harness.core.feedback.outcome(stored.id, success=False, error=odd)
    edited = harness.core.revise(stored.id, MemoryRevision(content=f"{odd} anew", tags=(odd,)))

    replaced = "ab\ufffdcd"
    assert (stored.memory.content, stored.memory.title, stored.memory.project, stored.memory.tags) == (
        replaced,
        replaced,
        replaced,
        (replaced,),
    )
    assert stored.memory.metadata == {"where": replaced, replaced: [replaced]}
    assert (edited.memory.content, harness.recall("anew")) == (f"{replaced} anew", [f"{replaced} anew"])
    assert [event.context for event in harness.core.history(stored.id, [EventKind.FAILED])] == [replaced]
