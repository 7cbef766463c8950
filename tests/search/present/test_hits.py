"""Tests of the item that represents each event, and of filters."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core import ids
from palaver.core.clock import day_end, day_start
from palaver.core.memory import Memory
from palaver.core.observation import Observation, ObservationType
from palaver.core.query import Filters, Mode, Query
from palaver.core.results import Hit
from palaver.search.present.hits import Hits
from palaver.search.rank import engine

from ..history import LINES, NO_FILTERS, History, Said, learned

MAY_1 = day_start("2026-05-01")
PATHS = ["src/auth.ts", "/w/app/api/auth.ts", "README.md"]
FILLER = "x " * 740
LONG = "The pressure cooker whistles when the valve is stuck, so the valve was cleaned with vinegar."


def test_an_exchange_without_observations_is_the_hit(history: History) -> None:
    """An exchange without observations is shown on the lines that contain the words."""
    [_, key] = history.say("one", Said("first"), Said("brass kettle", LONG, at=MAY_1), cwd="/w/app")

    [hit] = history.search("valve", mode=Mode.TEXT).hits

    assert (hit.id, hit.kind, hit.type, hit.title) == (f"ex-{key}", "exchange", "general", "brass kettle")
    assert (hit.path, hit.session_id, hit.project) == ("test/one.jsonl", "one", "one")
    assert (hit.start_line, hit.end_line, hit.at) == (LINES + 1, 2 * LINES, MAY_1)
    assert "valve" in hit.snippet
    assert hit.similarity is None


def test_an_observation_represents_its_exchange(history: History) -> None:
    """If words occur in the evidence of an observation, the hit is that observation with its lines."""
    [key] = history.say("one", Said("brass kettle", LONG))
    _, covering = history.learn(key, learned("about the kettle", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    hits = history.search("cleaning", mode=Mode.TEXT).hits

    assert [(hit.id, hit.kind, hit.start_line, hit.end_line) for hit in hits] == [
        (f"obs-{covering}", "observation", 3, 3)
    ]


def test_words_outside_of_evidence_show_the_exchange(history: History) -> None:
    """If words occur in neither an observation nor its evidence, the hit is the exchange."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned("something else", lines=(1, 1)))

    assert history.ids("valve vinegar", mode=Mode.TEXT) == [f"ex-{key}"]


