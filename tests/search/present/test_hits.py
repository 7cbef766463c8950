"""Hits of a search: their order, groups, snippets and thresholds."""

from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.archiver.store.observation_table import StoredReplacement
from palaver.core import ids
from palaver.core.memory import Edge, Memory, Relation
from palaver.core.observation import SUMMARY, Observation, ObservationType
from palaver.core.query import Filters, Grouping, Mode, Query
from palaver.core.results import ReplacedBy
from palaver.search.present.details import Details
from palaver.search.present.hits import Hits
from palaver.search.rank import engine
from palaver.templates.render import Renderer

from ..history import LONG, MAY_1, NO_FILTERS, History, Said, learned


def test_several_concepts_are_found_in_one_conversation(history: History) -> None:
    """A query with several concepts shows the best items of each conversation that contains all concepts."""
    first, _ = history.say("one", Said("brass kettle", LONG), Said("unrelated"))
    [insight] = history.learn(first, learned("the valve of the kettle was cleaned"))
    history.say("two", Said("brass kettle"))

    results = history.search("kettle", "valve", mode=Mode.TEXT)

    assert ([hit.id for hit in results.hits], results.total) == ([f"obs-{insight}"], 1)


def test_several_concepts_are_ordered_by_their_mean_score(history: History) -> None:
    """The score of a hit is its mean over the concepts, has a part for each concept, and determines the order."""
    history.say("one", Said("kettle kettle"), Said("the valve, somewhere among many other words of a sentence"))
    history.say("two", Said("kettle"), Said("valve"), Said("kettle valve"))
    history.embed()

    hits = history.search("kettle", "valve").hits

    assert len(hits) == 2
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert [part.name for part in hit.parts] == ["kettle", "valve"]
        assert [part.points for part in hit.parts] == [part.value / 2 for part in hit.parts]
        assert sum(part.points for part in hit.parts) == hit.score


def test_several_concepts_list_conversations_only(history: History) -> None:
    """A memory that contains all concepts is not listed, because it does not belong to a conversation."""
    [key, _] = history.say("one", Said("Which kettle has a valve?"), Said("And the colour?"))
    with history.store.transaction():
        memory = history.store.memories.insert(Memory("The kettle has a valve."), 1)

    assert history.ids("kettle", "valve", mode=Mode.TEXT) == [ids.show("exchange", key)]
    assert ids.show("memory", memory) in history.ids("kettle valve", mode=Mode.TEXT)


def test_an_unrelated_memory_is_not_listed(history: History) -> None:
    """A memory that matches neither by text nor by vector is not listed, even in a short list."""
    with history.store.transaction():
        kettle, other = (
            history.store.memories.insert(Memory(text), 1) for text in ("The kettle has a valve.", "A pump.")
        )
    history.embed()

    found = history.search("kettle valve", filters=replace(NO_FILTERS, kinds=("memory",)))
    newest = history.search(filters=replace(NO_FILTERS, kinds=("memory",)))

    assert [hit.id for hit in found.hits] == [ids.show("memory", kettle)]
    assert {hit.id for hit in newest.hits} == {ids.show("memory", kettle), ids.show("memory", other)}


