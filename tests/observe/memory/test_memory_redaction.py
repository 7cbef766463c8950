"""Redaction: no secret is stored with a memory, its history or its edges."""

from pathlib import Path

import pytest

from palaver.archiver.reading.secrets_report import kinds_of, secrets_in
from palaver.archiver.redaction import VERSION, Redactor
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
from palaver.observe.memory.memory_records import parse_snapshot, snapshot_of
from palaver.observe.memory.memory_redaction import redact_stored_memories
from palaver.observe.pipeline import Pipeline

from .holding import KEY, Holding

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SAID = f"The deploy key is {TOKEN} until May."


def nowhere(holding: Holding) -> bool:
    """Return whether no file of the store contains the secret."""
    files = [path for path in holding.folder.rglob("*") if path.is_file()]
    assert files
    return not any(TOKEN.encode() in path.read_bytes() for path in files)


def test_every_part_of_a_memory_is_without_secrets(holding: Holding) -> None:
    """Content, title, tags, metadata and source are redacted. A metadata key can identify its value as a secret."""
    held = holding.hold(
        SAID,
        title=f"Key {TOKEN}",
        tags=("deploy", f"was {TOKEN}"),
        metadata={"by": [{"token": TOKEN}], "password": "vR7#kq2!xW9p", "count": 2},
        source=TOKEN,
        session_id=TOKEN,
    )

    memory = held.memory
    assert memory.content.startswith("The deploy key is [secret:github-pat:")
    assert memory.content.endswith("] until May.")
    assert memory.metadata["count"] == 2
    assert "vR7#kq2!xW9p" not in str(memory)
    assert TOKEN not in str(memory)
    assert nowhere(holding)
    assert kinds_of(memory)[0] == "github-pat"


def test_a_namespace_with_a_secret_is_refused(holding: Holding) -> None:
    """A namespace with a secret is rejected with an error that does not repeat the secret."""
    with pytest.raises(InvalidNamespace) as refused:
        holding.hold("The timeout is 30 seconds.", namespace=f"project:{TOKEN}")

    assert TOKEN not in str(refused.value)
    assert nowhere(holding)


def test_an_edit_is_without_secrets(holding: Holding) -> None:
    """An edit and its history are redacted, and repeating the same secret is not an edit."""
    held = holding.hold("The deploy key is in the vault.")
    after = holding.core.revise(held.id, MemoryRevision(SAID, title=TOKEN, tags=(TOKEN,), metadata={"key": TOKEN}))
    again = holding.core.revise(held.id, MemoryRevision(SAID))

    assert again == after
    assert "[secret:github-pat:" in after.memory.content
    assert nowhere(holding)


def test_a_memory_with_the_same_secret_is_a_duplicate(holding: Holding) -> None:
    """Duplicates are detected by their redacted content."""
    first = holding.hold(SAID)

    again = holding.remember(SAID)
    assert (again.duplicate, again.stored.id) == (True, first.id)


def test_reasons_and_contexts_are_without_secrets(holding: Holding) -> None:
    """Contexts, errors and reasons of events and edges are redacted like the memory."""
    one, other = holding.hold("Deploy on Mondays."), holding.hold("The kettle is brass.")
    holding.core.feedback.apply(one.id, SAID, TOKEN)
    holding.core.feedback.outcome(one.id, success=False, error=SAID, session_id=TOKEN)
    holding.core.graph.relate(one.id, other.id, Relation.CAUSED_BY, reason=SAID)

    assert nowhere(holding)


def test_the_report_counts_redacted_secrets_of_memories(holding: Holding) -> None:
    """`palaver redact` lists redacted memories with the kinds of their secrets."""
    held = holding.hold(SAID, title=f"Key {TOKEN}")

    told = secrets_in(holding.store)
    assert told.memories == {held.id: {"github-pat": 2}}
    assert told.kinds == {"github-pat": (1, 2)}


def test_a_memory_without_secrets_is_unchanged(holding: Holding) -> None:
    """Redaction leaves ordinary words, tags and metadata unchanged."""
    said = Memory("Tabs in templates.", title="Tabs", tags=("style",), metadata={"line": 3, "quote": "use tabs"})

    assert holding.core.remember(said).stored.memory == said


