"""Tests of the search engine, which combines text search and vector search."""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.errors import ModelUnavailable
from palaver.core.query import Filters, Mode, Query
from palaver.search.index import term_statistics
from palaver.search.index.matches import TextMatches
from palaver.search.model.embedding import TextEmbeddings
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank import engine
from palaver.search.rank.engine import Engine, completed
from palaver.search.rank.fusion import Event, Weights

from ..fake_embedder import FakeEmbedder
from ..history import NO_FILTERS, History, Said, keys
from ..query.test_tokenizer import HOSTILE


@pytest.fixture
def archive(history: History) -> History:
    """Archive of three conversations, embedded and published."""
    history.say("tea", Said("brass kettle"), Said("water for tea", "The kettle holds two litres of water for tea."))
    history.say("soup", Said("copper pan"), Said("water for soup"))
    history.say("both", Said("brass kettle beside the copper pan"))
    history.embed()
    history.publish()
    return history


def test_text_mode_compares_no_vectors(archive: History) -> None:
    """In mode `text`, only exchanges with the words are found, and similarities are None."""
    events = archive.engine().find("kettle", Mode.TEXT, NO_FILTERS).events

    assert set(keys(events)) == {1, 2, 5}
    assert all(event.similarity is None for event in events)


def test_late_interaction_of_events(archive: History) -> None:
    """In mode `both`, each event has the late interaction of its best text. In mode `text` it is 0."""
    close = {
        event.key: event.late_interaction
        for event in archive.engine().find("brass kettle", Mode.BOTH, NO_FILTERS).events
    }

    assert close[1] == pytest.approx(close[5], abs=1e-9)
    assert close[1] > 0.7
    assert close[1] > close[2] > close[4] >= 0
    assert all(
        event.late_interaction == 0 for event in archive.engine().find("brass kettle", Mode.TEXT, NO_FILTERS).events
    )


