"""An ablation removes one part of the ranking and nothing else."""

from pathlib import Path

import numpy as np
import pytest

from bench.retrieval import ablation
from bench.retrieval.ablation import Findings, Found, findings, rankings
from bench.retrieval.corpus import Question
from palaver.core.home import Home
from palaver.core.query import Filters, Mode
from palaver.search.index.matches import Floats, Integers, TextMatches, VectorMatches
from palaver.search.rank import engine
from palaver.search.rank.fusion import Weights, fuse

from ..search.history import History, Said


def closeness(vector_matches: VectorMatches) -> Floats:
    """Return late-interaction scores in which the first event ranks first."""
    return 1 / vector_matches.event


def adjacent_scores(items: Integers) -> Floats:
    """Return adjacent-term scores in which the first item ranks first."""
    return 1 / items


EVERY = Found(
    TextMatches(
        np.array([[1, 1, 1, 0, 1, 2, 0], [12, 2, 1, 1, 3, 4, 0], [3, 3, 0, 0, 1, 2, 1]]).T, np.array([0.5, 0.4, 0.6])
    ),
    VectorMatches(np.array([[1, 1, 0], [12, 2, 0], [3, 3, 0]]).T, np.array([0.3, 0.2, 0.1])),
    closeness,
    adjacent_scores,
)
NOTHING = Found(TextMatches.none(), VectorMatches.none(), closeness, adjacent_scores)


def scores(lacks: str) -> dict[int, float]:
    found, weights = rankings()[lacks](Findings(EVERY, NOTHING, NOTHING))
    return {event.key: event.score for event in fuse(*found, weights)}


def test_each_weight_is_removed_once() -> None:
    """Each part of the ranking has one ablation. If nothing is removed, the ranking equals the product's."""
    assert {f"no {name.replace('_', ' ')}" for name in Weights._fields} <= rankings().keys()
    assert scores("nothing") == {event.key: event.score for event in fuse(*EVERY)}
    assert scores("no words")[3] < scores("nothing")[3]
    assert scores("no late interaction")[1] < scores("nothing")[1]
    assert scores("no adjacent terms")[1] < scores("nothing")[1]


def test_proportional_text_scores() -> None:
    """With proportional text scores, an item with twice the fraction gets twice the score, in code and in prose."""
    found, _ = rankings()["linear text scores"](Findings(EVERY, NOTHING, NOTHING))
    alone = fuse(found.matches, VectorMatches.none(), weights=Weights(1, 0, 0, 0, 0))

    assert {event.key: round(event.score, 9) for event in alone} == {1: 0.5, 2: 0.4, 3: 0.6}


def test_code_like_prose_counts_more() -> None:
    """Partial text matches get higher scores when code is ranked like prose."""
    assert scores("code ranked like prose")[3] > scores("nothing")[3]


def test_observations_can_be_removed() -> None:
    """Without observations, an event that only an observation matched is not found."""
    assert scores("no observations").keys() == {1, 3}


def test_partial_findings_are_ranked() -> None:
    """Events can be ranked without context entries and before their text scores are completed."""
    assert scores("no context entries") == scores("text scores not completed") == {}


@pytest.mark.parametrize("text", ["kettle", "kettle pan steam", '"brass kettle"'])
def test_full_ranking_equals_the_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Events and scores of the full ranking equal those of the engine, also at its result limit and with phrases."""
    monkeypatch.setattr(engine, "DEPTH", 2)
    monkeypatch.setattr(ablation, "ENGINE_DEPTH", 2)
    history = History(tmp_path)
    history.say("one", *(Said(f"brass kettle {'pan ' * n} steam") for n in range(5)), Said("pan"), Said("a kettle"))
    history.embed()
    history.publish()

    [found] = findings(history.store, Home(tmp_path), [Question("q", text, (), {})], history.embedder)

    asked = history.engine().find(text, Mode.BOTH, Filters()).events
    assert [(event.key, event.score) for event in fuse(*found.every)] == [(one.key, one.score) for one in asked]
