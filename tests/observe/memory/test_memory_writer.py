"""Storing memories: duplicates, comparisons, supersession and errors."""

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.core.conversation import Origin
from palaver.core.errors import InvalidInput, InvalidMemoryType, InvalidNamespace
from palaver.core.memory import Memory, MemoryState, Relation
from palaver.core.text import visible

from ...search.fake_embedder import FakeEmbedder
from .memory_harness import DAY, Harness


def test_the_same_content_is_stored_once_per_namespace_and_family(harness: Harness) -> None:
    """Storing the same content again in a namespace and family of types returns the stored memory."""
    first = harness.remember("Use tabs")
    again = harness.remember("Use tabs", "user-preference", tags=("style",), importance=0.9)

    assert (again.stored.id, again.duplicate) == (first.stored.id, True)
    assert (again.stored.memory.tags, again.stored.memory.importance) == (("style",), 0.9)
    assert not harness.remember("Use tabs", namespace="project:x").duplicate
    assert not harness.remember("Use tabs", "decision").duplicate
    assert harness.core.count() == 3


def test_two_processes_that_store_the_same_content_merge_it(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two processes store the same content at the same time, the second adds its tags to the first memory."""
    embed, other = harness.embedder.embed, harness.another()

    def embed_meanwhile(texts: list[str]) -> object:
        monkeypatch.setattr(harness.embedder, "embed", embed)
        other.remember(Memory("Use tabs", "preference", tags=("first",)))
        return embed(texts)

    monkeypatch.setattr(harness.embedder, "embed", embed_meanwhile)
    second = harness.remember("Use tabs", tags=("second",), importance=0.9)

    assert second.duplicate
    assert (second.stored.memory.tags, second.stored.memory.importance) == (("first", "second"), 0.9)


@pytest.mark.parametrize("again", ["User prefers dark mode in the editor.", "The user prefers dark mode in the editor"])
def test_a_text_that_differs_in_punctuation_or_an_article_is_no_duplicate(real: Harness, again: str) -> None:
    """Texts that differ only in punctuation or an article are both stored and linked as related."""
    real.remember("User prefers dark mode in the editor")
    done = real.remember(again)

    assert not done.duplicate
    assert [edge.relation for edge in done.edges] == [Relation.RELATES_TO]
    assert real.core.count() == 2


def test_entries_that_differ_in_a_number_are_all_stored(harness: Harness) -> None:
    """Memories that differ only in a number are neither duplicates nor replacements of each other."""
    done = [harness.remember(f"Memory content {number}", "fact") for number in range(20)]

    assert not any(each.duplicate or each.superseded for each in done)
    assert harness.core.count() == 20


@pytest.mark.parametrize("way", ["undo", "forget the edge"])
def test_a_superseded_memory_is_listed_and_recalled_at_half_its_importance(real: Harness, way: str) -> None:
    """A superseded memory ranks below its replacement. Undo, or removing the edge, restores it."""
    old = real.add("CI runs on Jenkins", "fact", importance=0.8)
    done = real.remember("CI now runs on GitHub Actions instead of Jenkins", "fact")

    assert [stored.id for stored in done.superseded] == [old.id]
    superseded = real.core.get(old.id)
    assert (superseded.state, superseded.memory.importance, superseded.stats.confidence) == (
        MemoryState.SUPERSEDED,
        0.4,
        0.1,
    )
    assert real.recall("Jenkins") == ["CI now runs on GitHub Actions instead of Jenkins", "CI runs on Jenkins"]
    assert old.id in {stored.id for stored in real.core.page()}
    assert real.core.count() == 2
    if way == "undo":
        real.core.undo([old.id])[0]
    else:
        real.core.graph.forget(real.core.graph.find(done.edges[0].id))
    back = real.core.get(old.id)
    assert (back.state, back.memory.importance, back.stats.confidence) == (MemoryState.ACTIVE, 0.8, 0.3)
    assert real.core.graph.inspect(old.id).edges == ()


def test_contradicting_memories_are_linked_and_both_stay_active(real: Harness) -> None:
    """Without a word that announces a change, no memory is superseded. The result names the judge."""
    old = real.add("User prefers dark mode in the editor")
    done = real.remember("User prefers light mode in the editor")

    assert [each.stored.id for each in done.conflicts] == [old.id]
    assert [edge.relation for edge in done.edges] == [Relation.CONTRADICTS]
    assert "judged by rules" in done.edges[0].reason
    assert real.core.count() == 2


def test_a_golden_rule_is_not_replaced(real: Harness) -> None:
    """A statement that would supersede a golden rule leaves it unchanged and only proposes to supersede it."""
    old = real.succeed(real.add("Deploys run on Jenkins", "decision").id, 6)
    done = real.remember("Deploys now run on GitHub Actions instead of Jenkins", "decision")

    assert [stored.id for stored in done.proposed] == [old.id]
    assert done.superseded == ()
    assert real.core.get(old.id) == old
    assert [(edge.relation, edge.proposed) for edge in done.edges] == [(Relation.SUPERSEDES, True)]


def test_a_less_trusted_memory_supersedes_nothing(real: Harness) -> None:
    """A web page that contradicts the user's memory is stored without changing that memory."""
    old = real.add("CI runs on Jenkins", "fact", origin=Origin.HUMAN)
    done = real.remember("CI now runs on GitHub Actions instead of Jenkins", "fact", origin=Origin.EXTERNAL)

    assert done.superseded == ()
    assert real.core.get(old.id).state is MemoryState.ACTIVE


def test_an_expired_memory_can_be_stored_again(harness: Harness) -> None:
    """An expired memory is neither found nor counted, and its successor is not a duplicate."""
    old = harness.add("Working on the parser", "session", valid_until=harness.at + DAY)
    harness.at += 2 * DAY

    assert (harness.recall("parser"), harness.core.count()) == ([], 0)
    again = harness.remember("Working on the parser", "session")
    assert (again.duplicate, again.stored.id != old.id) == (False, True)
    assert harness.recall("parser") == ["Working on the parser"]


@pytest.mark.parametrize(
    ("memory", "error"),
    [
        (Memory("  "), InvalidInput),
        (Memory("x" * 51_201), InvalidInput),
        (Memory("x", importance=1.1), InvalidInput),
        (Memory("x", namespace="elsewhere"), InvalidNamespace),
        (Memory("x", namespace="project:"), InvalidNamespace),
        (Memory("x", namespace="project:a\nb"), InvalidNamespace),
        (Memory("x", namespace="project:a b"), InvalidNamespace),
        (Memory("x", namespace="project:a.b"), InvalidNamespace),
        (Memory("x", namespace="project:a/b"), InvalidNamespace),
        (Memory("x", namespace="session:a b"), InvalidNamespace),
        (Memory("x", type="golden_rule"), InvalidMemoryType),
        (Memory("x", type=""), InvalidMemoryType),
    ],
)
def test_an_invalid_memory_is_an_error_with_a_reason(
    harness: Harness, memory: Memory, error: type[InvalidInput]
) -> None:
    """An invalid memory is not stored, and the error contains a reason."""
    with pytest.raises(error) as caught:
        harness.core.remember(memory)
    assert caught.value.hint
    assert harness.core.count() == 0


def test_memories_are_stored_and_found_without_a_model(harness: Harness) -> None:
    """Without a model, text search finds memories, and they are embedded later."""
    harness.embedder = FakeEmbedder(missing=True)
    core = harness.another()
    stored = core.remember(Memory("User prefers dark mode")).stored

    assert [found.stored.id for found in core.recall("dark mode")] == [stored.id]
    assert harness.store.vectors.count_unembedded("fake/1") == 1


def test_changes_of_other_processes_are_visible_at_once(harness: Harness) -> None:
    """A process immediately finds what another process stores, changes or forgets."""
    other = harness.another()
    assert other.recall("parser") == []
    program = (
        "import sys; from pathlib import Path; from palaver.archiver.store import Store;"
        "from palaver.core.memory import Memory; store = Store.open(Path(sys.argv[1]));\n"
        "with store.transaction(): print(store.memories.insert(Memory('The parser is slow'), 1))"
    )
    command = [sys.executable, "-c", program, str(harness.folder / "palaver.db")]
    subprocess.run(command, check=True, capture_output=True)

    [found] = other.recall("parser")
    harness.core.forget([found.stored.id])
    assert other.recall("parser") == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=st.text(min_size=1, max_size=200).filter(lambda text: bool(visible(text).strip())))
def test_any_text_is_read_back_unchanged(harness: Harness, content: str) -> None:
    """Quotes and markup are stored unchanged. Characters that are not seen are removed."""
    stored = harness.add(content, "fact", namespace=f"project:{harness.core.count()}")

    assert harness.core.get(stored.id).memory.content == visible(content)