def test_the_observation_with_the_matching_evidence_is_shown(history: History) -> None:
    """An observation with the words in its evidence is shown before an observation that contains only some of them."""
    [key] = history.say("one", Said(FILLER, LONG))
    _, covering = history.learn(key, learned("the valve", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    assert history.ids("stuck valve vinegar", mode=Mode.TEXT) == [f"obs-{covering}"]


@pytest.mark.parametrize(
    ("title", "kind"), [("the valve", "exchange"), ("pressure valve stuck, vinegar", "observation")]
)
def test_the_exchange_is_shown_if_it_matches_much_better(history: History, title: str, kind: str) -> None:
    """If many more query words occur outside the evidence, the exchange itself is shown, on those lines."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned(title, lines=(1, 1)))

    [hit] = history.search("pressure valve stuck vinegar whistles", mode=Mode.TEXT).hits

    assert hit.kind == kind
    assert (hit.start_line, hit.end_line) == ((3, 3) if kind == "exchange" else (1, 1))


def test_observations_are_found_by_their_own_words(history: History) -> None:
    """A query for words of an observation finds it, even if the exchange does not contain the words."""
    [key] = history.say("one", Said("brass kettle"))
    [insight] = history.learn(key, learned("limescale", lines=(1, 1)))

    assert history.ids("limescale", mode=Mode.TEXT) == [f"obs-{insight}"]


def test_an_exchange_is_one_hit(history: History) -> None:
    """An exchange with several observations is one hit: the observation that matches best."""
    [key] = history.say("one", Said("brass kettle"))
    _, best = history.learn(key, learned("kettle", lines=(1, 1)), learned("brass kettle", lines=(1, 1)))

    assert history.ids("brass kettle", mode=Mode.TEXT) == [f"obs-{best}"]


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


def test_the_limit_keeps_the_best_hits(history: History) -> None:
    """The limit keeps the best hits, and the total counts the returned hits."""
    history.say("one", *(Said(f"kettle {'steam ' * n}") for n in range(12)))

    many, few = history.search("kettle", mode=Mode.TEXT), history.search("kettle", mode=Mode.TEXT, limit=3)

    assert (few.total, len(few.hits), many.total) == (3, 3, 12)
    assert few.hits == many.hits[:3]


def test_filtered_events_do_not_count_towards_the_limit(history: History) -> None:
    """Events that a filter removes do not count towards the limit."""
    made = history.say("one", *(Said(f"kettle {n}") for n in range(30)))
    for key in made[:-1]:
        history.learn(key, learned("kettle kettle"))
    [wanted] = history.learn(made[-1], learned("nothing alike", ObservationType.DECISION))

    found = history.search("kettle", mode=Mode.TEXT, limit=1, filters=Filters(types=(ObservationType.DECISION,)))

    assert [hit.id for hit in found.hits] == [f"obs-{wanted}"]


def test_a_type_filter_shows_observations_of_that_type(history: History) -> None:
    """A type filter shows only observations of that type, even if the exchange has other observations."""
    [key] = history.say("one", Said("brass kettle"))
    _, decision = history.learn(
        key, learned("brass kettle", lines=(1, 1)), learned("taste", ObservationType.DECISION, (2, 2))
    )

    assert history.ids("kettle", filters=Filters(types=(ObservationType.DECISION,))) == [f"obs-{decision}"]
    assert history.ids("kettle", filters=Filters(types=(ObservationType.TEST,))) == []


def test_a_confirming_exchange_has_the_types_of_its_observation(history: History) -> None:
    """As long as an exchange repeats an observation, it is found under the type and concepts of the observation."""
    [first] = history.say("one", Said("brass kettle"))
    [second] = history.say("two", Said("brass kettle once more"))
    [decision] = history.learn(first, learned("we use brass", ObservationType.DECISION, concepts=["metal"]))
    history.learn(
        first, learned("we use brass", ObservationType.DECISION, concepts=["metal"]), learned("soup", concepts=["pan"])
    )
    history.publish()
    there = Filters(types=(ObservationType.DECISION,), sessions=("two",))

    assert history.ids("kettle", filters=there) == []
    with history.store.transaction():
        history.store.confirmations.replace(second, {decision: ()})
    for _ in range(2):
        assert history.ids("kettle", filters=there) == [f"ex-{second}"]
        assert history.ids("kettle", filters=replace(there, concepts=("Metal",))) == [f"ex-{second}"]
        assert history.ids("kettle", filters=replace(there, concepts=("pan",))) == []
        assert history.ids(filters=there) == [f"ex-{second}"]
        history.publish()
    history.learn(first, learned("soup", concepts=["pan"]))
    assert history.ids("kettle", filters=there) == []


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ("2026-05-02", None, ["second", "third"]),
        (None, "2026-05-02", ["first", "second"]),
        ("2026-05-02", "2026-05-02", ["second"]),
        ("2026-05-04", None, []),
    ],
)
def test_days_are_inclusive(history: History, after: str | None, before: str | None, expected: list[str]) -> None:
    """`after` and `before` include their day. Undated items are in no date range."""
    history.say(
        "one",
        Said("kettle first", at=MAY_1),
        Said("kettle second", at=day_end("2026-05-02") - 1),
        Said("kettle third", at=day_start("2026-05-03")),
        Said("kettle undated"),
    )

    wanted = Query.parse("kettle", mode="text", after=after, before=before)
    found = history.search("kettle", mode=Mode.TEXT, filters=wanted.filters)

    assert sorted(hit.title.removeprefix("kettle ") for hit in found.hits) == expected


def test_projects_by_name_and_by_path(history: History) -> None:
    """A project filter accepts a name, a namespace, and a path regardless of case and final slash."""
    [key] = history.say("one", Said("kettle"), project="App", cwd="/Code/App")
    history.say("two", Said("kettle"), project="app2", cwd="/code/app2")

    for name in ("app", "APP", "/code/app", "/Code/App/", "project:app"):
        assert history.ids("kettle", filters=Filters(projects=(name,))) == [f"ex-{key}"]
    assert history.ids("kettle", filters=Filters(projects=("work", "/code", "ap"))) == []


contents = st.builds(
    Said,
    st.sampled_from(["brass kettle", "copper pan", "kettle and pan"]),
    at=st.none() | st.integers(0, 3).map(lambda day: MAY_1 + day * 86_400_000),
    reads=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
)
insights = st.lists(
    st.builds(
        learned,
        st.sampled_from(["kettle", "pan", "steam"]),
        st.sampled_from([ObservationType.DECISION, ObservationType.TEST]),
        st.just((1, 1)),
        concepts=st.lists(st.sampled_from(["heat", "Metal"]), max_size=1),
        files=st.lists(st.sampled_from(PATHS), max_size=1),
        at=st.none() | st.integers(0, 3).map(lambda day: MAY_1 + day * 86_400_000),
    ),
    max_size=2,
    unique=True,
)
wanted = st.builds(
    Filters,
    after=st.none() | st.just(MAY_1 + 86_400_000),
    before=st.none() | st.just(MAY_1 + 2 * 86_400_000),
    projects=st.sampled_from([(), ("one",), ("/w/two",)]),
    types=st.sampled_from([(), (ObservationType.TEST,)]),
    concepts=st.sampled_from([(), ("metal",), ("heat", "metal")]),
    files=st.sampled_from([(), ("auth.ts",), ("readme.md",), ("src/auth.ts",)]),
)


def satisfies(history: History, hit: Hit, filters: Filters) -> bool:
    """Return whether a hit satisfies the filters."""
    key = int(hit.id.partition("-")[2])
    observation = next(iter(history.store.observations.load([key]).values()), None)
    exchange = next(iter(history.store.exchanges.load([key]).values()), None)
    files: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    if observation:
        files, concepts = observation.observation.files_modified, observation.observation.concepts
    elif exchange:
        files = exchange.exchange.reads
    ends = [f"/{path}".lower().endswith(f"/{end}") for path in files for end in filters.files]
    return (
        (filters.after is None or (hit.at or 0) >= filters.after)
        and (filters.before is None or 0 < (hit.at or 0) < filters.before)
        and (not filters.projects or hit.project in {name.removeprefix("/w/") for name in filters.projects})
        and (not filters.types or hit.type in filters.types)
        and (not filters.concepts or bool({name.lower() for name in concepts} & set(filters.concepts)))
        and (not filters.files or any(ends))
    )


@given(st.lists(st.tuples(contents, insights), min_size=1, max_size=5), wanted, st.sampled_from(Mode), st.booleans())
@settings(max_examples=40)
def test_every_hit_satisfies_the_filters(
    exchanges: list[tuple[Said, list[Observation]]], filters: Filters, mode: Mode, publish: bool
) -> None:
    """Every hit satisfies every filter, and a filter adds no events."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        for number, (each, observations) in enumerate(exchanges):
            name = ("one", "two")[number % 2]
            [key] = history.say(f"{name}{number}", each, project=name, cwd=f"/w/{name}")
            history.learn(key, *observations)
        history.embed()
        if publish:
            history.publish()

        every = {hit.session_id: hit.score for hit in history.search("kettle", mode=mode).hits}
        found = history.search("kettle", mode=mode, filters=filters).hits

        for hit in found:
            assert satisfies(history, hit, filters), hit
            assert hit.score <= every[hit.session_id] + 1e-6
        if filters == NO_FILTERS:
            assert len(found) == len(every)


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
