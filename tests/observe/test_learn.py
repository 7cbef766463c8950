"""Tests of extracting observations and embedding in one run."""

from pathlib import Path

import pytest
from msgspec import json

from palaver.archiver.store import Entity
from palaver.core.conversation import now
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.background import index_worker
from palaver.observe.background.index_worker import WorkerResult, update_index
from palaver.observe.pipeline import Learned, learn
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import load

from ..archiver.history import History
from ..search.fake_embedder import FakeEmbedder
from ..search.history import History as SaidHistory
from ..search.history import Said


def stages(history: History) -> dict[str, bool]:
    """Return whether each recorded stage failed."""
    return {stage.name: stage.fails for stage in history.store.stages.all()}


def test_everything_is_extracted_and_embedded(history: History) -> None:
    """One run extracts and embeds everything, and the next run has no work."""
    indexer = Indexer(history.store, Generations(history.home.index), load())
    first = learn(history.home, history.store, indexer)

    assert (first.observed > 0, first.unobserved, first.embedded > 0, first.model) == (True, 0, True, None)
    assert stages(history) == {"observe": False, "embed": False}
    assert learn(history.home, history.store, indexer) == Learned(0, 0, 0, None)


def test_without_a_model_observations_are_extracted(history: History) -> None:
    """Observations are extracted. The result and the recorded stage report the missing model."""
    indexer = Indexer(history.store, Generations(history.home.index), FakeEmbedder(missing=True))
    result = learn(history.home, history.store, indexer)

    assert (result.observed > 0, result.embedded, str(result.model)) == (True, 0, "the model is missing")
    assert stages(history) == {"observe": False, "embed": True}


def test_an_interrupted_run_reports_remaining_exchanges(history: History) -> None:
    """A run that is asked to stop reports how many exchanges remain."""
    indexer = Indexer(history.store, Generations(history.home.index), FakeEmbedder())
    result = learn(history.home, history.store, indexer, should_stop=lambda: True)

    assert (result.observed, result.unobserved > 0, result.embedded) == (0, True, 0)


def test_a_worker_result_survives_serialization(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of a background process equals its decoded JSON, including the result of the verification."""
    monkeypatch.setattr(index_worker, "load", FakeEmbedder().load)
    caught = update_index(history.home, None, settle=True)

    assert caught.verified.checked == 1
    assert json.decode(json.encode(caught), type=WorkerResult) == caught


def test_unused_memories_lose_confidence(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 200 days without use, the confidence is reduced to its minimum, in one run or several."""
    monkeypatch.setattr(index_worker, "load", FakeEmbedder().load)
    with history.store.transaction():
        old = history.store.memories.insert(Memory("Use tabs", "preference"), now() - 200 * 86_400_000)
        new = history.store.memories.insert(Memory("Use four spaces", "preference"), now() - 86_400_000)
    for _ in range(2):
        update_index(history.home, None, settle=True)

    stored = history.store.memories.load([old, new])
    assert (stored[old].stats.confidence, stored[new].stats.confidence) == (0.15, 0.3)


def test_texts_are_published_while_more_are_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches index few unpublished texts in memory, because observed exchanges are published before all are."""
    monkeypatch.setattr("palaver.observe.pipeline._BATCH", 2)
    monkeypatch.setattr("palaver.search.index.indexer._TAIL", 3)
    history = SaidHistory(tmp_path)
    for number in range(6):
        history.say(f"s{number}", Said(f"Fix reader {number}", "It stopped at a comma.", writes=(f"/a/{number}.py",)))
    generations = Generations(history.folder / "index")
    indexer = Indexer(history.store, generations, FakeEmbedder(missing=True))
    indexer.publish()
    waiting = list[int]()

    def note(*_progress: object) -> None:
        current = generations.current()
        assert current is not None
        waiting.append(len(history.store.changes.since(current.manifest.watermark, [Entity.ITEM])))

    learn(Home(history.folder), history.store, indexer, note)
    assert len(waiting) > 2
    assert max(waiting) <= 4
