"""Recall returns relevant memories, and nothing below the relevance threshold.

The memories are the statements of the labelled pairs that also measure the judges. The questions were written for these
tests, and no rule was adjusted to them.
"""

from pathlib import Path
from typing import Any

import orjson
import pytest

from palaver.archiver.redaction import Redactor
from palaver.core.memory import Memory, MemoryFilter
from palaver.observe.memory import MemoryCore
from palaver.search.index.vector_index import stored
from palaver.search.model.embedder import load

from ...search.history import History, Said
from .memory_harness import KEY, Harness
from .test_rule_judge import pairs

QUESTIONS = orjson.loads(Path(__file__).with_name("recalls.json").read_bytes())
FOUND: dict[str, list[str]] = QUESTIONS["answered"]
NOT_FOUND: list[str] = QUESTIONS["unanswered"]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """Return a core with every statement of the pairs, embedded by the packaged model."""
    harness = Harness(tmp_path_factory.mktemp("stated"), load())
    texts = list(dict.fromkeys(text for pair in pairs() for text in (pair["older"], pair["newer"])))
    meant = stored(harness.embedder.read(texts))
    with harness.store.transaction():
        keys = [harness.store.memories.insert(Memory(text, "fact"), harness.at) for text in texts]
        vectors = {key: {0: embedded} for key, embedded in zip(keys, meant, strict=True)}
        harness.store.vectors.replace(harness.embedder.name, vectors)
    return harness


def found(harness: Harness, query: str) -> list[str]:
    """Return the five best matches."""
    return [each.stored.memory.content for each in harness.core.recall(query, count_access=False)]


def near(harness: Harness, query: str) -> list[str]:
    """Return the most similar memories."""
    return [each.stored.memory.content for each in harness.core.nearest(query)]


def test_queries_on_other_topics_recall_nothing(stated: Harness) -> None:
    """At most one in ten questions about other topics gets a result."""
    answered = [query for query in NOT_FOUND if found(stated, query)]

    assert len(answered) <= len(NOT_FOUND) / 10


def test_paraphrases_recall_their_memory(stated: Harness) -> None:
    """At least nine in ten short paraphrases recall their memory."""
    recalled = [query for query, meant in FOUND.items() if set(meant) & set(found(stated, query))]

    assert len(recalled) >= 0.9 * len(FOUND)


def test_archived_conversations_do_not_hide_a_memory(tmp_path: Path) -> None:
    """The relevance threshold of a memory does not depend on the number of archived conversations."""
    history = History(tmp_path, load())
    history.say("kiln", *(Said(f"Fire the kiln to {number} degrees") for number in range(1_000)))
    core = MemoryCore(history.store, history.generations, history.embedder, Redactor(KEY))
    core.remember(Memory("Prefer plain sqlite3 over an ORM", "preference"))

    assert core.recall("how do we talk to the database")
    assert core.recall("best pizza in town") == []


def test_a_memory_below_the_threshold_is_among_the_nearest(stated: Harness) -> None:
    """A memory below the relevance threshold is not recalled, but listed among the nearest."""
    weak = [query for query in FOUND if not found(stated, query)]

    assert [query for query in weak if not set(FOUND[query]) & set(near(stated, query))] == []


def test_nearest_memories_are_few_and_count_no_access(stated: Harness) -> None:
    """At most three nearest memories are listed, and listing them does not count as an access."""
    assert 0 < len(near(stated, "cure for hiccups")) <= 3
    assert {each.accesses for each in stated.core.page(limit=1_000)} == {0}


def test_recall_counts_as_access_unless_the_store_is_read_only(harness: Harness) -> None:
    """Recalling a memory counts as one access, except in a read-only store."""
    stored = harness.add("Kettles whistle in the morning")

    harness.core.recall("kettles", count_access=False)
    assert harness.core.get(stored.id).accesses == 0
    harness.core.recall("kettles")
    assert harness.core.get(stored.id).accesses == 1


@pytest.mark.parametrize(
    ("unwanted", "wanted"),
    [
        ({"valid_until": 1}, None),
        ({"importance": 0.1}, MemoryFilter(min_importance=0.5)),
        ({"pinned": True}, MemoryFilter(pinned=False)),
    ],
)
def test_filtered_memories_do_not_make_others_relevant(
    stated: Harness, unwanted: dict[str, Any], wanted: MemoryFilter | None
) -> None:
    """An expired or filtered memory that equals the query adds no other memories to the results."""
    query = "dentist appointment"
    assert near(stated, query)
    with stated.store.transaction():
        key = stated.store.memories.insert(Memory(query, "fact", **unwanted), stated.at)
    try:
        assert stated.core.recall(query, wanted, count_access=False) == []
        assert stated.core.nearest(query, wanted)
    finally:
        with stated.store.transaction():
            stated.store.memories.delete([key])