def test_several_concepts_each_have_a_threshold(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one concept has no relevant match, there are no hits, and the nearest matches are listed as weak."""
    history.say("one", Said("brass kettle", LONG))
    history.embed()
    monkeypatch.setattr(engine, "_THRESHOLD", 0.9)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 1.1)

    found = history.search("kettle", "valve")

    assert found.hits == ()
    assert found.explanation is not None
    assert len(found.explanation.weak) == 1


def test_the_limit_keeps_the_best_hits(history: History) -> None:
    """The limit keeps the best hits, and the total counts the returned hits."""
    history.say("one", *(Said(f"kettle {'steam ' * n}") for n in range(12)))

    many, few = history.search("kettle", mode=Mode.TEXT), history.search("kettle", mode=Mode.TEXT, limit=3)

    assert (few.total, len(few.hits), many.total) == (3, 3, 12)
    assert few.hits == many.hits[:3]


@given(st.lists(st.sampled_from(["brass kettle", "copper pan", "steam", "kettle"]), min_size=1, max_size=6))
@settings(max_examples=20)
def test_scores_and_similarities_are_in_range(prompts: list[str]) -> None:
    """Scores are between 0 and 1 in descending order, similarities are cosines, and results are reproducible."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        history.say("one", *map(Said, prompts))
        history.embed()

        hits = history.search("brass kettle").hits

        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(0 <= hit.score <= 1 for hit in hits)
        query, *rows = history.embedder.embed(["brass kettle", *(hit.title for hit in hits)])
        for hit, row in zip(hits, rows, strict=True):
            assert hit.similarity == pytest.approx(float(row @ query), abs=2e-3)
        assert history.search("brass kettle").hits == hits


@pytest.mark.parametrize("mode", Mode)
def test_an_explanation_adds_up_to_the_score(archive: History, mode: Mode) -> None:
    """The points of all parts, added in order, are exactly the score."""
    hits = archive.search("brass kettle whistles", mode=mode).hits

    assert hits
    for hit in hits:
        total = 0.0
        for part in hit.parts:
            total += part.points
        assert total == hit.score


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ('"brass kettle"', {"ex-1"}),
        ('"kettles whistle"', set[str]()),
        ('"it whistle"', {"ex-1", "ex-2"}),
        ('"kettle brass"', set[str]()),
        ('"brass kettle" "nowhere"', set[str]()),
        ("ERR_AUTH_FAILED", {"ex-1", "ex-2"}),
        ("whist*", {"ex-1", "ex-2"}),
        ("ketle", {"ex-1", "ex-2", "ex-3"}),
        ("検索", {"ex-4"}),
        ("🚀", {"ex-4"}),
        ("nai\u0308ve", {"ex-4"}),
        ('"', set[str]()),
        ('"_"', set[str]()),
    ],
)
def test_phrases_are_exact_and_words_are_not(archive: History, words: str, found: set[str]) -> None:
    """Phrases match literally or not at all. Prefixes, misspellings, CJK text, emoji and accents are found.

    A short exchange is also found by the words of the exchange before it, but not by a quoted phrase from there.
    """
    assert set(archive.ids(words, mode=Mode.TEXT)) == found


def test_without_words_the_newest_come_first(archive: History) -> None:
    """A search with only filters lists the remaining events, newest first and undated events last."""
    found = Hits(archive.store, archive.engine()).search(Query.newest(agents=["test"]))

    assert [hit.id for hit in found.hits] == ["ex-3", "ex-2", "ex-1", "ex-4"]


