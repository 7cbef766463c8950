"""Tests of explanations, pages, zero-result explanations, filters and timelines."""

import random
import time
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.archiver.store.replacement_table import StoredReplacement
from palaver.core.errors import InvalidInput, UnknownIds
from palaver.core.memory import Memory
from palaver.core.observation import SUMMARY, Observation, ObservationType
from palaver.core.query import Filters, Grouping, Mode, Query
from palaver.core.results import ReplacedBy, UnknownName
from palaver.search.present.details import Details
from palaver.search.present.hits import Hits
from palaver.search.query.query_analysis import shortness
from palaver.search.rank import engine
from palaver.search.rank.engine import DEPTH

from ..history import NO_FILTERS, History, Said, keys, learned

MAY_1 = 1_777_593_600_000


@pytest.fixture
def archive(history: History) -> History:
    """Archive with three conversations about kitchens."""
    history.say("tea", Said("brass kettle", "It whistles ERR_AUTH_FAILED at 3.", MAY_1), Said("steel kettle", at=MAY_1))
    history.say("soup", Said("copper pan", "The kettle helps.", MAY_1 + 86_400_000, writes=("/w/src/soup.py",)))
    history.say("ship", Said("deploy 🚀 with 検索エンジン and naïve caching"))
    history.embed()
    history.publish()
    return history


def ids(archive: History, words: str, mode: Mode = Mode.TEXT, filters: Filters = NO_FILTERS) -> list[str]:
    return archive.ids(words, mode=mode, filters=filters)


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


def test_pages_follow_each_other(archive: History) -> None:
    """Pages with one hit each form the whole list, even if a generation is published between them.

    A cursor of another search is refused.
    """
    whole = [hit.id for hit in archive.search("kettle").hits]
    asked, seen = Query(("kettle",), limit=1), list[str]()
    while True:
        page = Hits(archive.store, archive.engine()).search(asked)
        seen += [hit.id for hit in page.hits]
        archive.publish()
        if not page.cursor:
            break
        asked = replace(asked, cursor=page.cursor)

    assert seen == whole
    for other in (replace(asked, concepts=("pan",)), replace(asked, also=("pan",))):
        with pytest.raises(InvalidInput, match="it is not from this search"):
            Hits(archive.store, archive.engine()).search(other)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("by", Grouping)
