"""An empty result states its reasons, and changes to the query that would produce hits."""

import time
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.core.query import Filters, Mode, Query
from palaver.core.results import UnknownName
from palaver.search.present.hits import Hits
from palaver.search.query.query_analysis import shortness
from palaver.search.rank import engine

from ..history import LONG, MAY_1, NO_FILTERS, History, Said


def test_a_single_command_is_not_a_weak_match(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt of one word is a weak match only if the query contains that word."""
    history.say("one", Said("clear"), Said("brass kettle", LONG))
    history.embed()
    monkeypatch.setattr(engine, "_THRESHOLD", 2.0)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)

    def nearest(query: str) -> list[str]:
        found = history.search(query).explanation
        return [hit.title for hit in found.weak] if found else []

    assert nearest("brass xyzzyplugh") == ["brass kettle"]
    assert "clear" in nearest("clear")


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("qwxz blorf", True),
        ('"qwxz blorf"', True),
        ("qwxz_blorf", True),
        ("qwxz kettle", False),
        ("qwxz kettl", False),
        ("qwxz blor*", False),
        ("qwxz blorf snork grmpf", False),
    ],
)
def test_unknown_words_have_no_weak_matches(
    history: History, monkeypatch: pytest.MonkeyPatch, query: str, unknown: bool
) -> None:
    """A short query of unknown words has no weak matches, because, unlike a sentence, it cannot be a paraphrase.

    Weak matches are returned if the search requests them.
    """
    history.say("one", Said("brass kettle", LONG))
    history.embed()
    monkeypatch.setattr(engine, "_THRESHOLD", 2.0)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)
    found = history.search(query)

    assert not found.hits
    assert found.explanation is not None
    assert (found.explanation.no_known_term, not found.explanation.weak) == (unknown, unknown)
    assert '"' in query or Hits(history.store, history.engine()).search(Query((query,), weak=True)).hits


def test_the_explanation_names_concepts_without_matches(history: History) -> None:
    """The explanation counts the matches of each concept.

    If all concepts have matches, it names two concepts that no conversation shares.
    """
    history.say("one", Said("the kettle has a valve"))
    history.say("two", Said("a kettle and a pump"))

    missing = history.search("kettle", "zeppelin", mode=Mode.TEXT).explanation
    disjoint = history.search("kettle", "valve", "pump", mode=Mode.TEXT).explanation
    two = history.search("valve", "pump", mode=Mode.TEXT).explanation

    assert missing is not None
    assert (missing.concepts, missing.disjoint) == ((("kettle", 2), ("zeppelin", 0)), ())
    assert disjoint is not None
    assert (disjoint.concepts, disjoint.disjoint) == ((("kettle", 2), ("valve", 1), ("pump", 1)), (("valve", "pump"),))
    assert two is not None
    assert (two.concepts, two.disjoint) == ((("valve", 1), ("pump", 1)), (("valve", "pump"),))


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
    assert unknown(sessions=("tee",), files=("tee.p*",))[1] == ("sessions", "tee", ("pot", "ship", "soup"))
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