def stored_before(holding: Holding) -> StoredMemory:
    """Return a memory as an earlier version stored it, with the secret in its history and an edge."""
    store, memory = holding.store, Memory(SAID, "fact", TOKEN, tags=(TOKEN,), metadata={"password": "vR7#kq2!xW9p"})
    with store.transaction():
        key = store.memories.insert(memory, holding.at)
        held = store.memories.load([key])[key]
        store.memory_events.add(MemoryEvent(key, EventKind.EDITED, holding.at, TOKEN, TOKEN, snapshot_of(held)))
        store.memory_edges.put(Edge(key, store.memories.insert(Memory("x"), 1), Relation.RELATES_TO, 1.0, TOKEN))
    return held


def test_secrets_that_an_earlier_version_stored_are_redacted(holding: Holding) -> None:
    """The memory, its history and its edges lose the secrets without a new event; nothing else changes."""
    before = stored_before(holding)
    assert redact_stored_memories(holding.store, Redactor(KEY)) == 1

    after = holding.core.get(before.id)
    assert kinds_of(after.memory)[0] == "github-pat"
    assert (after.updated, after.stats, after.state) == (before.updated, before.stats, before.state)
    [event] = holding.core.history(before.id)
    assert parse_snapshot(event.before)[0] == after.memory
    holding.store.close()
    assert nowhere(holding)


def test_checked_memories_are_not_checked_again(holding: Holding) -> None:
    """Neither redacted memories nor memories stored under the current rules are checked again."""
    stored_before(holding)
    redact_stored_memories(holding.store, Redactor(KEY))
    holding.hold("The deploy key is in the vault.")

    assert holding.store.memories.to_redact(VERSION, 10) == []
    assert redact_stored_memories(holding.store, Redactor(KEY)) == 0


def test_memories_that_become_equal_by_redaction_are_merged(holding: Holding) -> None:
    """If redaction makes two memories equal, the second is forgotten as a duplicate."""
    now = holding.hold(SAID)
    with holding.store.transaction():
        key = holding.store.memories.insert(Memory(SAID, "preference"), holding.at)
    redact_stored_memories(holding.store, Redactor(KEY))

    assert holding.store.memories.load([key])[key].state is MemoryState.ARCHIVED
    assert holding.core.get(now.id).state is MemoryState.ACTIVE


def test_redaction_never_forgets_a_golden_rule_for_another_memory(holding: Holding) -> None:
    """If redaction makes two memories equal and one of them is protected, the other is forgotten."""
    now = holding.hold(SAID)
    with holding.store.transaction():
        key = holding.store.memories.insert(Memory(SAID, "preference"), holding.at)
    rule = holding.succeed(f"mem_{key}", 6)
    redact_stored_memories(holding.store, Redactor(KEY))

    assert holding.core.get(rule.id).state is MemoryState.ACTIVE
    assert holding.core.get(now.id).state is MemoryState.ARCHIVED


def test_an_ingest_run_redacts_stored_memories(tmp_path: Path) -> None:
    """`palaver archive` and the background archiver redact memories that were stored under older rules."""
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store, store.transaction():
        key = store.memories.insert(Memory(SAID), 1)
    with Pipeline(home) as pipeline:
        pipeline.run(())
    with Store.open(home.database) as store:
        assert TOKEN not in store.memories.load([key])[key].memory.content
    assert not any(TOKEN.encode() in path.read_bytes() for path in home.root.rglob("*") if path.is_file())


def test_invalid_bytes_become_replacement_characters(holding: Holding) -> None:
    """Lone surrogates, which stand for invalid bytes of a command line, become U+FFFD in every field."""
    odd = "ab\udcffcd"
    held = holding.hold(odd, title=odd, project=odd, tags=(odd,), metadata={"where": odd, odd: [odd]})
    holding.core.feedback.outcome(held.id, success=False, error=odd)
    edited = holding.core.revise(held.id, MemoryRevision(content=f"{odd} anew", tags=(odd,)))

    said = "ab\ufffdcd"
    assert (held.memory.content, held.memory.title, held.memory.project, held.memory.tags) == (
        said,
        said,
        said,
        (said,),
    )
    assert held.memory.metadata == {"where": said, said: [said]}
    assert (edited.memory.content, holding.recall("anew")) == (f"{said} anew", [f"{said} anew"])
    assert [event.context for event in holding.core.history(held.id, [EventKind.FAILED])] == [said]