def test_without_enough_evidence_nothing_is_relevant(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large archive, the re-ranked score of a relevant event must reach the evidence threshold.

    An event that is not embedded yet, or that contains all words, is relevant without it.
    """
    history.say("tea", Said("the brass kettle whistles in the small kitchen on every cold morning"))
    history.embed()
    history.publish()
    monkeypatch.setattr(term_statistics, "_LARGE", 1)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)
    words = "every cold morning the brass kettle whistles"

    def relevant(evidence: float) -> tuple[bool, bool]:
        monkeypatch.setattr(engine, "_EVIDENCE", evidence)
        found = history.engine().find(words, Mode.BOTH, NO_FILTERS)
        return found.plausible, found.relevant

    assert relevant(0.0) == (True, True)
    assert relevant(1.0) == (True, False)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 0.0)
    assert relevant(1.0) == (True, True)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)
    history.say("new", Said("every cold morning the brass kettle whistles"))
    assert relevant(1.0) == (True, True)


def test_a_model_without_tokens_scores_by_the_other_parts(history: History) -> None:
    """Without token embeddings, late interaction is 0, and adjacent terms still score."""

    class Silent(FakeEmbedder):
        def read(self, texts: Sequence[str]) -> TextEmbeddings:
            return TextEmbeddings(
                self.embed(texts), [np.empty((0, 0), dtype=np.float32)] * len(texts), [()] * len(texts)
            )

    history.embedder = Silent()
    history.say("tea", Said("brass kettle"), Said("copper pan"))
    history.embed()
    history.publish()

    events = history.engine().find("brass kettle", Mode.BOTH, NO_FILTERS).events

    weights = Weights(late_interaction=0.0)
    alone = sum(weights._replace(adjacent_terms=0.0))

    assert [(event.late_interaction, event.adjacent_terms) for event in events] == [(0.0, 1.0), (0.0, 1.0)]
    assert [event.score for event in events] == pytest.approx(
        [(event.plain * alone + weights.adjacent_terms) / sum(weights) for event in events]
    )


def test_a_new_event_ranks_first_if_its_words_match_best(history: History) -> None:
    """An exchange that is neither published nor embedded ranks first, with an estimated semantic score."""
    history.say("tea", *(Said(f"the kettle number {number} sings", "a whistle in the kitchen") for number in range(9)))
    history.embed()
    history.publish()
    finder = history.engine()
    before = keys(finder.find("which kettle has a samovar tap", Mode.BOTH, NO_FILTERS).events)
    [fresh] = history.say("now", Said("brass samovar with a tap"))
    waiting = finder.find("which kettle has a samovar tap", Mode.BOTH, NO_FILTERS)

    assert keys(waiting.events)[0] == fresh
    assert sorted(keys(waiting.events)[1:]) == sorted(before)
    assert keys(finder.find("samovar", Mode.BOTH, NO_FILTERS).events)[0] == fresh
    assert waiting.events[0].similarity is None
    history.embed()
    assert finder.find("samovar tap", Mode.BOTH, NO_FILTERS).events[0].similarity is not None


def test_before_embedding_the_text_score_decides_relevance(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing is embedded yet, relevance depends on the text score alone."""
    history.say("one", Said("the kettle whistles"))
    history.say("two", Said("copper pan"))
    asked = "a kettle zzyzx"
    [words] = (event.words for event in history.engine().find(asked, Mode.TEXT, NO_FILTERS).events)
    counted = words**1.5
    for threshold, relevant in ((counted - 1e-9, True), (counted + 1e-9, False)):
        monkeypatch.setattr(engine, "_THRESHOLD", threshold)
        monkeypatch.setattr(engine, "_SHORT_QUERY", 0.0)
        found = history.engine().find(asked, Mode.BOTH, NO_FILTERS)
        assert (found.words_threshold, found.relevant) == (inf, relevant)


def test_events_of_each_search_are_completed_by_the_other(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that only vector search found has a text score, and an event that only text search found has a
    similarity.
    """
    monkeypatch.setattr(engine, "DEPTH", 1)
    history.say("one", Said("water"), Said("kettle kettle kettle steam"), Said("kettle steam steam"))
    history.embed()
    history.publish()

    found = [event for text in ("kettle", "steam water", "kettle water steam") for event in search(history, text)]

    assert len(found) > 3
    assert all(event.words > 0 and event.similarity is not None for event in found)


def test_only_the_nearest_events_get_text_scores(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the nearest events from vector search are searched for words."""
    monkeypatch.setattr(engine, "_COMPLETED", 1)
    near, far = (history.say(name, Said(text))[0] for name, text in (("near", "kettle"), ("far", "kettle of a ship")))
    history.embed()
    view, analyzed = history.engine().snapshot, AnalyzedQuery.of("kettle")
    vector_matches = view.of_events(history.embedder.embed(["kettle"])[0, :], np.array([near, far]))

    found = completed(TextMatches.none(), vector_matches, partial(view.text, analyzed, NO_FILTERS))

    assert set(found.event.tolist()) == {near}


def test_an_event_with_many_entries_does_not_displace_others(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that vector search found gets its text score, even if another event has many entries."""
    monkeypatch.setattr(engine, "DEPTH", 3)
    long = "\n\n".join(f"The kettle of stretch {n}. {'kettle and so on ' * 60}" for n in range(20))
    [first] = history.say("one", Said("kettle kettle", long))
    others = [history.say(f"other{number}", Said(f"kettle and {'more words ' * 60}"))[0] for number in range(6)]
    history.embed()
    view, analyzed = history.engine().snapshot, AnalyzedQuery.of("kettle")
    vector_matches = view.of_events(history.embedder.embed(["kettle"])[0, :], np.array([first, *others]))

    found = completed(TextMatches.none(), vector_matches, partial(view.text, analyzed, NO_FILTERS))

    assert np.count_nonzero(found.event == first) > 5
    assert set(found.event.tolist()) == {first, *others}


def test_a_narrow_filter_needs_one_text_search(history: History) -> None:
    """Under a narrow filter, the first text search already has the matches of all items, equal to a second search."""
    exchanges = [Said(f"{'kettle ' * (1 + number % 7)} number {number}", at=1 + number % 2) for number in range(500)]
    keys = history.say("one", *exchanges)
    history.publish()
    reader, filters, analyzed = history.engine(), Filters(before=2), AnalyzedQuery.of("kettle number")
    reader.find("kettle", Mode.BOTH, filters)

    every = reader.entries(analyzed, Mode.BOTH, filters, 200)
    further = reader.words_of(analyzed, filters, every, 200)
    expected = reader.snapshot.text(analyzed, filters, 2_000, keys[100:200])

    assert 200 < len(every) < 500
    assert further(2_000, keys[100:200]).numbers.tolist() == expected.numbers.tolist()
    assert further(2_000, keys[100:200]).fraction.tolist() == expected.fraction.tolist()
    assert len(reader.entries(analyzed, Mode.TEXT, filters, 200)) == 200


@pytest.mark.parametrize(
    ("words", "found"), [("brass_kettle", 5), ('"brass kettle"', 2), ('"kettle brass"', 0), ('"brass kettle" sail', 2)]
)
def test_vector_mode_compares_names_and_requires_phrases(archive: History, words: str, found: int) -> None:
    """In mode `vector`, a name is compared like other words. A quoted phrase must match and has no text score."""
    events = archive.engine().find(words, Mode.VECTOR, NO_FILTERS).events

    assert len(events) == found
    assert all(event.words == 0 for event in events)


def _scores(reader: Engine, text: str, mode: Mode = Mode.BOTH) -> list[tuple[int, float]]:
    return [(event.key, event.score) for event in reader.find(text, mode, NO_FILTERS).events]


def search(history: History, text: str) -> list[Event]:
    return history.engine().find(text, Mode.BOTH, NO_FILTERS).events


def test_vector_mode_scores_no_words(archive: History) -> None:
    """In mode `vector`, every event is compared, and text scores are 0."""
    events = archive.engine().find("brass kettle", Mode.VECTOR, NO_FILTERS).events

    assert len(events) == 5
    assert keys(events)[0] == 1
    assert all(event.words == 0 for event in events)


def test_both_mode_compares_text_matches(archive: History) -> None:
    """In mode `both`, every event from text search has a similarity."""
    events = archive.engine().find("kettle", Mode.BOTH, NO_FILTERS).events

    assert all(event.similarity is not None for event in events)
    assert events[0].words > 0
    assert [event.score for event in events] == sorted((event.score for event in events), reverse=True)


@pytest.mark.parametrize(
    ("mode", "engines"), [(Mode.TEXT, ("text",)), (Mode.VECTOR, ("vector",)), (Mode.BOTH, ("text", "vector"))]
)
def test_engines_are_reported(archive: History, mode: Mode, engines: tuple[str, ...]) -> None:
    """The result lists the search engines that were used."""
    reader = archive.engine()
    reader.find("kettle", mode, NO_FILTERS)

    assert reader.used(mode) == engines


def test_without_a_model_text_search_answers(archive: History) -> None:
    """If the model is missing, only text search returns results, and the result has the reason."""
    archive.embedder = FakeEmbedder(missing=True)
    reader = archive.engine()

    assert set(keys(reader.find("kettle", Mode.BOTH, NO_FILTERS).events)) == {1, 2, 5}
    assert reader.used(Mode.BOTH) == ("text",)
    assert isinstance(reader.unavailable, ModelUnavailable)
    assert reader.find("kettle", Mode.VECTOR, NO_FILTERS).events == []
    assert reader.used(Mode.VECTOR) == ()


def test_a_query_is_embedded_during_the_text_search(archive: History) -> None:
    """The first query is embedded in the calling thread, later queries in another thread, and repeated queries not at
    all. Results are the same.
    """

    class Watched(FakeEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.threads: list[int] = []

        def read(self, texts: Sequence[str]) -> TextEmbeddings:
            self.threads.append(get_ident())
            return super().read(texts)

    archive.embedder = watched = Watched()
    reader, asked = archive.engine(), ("kettle", "copper pan", "water for tea", "kettle")
    found = [_scores(reader, text) for text in asked]
    first, *beside = watched.threads

    assert first == get_ident()
    assert len(beside) == 2
    assert {*beside}.isdisjoint({first})
    assert found == [_scores(archive.engine(), text) for text in asked]


def test_a_model_may_fail_for_single_queries(archive: History) -> None:
    """If a query cannot be embedded, only text search is used. The next query uses both engines."""

    class Failing(FakeEmbedder):
        def read(self, texts: Sequence[str]) -> TextEmbeddings:
            if texts == ["pan"]:
                raise ModelUnavailable("the model is missing")
            return super().read(texts)

    archive.embedder = Failing()
    reader, searched = archive.engine(), list[tuple[str, ...]]()
    for text in ("kettle", "pan", "water"):
        reader.find(text, Mode.BOTH, NO_FILTERS)
        searched.append(reader.used(Mode.BOTH))

    assert searched == [("text", "vector"), ("text",), ("text", "vector")]


def test_vectors_of_another_pipeline_are_not_compared(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of an older pipeline version are not compared, and text search answers."""

    def load(_name: str) -> FakeEmbedder:
        return FakeEmbedder("fake/2")

    monkeypatch.setattr(engine, "load", load)
    archive.embedder = FakeEmbedder("other/1")
    reader = archive.engine()

    assert set(keys(reader.find("kettle", Mode.BOTH, NO_FILTERS).events)) == {1, 2, 5}
    assert reader.used(Mode.BOTH) == ("text",)


def test_the_model_of_the_vectors_embeds_the_query(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a change of models, the model of the published vectors embeds queries."""
    asked: list[str] = []

    def load(name: str) -> FakeEmbedder:
        asked.append(name)
        return FakeEmbedder()

    monkeypatch.setattr(engine, "load", load)
    archive.embedder = FakeEmbedder("other/1")
    reader = archive.engine()
    for _ in range(2):
        assert reader.find("brass kettle", Mode.VECTOR, NO_FILTERS).events[0].similarity == pytest.approx(1, abs=1e-3)

    assert asked == ["fake"]


def test_all_concepts_occur_in_one_conversation(archive: History) -> None:
    """With several concepts, a conversation is found if each concept occurs in any of its exchanges."""
    found = archive.engine().find_all(["kettle", "copper"], Mode.TEXT, NO_FILTERS).events
    apart = archive.engine().find_all(["brass", "water"], Mode.TEXT, NO_FILTERS).events

    assert keys(found) == [5]
    assert len(apart) == 1
    assert apart[0].key in {1, 2}
    assert archive.engine().find_all(["kettle", "unicorn"], Mode.TEXT, NO_FILTERS).events == []


def test_filters_apply_to_every_concept(archive: History) -> None:
    """Every concept is searched under the filters."""
    assert keys(archive.engine().find_all(["kettle", "copper"], Mode.TEXT, Filters(projects=("tea",))).events) == []
    assert keys(archive.engine().find_all(["kettle", "copper"], Mode.TEXT, Filters(projects=("both",))).events) == [5]


def test_an_irrelevant_concept_prevents_re_ranking(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a concept has no relevant match, no conversation is re-ranked, so that its scores remain comparable."""
    monkeypatch.setattr(engine, "DEPTH", 1)
    asked = ["kettle", "water"]
    assert all(event.late_interaction > 0 for event in archive.engine().find_all(asked, Mode.BOTH, NO_FILTERS).events)
    monkeypatch.setattr(engine, "_THRESHOLD", 2.0)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)

    found = archive.engine().find_all(asked, Mode.BOTH, NO_FILTERS).events

    assert found
    assert all(event.late_interaction == 0 for event in found)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("concepts", [["deploy", "zebra"], ["deploy", "restart", "zebra"], ["deploy", "restart"]])
def test_a_frequent_concept_is_found_next_to_a_rare_one(history: History, mode: Mode, concepts: list[str]) -> None:
    """A conversation with all concepts is found, even if many others have one of the concepts."""
    for number in range(20):
        history.say(f"often{number}", *(Said(f"deploy deploy step {number} {n}") for n in range(12)))
        history.say(f"again{number}", *(Said(f"restart restart step {number} {n}") for n in range(12)))
    [zebra, *_] = history.say(
        "both",
        Said("that zebra in our yard"),
        Said("then we deploy that later"),
        Said("and we restart that"),
    )
    history.embed()
    history.publish()

    for filters in (NO_FILTERS, Filters(projects=("both",))):
        [event] = history.engine().find_all(concepts, mode, filters).events
        assert event.key - zebra in range(3)


@given(
    conversations=st.lists(
        st.lists(st.lists(st.sampled_from(["kettle", "pan", "steam"]), min_size=1, max_size=4), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    ),
    concepts=st.lists(st.sampled_from(["kettle", "pan", "steam"]), min_size=2, max_size=3, unique=True),
    mode=st.sampled_from(Mode),
    depth=st.integers(1, 4),
)
@settings(max_examples=25)
def test_a_filter_only_removes_conversations(
    conversations: list[list[list[str]]], concepts: list[str], mode: Mode, depth: int
) -> None:
    """For any search depth, a filter finds exactly the conversations of the unfiltered result that satisfy it."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "DEPTH", depth)
        history = History(Path(folder))
        for number, session in enumerate(conversations):
            history.say(f"s{number}", *(Said(" ".join(words)) for words in session), project=f"p{number % 2}")
        history.embed()

        def sessions(filters: Filters) -> set[int]:
            found = keys(history.engine().find_all(concepts, mode, filters).events)
            return {item.session for item in history.store.items.load(found).values()}

        every = sessions(NO_FILTERS)
        assert sessions(Filters(projects=("p0",))) | sessions(Filters(projects=("p1",))) == every


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_hostile_queries_are_answered(archive: History, query: str) -> None:
    """Every query has a result with scores from 0 to 1."""
    for mode in Mode:
        assert all(0 <= event.score <= 1 for event in archive.engine().find(query, mode, NO_FILTERS).events)


def test_results_are_reproducible(archive: History) -> None:
    """Two engines give the same events in the same order with the same scores."""
    assert _scores(archive.engine(), "water kettle pan") == _scores(archive.engine(), "water kettle pan")


def test_an_empty_archive_has_no_events(history: History) -> None:
    """A search in an empty archive returns an empty list."""
    assert history.engine().find("kettle", Mode.BOTH, NO_FILTERS).events == []
    assert history.engine().find_all(["kettle", "pan"], Mode.BOTH, NO_FILTERS).events == []


def test_a_repeated_query_is_not_embedded_again(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vector of a query is reused, also under other filters."""
    asked: list[str] = []
    embed = FakeEmbedder.embed

    def recording(self: FakeEmbedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        asked.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed", recording)
    engine = archive.engine()

    for filters in (NO_FILTERS, Filters(projects=("tea",))):
        engine.find("kettle", Mode.BOTH, filters)
    engine.find("spoon", Mode.BOTH, NO_FILTERS)

    assert asked == ["kettle", "spoon"]


def test_other_wordings_find_more_events(archive: History) -> None:
    """An event that only another wording matches is found, and an event of all wordings comes first."""
    found = archive.engine().find("brass", Mode.TEXT, NO_FILTERS, also=["copper"]).events

    assert {1, 3, 5} <= set(keys(found))
    assert found[0].key == 5
    assert all(sum(part.points for part in event.parts) == event.score for event in found)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("also", [*permutations(["copper pan", "water for tea", "litres"])])
def test_equal_wordings_have_equal_results(archive: History, mode: Mode, also: Sequence[str]) -> None:
    """The order of other wordings, and repetitions of the query among them, do not change the result."""
    reader = archive.engine()

    def scores(query: Query) -> list[tuple[int, float]]:
        found = reader.find(query.concepts[0], mode, NO_FILTERS, also=query.also)
        return [(event.key, event.score) for event in found.events]

    wanted = scores(Query.parse("brass kettle", also=["copper pan", "water for tea", "litres"]))

    assert scores(Query.parse("brass kettle", also=[*also, "Brass kettle"])) == wanted
    assert scores(Query.parse("brass kettle", also=["brass  kettle"])) == _scores(reader, "brass kettle", mode)


def test_all_wordings_are_embedded_in_one_batch(archive: History) -> None:
    """The model reads all wordings of a query at once, and none again."""
    read: list[list[str]] = []

    class Watched(FakeEmbedder):
        def read(self, texts: Sequence[str]) -> TextEmbeddings:
            read.append([*texts])
            return super().read(texts)

    archive.embedder = Watched()
    reader = archive.engine()
    for _ in range(2):
        reader.find("kettle", Mode.BOTH, NO_FILTERS, also=["copper pan", "water"])

    assert read == [["kettle", "copper pan", "water"]]


@pytest.mark.parametrize("mode", Mode)
def test_phrases_of_the_query_hold_for_all_wordings(archive: History, mode: Mode) -> None:
    """Each result contains the quoted phrases of the query. Quotation marks in other wordings are ignored."""
    quoted = archive.engine().find('"brass kettle"', mode, NO_FILTERS, also=["copper pan"])
    other = archive.engine().find("brass kettle", mode, NO_FILTERS, also=['"copper pan"'])

    assert set(keys(quoted.events)) == {1, 5}
    assert {3, 5} <= set(keys(other.events))


def test_a_filter_holds_for_all_wordings(archive: History) -> None:
    """Every wording is searched under the filters."""
    found = archive.engine().find("kettle", Mode.BOTH, Filters(projects=("soup",)), also=["copper pan", "water"])

    assert set(keys(found.events)) == {3, 4}


def test_a_time_in_another_wording_counts(history: History) -> None:
    """A time expression in any wording is a date range, and is part of the analyzed query."""
    history.say("tea", Said("brass kettle", at=1_700_000_000_000))
    history.embed()

    found = history.engine().find(
        "kettle", Mode.BOTH, NO_FILTERS, also=["the brass kettle whistles on 14 november 2023"]
    )

    assert len(found.query.times) == 1
    assert found.events[0].in_date_range == 1