def test_the_last_page_reports_that_more_events_match(history: History, mode: Mode, by: Grouping) -> None:
    """Only the last page reports that more events match than were compared."""
    for name in range(5):
        history.say(f"s{name}", *(Said(f"kettle {n}") for n in range(DEPTH // 4)))
    history.embed()

    def flags(words: str) -> list[bool]:
        asked, archive = Query((words,), mode, limit=50, by=by), list[bool]()
        while True:
            page = Hits(history.store, history.engine()).search(asked)
            archive.append(page.ranking_limit)
            if not page.cursor:
                return archive
            asked = replace(asked, cursor=page.cursor)

    *before, last = flags("kettle")
    assert (any(before), last) == (False, True)
    with history.store.transaction():
        history.store.exchanges.delete(history.store.items.all_keys()[DEPTH // 2 :])
    assert not any(flags("kettle"))


@given(st.text(min_size=1, max_size=40))
def test_invalid_cursors_are_refused(cursor: str) -> None:
    """Every invalid cursor raises the error for cursors."""
    from palaver.search.present.page_cursor import event_of

    with pytest.raises(InvalidInput, match="Invalid cursor"):
        event_of(Query(("kettle",), cursor=cursor))


def test_a_page_after_a_deleted_hit_is_refused(archive: History) -> None:
    """If the last hit of a page was deleted, the next page is refused."""
    page = archive.search("kettle", limit=1)
    with archive.store.transaction():
        archive.store.exchanges.delete([int(page.hits[0].id.partition("-")[2])])

    with pytest.raises(InvalidInput, match="no longer matches"):
        Hits(archive.store, archive.engine()).search(replace(page.query, cursor=page.cursor))


def test_no_relevant_hit_is_reported(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the relevance threshold there are no hits, but the nearest matches are listed and can be requested."""
    monkeypatch.setattr(engine, "_THRESHOLD", 0.9)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 1.1)
    hits = Hits(archive.store, archive.engine())
    nothing, everything = hits.search(Query(("kettle",))), hits.search(Query(("kettle",), weak=True))

    assert (nothing.hits, nothing.total, nothing.searched) == ((), 0, ("text", "vector"))
    assert nothing.explanation is not None
    assert [hit.id for hit in nothing.explanation.weak] == [hit.id for hit in everything.hits[:3]]
    assert everything.explanation is None


def test_an_event_with_all_words_is_relevant(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event with all query words is shown at any score. If the query has an unknown word, the score decides."""
    monkeypatch.setattr(engine, "_THRESHOLD", 0.9)

    assert archive.search("kettle").hits
    assert not archive.search("kettle zzyzx qwrtp").hits


def test_a_short_query_needs_a_better_score() -> None:
    """Queries of fewer than twelve words have a higher threshold, except in a small archive."""
    assert [round(shortness(terms), 2) for terms in (1, 6, 8, 10, 12, 40)] == [0.48, 0.48, 0.16, 0.03, 0.0, 0.0]


def test_zero_hits_are_explained(archive: History) -> None:
    """An empty result has the effect of each filter, the nearest days with hits, and similar names."""
    why = archive.search(
        "kettle", mode=Mode.TEXT, filters=Filters(after=MAY_1 + 10 * 86_400_000, projects=("te",))
    ).explanation

    assert why is not None
    assert dict(why.without) == {"dates": 0, "projects": 0}
    assert why.unknown == (UnknownName("projects", "te", ("ship", "soup", "tea")),)
    late = archive.search("kettle", mode=Mode.TEXT, filters=Filters(after=MAY_1 + 10 * 86_400_000)).explanation
    assert late is not None
    assert (dict(late.without), late.earlier, late.later) == ({"dates": 3}, MAY_1 + 86_400_000, None)


@pytest.mark.parametrize(("threshold", "found"), [(0.0, 1), (2.0, 0)])
def test_counts_without_a_filter_include_relevant_conversations_only(
    archive: History, monkeypatch: pytest.MonkeyPatch, threshold: float, found: int
) -> None:
    """The explanation counts only those conversations that a search without the filter shows."""
    monkeypatch.setattr(engine, "_THRESHOLD", threshold)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)
    explanation = archive.search("copper pan", "kettle", filters=Filters(projects=("tea",))).explanation

    assert explanation is not None
    assert dict(explanation.without) == {"projects": found}
    assert len(archive.search("copper pan", "kettle").hits) == found


@pytest.mark.parametrize("words", ["kettle", "brass kettle", "pan helps"])
def test_a_count_without_a_filter_is_the_number_of_hits(archive: History, words: str) -> None:
    """The explanation counts as many hits as the same search shows without the filter."""
    explanation = archive.search(words, filters=Filters(branches=("nowhere",))).explanation

    assert explanation is not None
    assert dict(explanation.without) == {"branches": len(archive.search(words).hits)}


@pytest.mark.parametrize(
    ("filters", "unknown"),
    [
        ({"projects": ("tae",)}, [("projects", "tae", ("ship", "soup", "tea"))]),
        ({"agents": ("tset",)}, [("agents", "tset", ("test",))]),
        ({"sessions": ("x",)}, [("sessions", "x", ("ship", "soup", "tea"))]),
        ({"sessions": ("te",), "agents": ("TEST",), "files": ("src/soup.py",)}, []),
        ({"files": ("soop.py",)}, [("files", "soop.py", ("soup.py",))]),
        ({"files": ("*.ts",)}, [("files", "*.ts", ("soup.py",))]),
        ({"files": ("src/", "*.py")}, []),
        ({"branches": ("mian",)}, [("branches", "mian", ())]),
        ({"concepts": ("jwt",)}, [("concepts", "jwt", ())]),
    ],
)
def test_unknown_names_in_filters_are_explained(
    archive: History, filters: dict[str, Any], unknown: list[object]
) -> None:
    """Without hits, each unknown name of a filter is reported with similar names that exist."""
    why = archive.search("nowhere", mode=Mode.TEXT, filters=replace(NO_FILTERS, **filters)).explanation

    assert why is not None
    assert [one[:3] for one in why.unknown] == unknown


def test_further_names_are_counted(history: History) -> None:
    """The explanation lists three names and the number of other names. Names of deleted items do not count."""
    for name in ("ga", "gb", "gc", "gd", "ge", "gf", "gg", "g12"):
        history.say(name, Said("kettle"))
    engine = history.engine()
    with history.store.transaction():
        history.store.exchanges.delete([1, 2])

    why = Hits(history.store, engine).search(Query(("kettle",), filters=Filters(sessions=("12",)))).explanation

    assert why is not None
    assert why.unknown == (UnknownName("sessions", "12", ("g12",), 5),)


def test_projects_keep_their_case(history: History) -> None:
    """Explanations show project names in their original case."""
    history.say("one", Said("kettle"), cwd="/Users/Ann/Code/Tea")
    why = history.search("kettle", filters=Filters(projects=("/elsewhere",))).explanation

    assert why is not None
    assert "/Users/Ann/Code/Tea" in why.unknown[0].nearest


@pytest.mark.parametrize(
    ("words", "nowhere", "others"),
    [
        ("kettle kubernetes", ("kubernetes",), 3),
        ("kubernetes deadbeef42, 🦖🦖", ("kubernetes", "deadbeef42", "🦖🦖"), None),
        ("what is the kettle beside kubernetes", (), None),
        ('"kettle drum" kubernetes', (), None),
    ],
)
def test_a_few_unknown_words_are_listed(
    archive: History, monkeypatch: pytest.MonkeyPatch, words: str, nowhere: tuple[str, ...], others: int | None
) -> None:
    """Unknown words of a short query are listed with the number of hits without them. Those of a question are not."""
    monkeypatch.setattr(engine, "_THRESHOLD", 0.4)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 0.2)
    why = archive.search(words).explanation

    assert why is not None
    assert (why.missing, why.without_missing) == (nowhere, others)


@pytest.mark.parametrize("published", [True, False])
def test_deleted_names_are_not_suggested(history: History, published: bool) -> None:
    """A name without remaining items is reported as unknown and is never suggested."""
    for name in ("tea", "tee", "pot", "soup", "ship"):
        history.say(name, Said("kettle", reads=(f"/w/src/{name}.py",)))
    if published:
        history.publish()
    history.engine().find("kettle", Mode.TEXT, NO_FILTERS)
    reader = Hits(history.store, history.engine())
    with history.store.transaction():
        history.store.exchanges.delete([1, 2])

    def unknown(**filters: Any) -> list[object]:
        why = reader.search(Query(("nowhere",), Mode.TEXT, filters=replace(NO_FILTERS, **filters))).explanation
        assert why is not None
        return [one[:3] for one in why.unknown]

    assert unknown(projects=("tea",)) == [("projects", "tea", ("pot", "ship", "soup"))]
    assert unknown(files=("tea.py",)) == [("files", "tea.py", ("pot.py", "ship.py", "soup.py"))]
    assert unknown(sessions=("tee",), files=("tee.p*",))[0] == ("sessions", "tee", ("pot", "ship", "soup"))
    assert unknown(sessions=("so",), projects=("soup",)) == []


def test_an_unknown_name_is_compared_with_thousands_in_half_a_second(history: History) -> None:
    """Similar names are found within half a second among 20,000 names."""
    names = [f"module_{number:05}.py" for number in range(20_000)]
    history.say("one", Said("kettle", reads=tuple(f"/w/{name}" for name in names)))
    reader = Hits(history.store, history.engine())
    asked = Query(("nowhere",), Mode.TEXT, filters=Filters(files=("module_12345.pu",)))

    def tried() -> float:
        """Return the CPU seconds of one search."""
        started = time.process_time()
        reader.search(asked)
        return time.process_time() - started

    assert min(tried() for _ in range(4)) < 0.5


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"sessions": ("te",)}, {"ex-1", "ex-2"}),
        ({"sessions": ("x",)}, set[str]()),
        ({"agents": ("test",)}, {"ex-1", "ex-2", "ex-3"}),
        ({"roles": ("human",)}, {"ex-1", "ex-2"}),
        ({"roles": ("assistant",)}, {"ex-3"}),
        ({"origins": ("human",)}, {"ex-1", "ex-2", "ex-3"}),
        ({"files": ("src/",)}, {"ex-3"}),
        ({"files": ("*.py",)}, {"ex-3"}),
        ({"files": ("*.ts",)}, set[str]()),
        ({"kinds": ("memory",)}, set[str]()),
    ],
)
def test_filters_select_events(archive: History, filters: dict[str, Any], found: set[str]) -> None:
    """Filters accept the beginning of a session ID, a speaker, and a folder or pattern of files.

    If the archive is small enough to compare all events, a filter only removes events.
    """
    wanted = replace(NO_FILTERS, **filters)

    assert set(ids(archive, "kettle", Mode.TEXT, wanted)) == found
    for mode in (Mode.BOTH, Mode.VECTOR):
        assert set(ids(archive, "kettle", mode, wanted)) <= set(ids(archive, "kettle", mode))


