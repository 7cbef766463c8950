"""Are the right engines asked, and what do they say together?"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from palaver.core.disclosure import Filters, Mode
from palaver.core.errors import ModelUnavailable
from palaver.search import engine
from palaver.search.fusion import Event

from .fake_embedder import FakeEmbedder
from .history import NO_FILTERS, History, Said, keys
from .test_analysis import HOSTILE


@pytest.fixture
def told(history: History) -> History:
    """Three conversations, embedded and published."""
    history.say("tea", Said("brass kettle"), Said("water for tea", "The kettle holds two litres of water for tea."))
    history.say("soup", Said("copper pan"), Said("water for soup"))
    history.say("both", Said("brass kettle beside the copper pan"))
    history.embed()
    history.publish()
    return history


def test_words_alone(told: History) -> None:
    """In mode `text` only exchanges with the words are found, and nothing is compared."""
    events = told.engine().search("kettle", Mode.TEXT, NO_FILTERS)

    assert set(keys(events)) == {1, 2, 5}
    assert all(event.similarity is None for event in events)


def test_what_meaning_found_has_its_words(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that only meaning brought is compared by its words, too, and so the other way round."""
    monkeypatch.setattr(engine, "_DEPTH", 1)
    history.say("one", Said("water"), Said("kettle kettle kettle steam"), Said("kettle steam steam"))
    history.embed()
    history.publish()

    found = [event for text in ("kettle", "steam water", "kettle water steam") for event in search(history, text)]

    assert len(found) > 3
    assert all(event.words > 0 and event.similarity is not None for event in found)


def search(history: History, text: str) -> list[Event]:
    return history.engine().search(text, Mode.BOTH, NO_FILTERS)


def test_meaning_alone(told: History) -> None:
    """In mode `vector` everything is compared, and words count nothing."""
    events = told.engine().search("brass kettle", Mode.VECTOR, NO_FILTERS)

    assert len(events) == 5
    assert keys(events)[0] == 1
    assert all(event.words == 0 for event in events)


def test_both_together(told: History) -> None:
    """In mode `both` every event found by words is compared as well."""
    events = told.engine().search("kettle", Mode.BOTH, NO_FILTERS)

    assert all(event.similarity is not None for event in events)
    assert events[0].words > 0
    assert [event.score for event in events] == sorted((event.score for event in events), reverse=True)


@pytest.mark.parametrize(
    ("mode", "engines"), [(Mode.TEXT, ("text",)), (Mode.VECTOR, ("vector",)), (Mode.BOTH, ("text", "vector"))]
)
def test_who_answered(told: History, mode: Mode, engines: tuple[str, ...]) -> None:
    """`searched` names the engines that answered."""
    reader = told.engine()
    reader.search("kettle", mode, NO_FILTERS)

    assert reader.searched(mode) == engines


def test_without_a_model_words_answer(told: History) -> None:
    """Where the model is missing words answer alone, `searched` says so, and the reason is kept."""
    told.embedder = FakeEmbedder(missing=True)
    reader = told.engine()

    assert set(keys(reader.search("kettle", Mode.BOTH, NO_FILTERS))) == {1, 2, 5}
    assert reader.searched(Mode.BOTH) == ("text",)
    assert isinstance(reader.unavailable, ModelUnavailable)
    assert reader.search("kettle", Mode.VECTOR, NO_FILTERS) == []
    assert reader.searched(Mode.VECTOR) == ()


def test_vectors_of_another_pipeline_are_not_compared(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that the model of that name no longer makes are compared with nothing; words answer."""

    def load(_name: str) -> FakeEmbedder:
        return FakeEmbedder("fake/2")

    monkeypatch.setattr(engine, "load", load)
    told.embedder = FakeEmbedder("other/1")
    reader = told.engine()

    assert set(keys(reader.search("kettle", Mode.BOTH, NO_FILTERS))) == {1, 2, 5}
    assert reader.searched(Mode.BOTH) == ("text",)


def test_the_model_of_the_vectors_embeds_the_query(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """While vectors are those of another model than new ones are made with, that model embeds the queries."""
    asked: list[str] = []

    def load(name: str) -> FakeEmbedder:
        asked.append(name)
        return FakeEmbedder()

    monkeypatch.setattr(engine, "load", load)
    told.embedder = FakeEmbedder("other/1")
    reader = told.engine()
    for _ in range(2):
        assert reader.search("brass kettle", Mode.VECTOR, NO_FILTERS)[0].similarity == pytest.approx(1, abs=1e-3)

    assert asked == ["fake"]


def test_all_concepts_in_one_conversation(told: History) -> None:
    """With several concepts a conversation is found where each of them is present, in whichever exchange."""
    found = told.engine().find_all(["kettle", "copper"], Mode.TEXT, NO_FILTERS).events
    apart = told.engine().find_all(["brass", "water"], Mode.TEXT, NO_FILTERS).events

    assert keys(found) == [5]
    assert len(apart) == 1
    assert apart[0].key in {1, 2}
    assert told.engine().find_all(["kettle", "unicorn"], Mode.TEXT, NO_FILTERS).events == []


def test_concepts_under_filters(told: History) -> None:
    """Filters hold for every concept."""
    assert keys(told.engine().find_all(["kettle", "copper"], Mode.TEXT, Filters(projects=("tea",))).events) == []
    assert keys(told.engine().find_all(["kettle", "copper"], Mode.TEXT, Filters(projects=("both",))).events) == [5]


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_hostile_queries_are_answered(told: History, query: str) -> None:
    """Whatever is asked, there is an answer with scores from 0 to 1."""
    for mode in Mode:
        assert all(0 <= event.score <= 1 for event in told.engine().search(query, mode, NO_FILTERS))


def test_the_same_question_has_the_same_answer(told: History) -> None:
    """Two readers give the same events in the same order with the same scores."""
    one, other = (told.engine().search("water kettle pan", Mode.BOTH, NO_FILTERS) for _ in range(2))

    assert [(event.key, event.score) for event in one] == [(event.key, event.score) for event in other]


def test_an_empty_archive_has_no_answers(history: History) -> None:
    """Nothing is found in nothing."""
    assert history.engine().search("kettle", Mode.BOTH, NO_FILTERS) == []
    assert history.engine().find_all(["kettle", "pan"], Mode.BOTH, NO_FILTERS).events == []


def test_the_next_page_of_a_query_is_not_embedded_again(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is asked again has the vector that it had, whatever it is asked with."""
    asked: list[str] = []
    embed = FakeEmbedder.embed

    def told_of(self: FakeEmbedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        asked.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed", told_of)
    engine = told.engine()

    for filters in (NO_FILTERS, Filters(projects=("tea",))):
        engine.search("kettle", Mode.BOTH, filters)
    engine.search("spoon", Mode.BOTH, NO_FILTERS)

    assert asked == ["kettle", "spoon"]
