"""Is everything learned that was taken up, whoever asks for it, and is it told what could not be?"""

import pytest
from msgspec import json

from palaver.core.clock import now
from palaver.core.memory import Memory
from palaver.observe.background import index_worker
from palaver.observe.background.index_worker import WorkerResult, update_index
from palaver.observe.learn import Learned, learn
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import load

from ..archiver.history import History
from ..search.fake_embedder import FakeEmbedder


def stages(history: History) -> dict[str, bool]:
    """Which parts of the work ran, and whether they failed."""
    return {stage.name: stage.fails for stage in history.store.stages.all()}


def test_all_that_was_taken_up_is_learned(history: History) -> None:
    """One round observes and embeds everything, and the next finds nothing to do."""
    indexer = Indexer(history.store, Generations(history.home.index), load())
    first = learn(history.home, history.store, indexer)

    assert (first.observed > 0, first.unobserved, first.embedded > 0, first.model) == (True, 0, True, None)
    assert stages(history) == {"observe": False, "embed": False}
    assert learn(history.home, history.store, indexer) == Learned(0, 0, 0, None)


def test_a_missing_model_stops_nothing_else(history: History) -> None:
    """What was said is observed all the same; why meaning cannot be searched is told and noted."""
    indexer = Indexer(history.store, Generations(history.home.index), FakeEmbedder(missing=True))
    told = learn(history.home, history.store, indexer)

    assert (told.observed > 0, told.embedded, str(told.model)) == (True, 0, "the model is missing")
    assert stages(history) == {"observe": False, "embed": True}


def test_enough_is_enough(history: History) -> None:
    """A round that is to break off says how much it left."""
    indexer = Indexer(history.store, Generations(history.home.index), FakeEmbedder())
    told = learn(history.home, history.store, indexer, should_stop=lambda: True)

    assert (told.observed, told.unobserved > 0, told.embedded) == (0, True, 0)


def test_a_round_is_told_from_one_process_to_the_other(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process did in the background is the same value in the one that began it, including the verification."""
    monkeypatch.setattr(index_worker, "load", FakeEmbedder().load)
    caught = update_index(history.home, None, settle=True)

    assert caught.verified.checked == 1
    assert json.decode(json.encode(caught), type=WorkerResult) == caught


def test_a_round_decays_what_nobody_used(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the stored clock: 200 days without use are six steps, down to the floor, in one round or several."""
    monkeypatch.setattr(index_worker, "load", FakeEmbedder().load)
    with history.store.transaction():
        old = history.store.memories.insert(Memory("Use tabs", "preference"), now() - 200 * 86_400_000)
        new = history.store.memories.insert(Memory("Use four spaces", "preference"), now() - 86_400_000)
    for _ in range(2):
        update_index(history.home, None, settle=True)

    held = history.store.memories.load([old, new])
    assert (held[old].stats.confidence, held[new].stats.confidence) == (0.15, 0.3)