@pytest.mark.parametrize("mode", Mode)
def test_a_filter_keeps_every_event_that_satisfies_it(history: History, mode: Mode) -> None:
    """If more events match than are compared, a filter keeps every found event that satisfies it.

    The filter can add events that ranked too low without it.
    """
    chance, by_project = random.Random(7), dict[str, set[int]]()
    for project in ("tea", "soup", "ship", "mill"):
        exchanges = (Said(" ".join(chance.choices(["kettle", "pan", "steam", "soup"], k=9))) for _ in range(DEPTH // 2))
        by_project[project] = set(history.say(project, *exchanges))
    history.embed()
    history.publish()
    reader = history.engine()
    every = set(keys(reader.find("kettle", mode, NO_FILTERS).events))

    assert len(every) < sum(map(len, by_project.values()))
    for project, theirs in by_project.items():
        found = set(keys(reader.find("kettle", mode, Filters(projects=(project,))).events))
        assert every & theirs < found <= theirs


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
    assert set(ids(archive, words)) == found


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


def test_a_timeline_surrounds_a_hit(archive: History) -> None:
    """A timeline has the exchanges before and after a hit in order, and marks the hit."""
    found = Hits(archive.store, archive.engine()).around("ex-2", 2, 3)

    assert (found.anchor, [hit.id for hit in found.hits]) == ("ex-2", ["ex-1", "ex-2"])
    with pytest.raises(InvalidInput):
        Hits(archive.store, archive.engine()).around("ex-99", 99, 3)


def test_a_timeline_needs_the_id_of_an_exchange_or_observation(archive: History) -> None:
    """An ID of another kind or a bare number is reported as unknown."""
    hits = Hits(archive.store, archive.engine())

    for wrong in ("1", "obs-1", "mem_1", "chunk_1"):
        with pytest.raises(UnknownIds):
            hits.around(wrong, 1, 3)


def test_a_timeline_marks_the_requested_id(archive: History) -> None:
    """The arrow marks the requested observation or exchange, even if another item represents the event."""
    one, other = archive.learn(1, learned("The kettle leaks"), learned("The kettle is mended"))
    hits = Hits(archive.store, archive.engine())

    for key, public in ((one, f"obs-{one}"), (other, f"obs-{other}"), (1, "ex-1")):
        found = hits.around(public, key, 3)
        assert found.anchor == public
        assert [hit.id for hit in found.hits] == [public, "ex-2"]


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