@pytest.mark.parametrize("sessions", [1, 3])
def test_a_list_without_words_is_complete(history: History, monkeypatch: pytest.MonkeyPatch, sessions: int) -> None:
    """Pages list every event once, even if events have many entries, no date or the same date."""
    monkeypatch.setattr(engine, "_NEWEST", 4)
    for name in range(sessions):
        exchanges = (Said(f"{n}", "steam " * 900, at=MAY_1 + n // 3 if n % 4 else None) for n in range(12))
        history.say(f"s{name}", *exchanges)
        history.publish()
    whole = [hit.id for hit in Hits(history.store, history.engine()).search(Query((), limit=50)).hits]
    asked, seen = Query((), limit=5), list[str]()
    while True:
        page = Hits(history.store, history.engine()).search(asked)
        seen += [hit.id for hit in page.hits]
        if not page.cursor:
            break
        asked = replace(asked, cursor=page.cursor)

    assert seen == whole
    assert len(set(seen)) == len(seen) == 12 * sessions
    undated = [history.store.items.load([int(one[3:])])[int(one[3:])].at is None for one in seen]
    assert undated == sorted(undated)


def test_hits_can_be_grouped_by_session(archive: History) -> None:
    """Grouped by session, each conversation is one result with the number of its other hits."""
    found = Hits(archive.store, archive.engine()).search(Query(("kettle",), Mode.TEXT, by=Grouping.SESSION))

    assert len({hit.session_id for hit in found.hits}) == len(found.hits) == 2
    assert {hit.session_id: hit.more for hit in found.hits}["tea"] == 1


def test_a_replaced_observation_follows_its_replacement(history: History) -> None:
    """An observation that a later one replaces is listed after it, and its details name the replacement."""
    [one, two] = history.say("tea", Said("the kettle leaks at the lid"), Said("no, the kettle leaks elsewhere"))
    [old] = history.learn(one, learned("The kettle leaks at the lid", ObservationType.DEBUG))
    [new] = history.learn(two, learned("The kettle has a leak in its base", ObservationType.DEBUG))
    history.embed()
    history.publish()
    before = history.ids("the kettle leaks at the lid", mode=Mode.TEXT)
    with history.store.transaction():
        history.store.replacements.put([old, new], [StoredReplacement(old, new, 4)])
    found = history.search("the kettle leaks at the lid", mode=Mode.TEXT).hits

    assert before == [f"obs-{old}", f"obs-{new}"]
    assert [hit.id for hit in found] == [f"obs-{new}", f"obs-{old}"]
    [detail] = Details(history.store).load([old])
    assert detail.replaced_by == ReplacedBy(f"obs-{new}", "The kettle has a leak in its base", 4)


def test_a_superseded_memory_follows_its_successor(history: History) -> None:
    """A memory that others superseded one after another follows and names them, on every page, without proposals."""
    with history.store.transaction():
        old, newer, newest = (
            history.store.memories.insert(Memory(text), 1)
            for text in ("The kettle is filled at noon", "The kettle is filled at dusk now", "A robot fills the kettle")
        )
    history.embed()
    history.publish()
    before = history.ids("the kettle is filled at noon", mode=Mode.TEXT)
    for proposed in (True, False):
        with history.store.transaction():
            for later, earlier in ((newer, old), (newest, newer)):
                history.store.memory_edges.put(Edge(later, earlier, Relation.SUPERSEDES, proposed=proposed))
        ordered = history.ids("the kettle is filled at noon", mode=Mode.TEXT)
        assert ordered == before if proposed else ordered == [f"mem_{key}" for key in (newest, newer, old)]
    first = Query(("the kettle is filled at noon",), Mode.TEXT, limit=1)
    hits = Hits(history.store, history.engine())
    names = [hit.superseded_by for hit in hits.search(replace(first, limit=3)).hits]
    second = hits.search(replace(first, cursor=hits.search(first).cursor))

    assert before[0] == f"mem_{old}"
    assert names == ["", f"mem_{newest}", f"mem_{newer}"]
    assert [hit.id for hit in (*hits.search(first).hits, *second.hits)] == [f"mem_{newest}", f"mem_{newer}"]


def summarised(history: History, session: int, exchange: int, summary: Observation) -> int:
    """Store the summary of a session, publish it and return its key."""
    with history.store.transaction():
        history.store.summaries.put(session, exchange, summary)
    history.embed()
    history.publish()
    stored = history.store.summaries.of_session(session)
    assert stored is not None
    return stored.key


def test_a_session_is_shown_by_its_summary(history: History) -> None:
    """Grouped by session, a conversation has the title of its summary, and the rank of its best event."""
    [first, second] = history.say("tea", Said("which login do we take"), Said("the kettle of the guests leaks"))
    history.learn(second, learned("Mended the leaking kettle", ObservationType.BUG_FIX))
    summarised(history, 1, first, learned(f"{SUMMARY}Replaced the seal"))
    query = Query(("kettle leaks",), by=Grouping.SESSION)
    [hit] = Hits(history.store, history.engine()).search(query).hits

    assert (hit.id, hit.kind, hit.title) == ("tea", "session", "Replaced the seal")
    assert hit.score == history.search("kettle leaks").hits[0].score


def test_a_session_has_its_result(history: History) -> None:
    """Grouped by session, and in a timeline, a conversation has the first result of its card that is not its title."""
    [first, second] = history.say("tea", Said("which login do we take"), Said("the kettle of the guests leaks"))
    history.learn(second, learned("Mended the leaking kettle", ObservationType.BUG_FIX))
    facts = ("Outcome: Replaced the seal", "Outcome: The kettle holds water")
    summarised(history, 1, first, replace(learned(f"{SUMMARY}Replaced the seal"), facts=facts))
    hits = Hits(history.store, history.engine())
    [hit] = hits.search(Query(("kettle leaks",), by=Grouping.SESSION)).hits

    assert hit.outcome == hits.of_session(1).outcome == "Outcome: The kettle holds water"
    assert "\n    Outcome: The kettle holds water\n" in Renderer().search(
        hits.search(Query(("kettle",), by=Grouping.SESSION))
    )


def test_a_session_satisfies_the_filters(history: History) -> None:
    """Grouped by session, a session is found if one of its observations satisfies the filters."""
    [first] = history.say("tea", Said("the kettle of the guests leaks"))
    history.learn(first, learned("Mended the leaking kettle", ObservationType.BUG_FIX))
    summarised(history, 1, first, learned(f"{SUMMARY}Replaced the seal"))
    hits = Hits(history.store, history.engine())
    fixes, decisions = Filters(types=("bug-fix",)), Filters(types=("decision",))
    [hit] = hits.search(Query(("kettle",), by=Grouping.SESSION, filters=fixes)).hits

    assert (hit.id, hit.title) == ("tea", "Replaced the seal")
    assert hits.search(Query(("kettle",), by=Grouping.SESSION, filters=decisions)).hits == ()


def test_a_session_without_observations_has_its_title(history: History) -> None:
    """Grouped by session, a conversation from which nothing was learned is shown with the agent's title."""
    history.say("Tea for two", Said("could you look at the kettle?"))
    history.publish()
    [hit] = Hits(history.store, history.engine()).search(Query(("kettle",), Mode.TEXT, by=Grouping.SESSION)).hits

    assert hit.title == "Tea for two"


def test_snippets_contain_the_matched_words(archive: History) -> None:
    """The matched words of a hit have the same spelling as in its snippet."""
    hit, *_ = archive.search("whistles", mode=Mode.TEXT).hits

    assert hit.matched == ("whistles",)
    assert "whistles" in hit.snippet


def test_hits_are_the_same_without_snippets(archive: History) -> None:
    """A search without snippets returns the same hits without matched words."""
    hits, query = Hits(archive.store, archive.engine()), Query.parse("whistles")

    shown = hits.search(query)
    bare = hits.search(query, snippets=False)

    assert [replace(hit, snippet="", matched=(), needs_snippet=False) for hit in shown.hits] == [
        replace(hit, snippet="") for hit in bare.hits
    ]


def test_grouping_by_session_lists_sessions_only(archive: History) -> None:
    """Results grouped by session contain no memories, because a memory does not belong to a session."""
    with archive.store.transaction():
        memory = archive.store.memories.insert(Memory("The brass kettle whistles", namespace="global"), MAY_1)
    archive.embed()
    archive.publish()
    by_session = Hits(archive.store, archive.engine()).search(Query(("kettle",), by=Grouping.SESSION))

    assert f"mem_{memory}" in {hit.id for hit in archive.search("kettle").hits}
    both = archive.search("brass", "kettle")
    assert {hit.kind for hit in by_session.hits} == {"session"}
    assert both.hits
    assert {hit.kind for hit in both.hits} <= {"exchange", "observation"}
    assert all(hit.path for hit in (*by_session.hits, *both.hits))


def test_a_summary_ranks_behind_its_observations(history: History) -> None:
    """An event is shown as the observation that answers the query, not as the summary of the session."""
    [asked, _] = history.say("tea", Said("which login do we take"), Said("and the colour of the page"))
    history.learn(
        asked,
        learned("Chose tokens for authentication", ObservationType.DECISION),
        learned(f"{SUMMARY}authentication"),
    )
    history.embed()
    history.publish()

    assert history.search("authentication").hits[0].title == "Chose tokens for authentication"


def test_irrelevant_events_are_not_listed_after_good_hits(history: History) -> None:
    """Events far below the relevance threshold are listed only on request."""
    for number in range(30):
        history.say(f"s{number}", Said(f"an unrelated matter of kitchens, number {number}"))
    history.say("auth", Said("authentication with tokens"))
    history.embed()
    history.publish()
    shown = history.search("authentication")
    weak = Hits(history.store, history.engine()).search(Query(("authentication",), weak=True, limit=50))

    assert [hit.title for hit in shown.hits] == ["authentication with tokens"]
    assert len(weak.hits) > 1


def test_entries_of_the_own_project_rank_first_among_equals(history: History) -> None:
    """Of two equal texts, the one of the searcher's project is first; the score says so."""
    for name in ("tea", "milk"):
        history.say(name, Said("the kettle of the guests leaks"), project=name, cwd=f"/code/{name}")
    history.publish()
    hits = Hits(history.store, history.engine())

    for here in ("tea", "milk", "/code/tea", "/code/milk"):
        found = hits.search(Query(("kettle leaks",), Mode.TEXT, here=here)).hits
        assert found[0].project == PurePath(here).name
        assert [part.value for hit in found for part in hit.parts if part.name == "project"] == [1.0, 0.0]
    unknown = hits.search(Query(("kettle leaks",), Mode.TEXT)).hits
    assert {part.name for hit in unknown for part in hit.parts}.isdisjoint({"project", "date"})
