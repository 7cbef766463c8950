"""Is each event shown as what says it best, and does every hit satisfy the filters?"""

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


def test_an_exchange_stands_for_itself(history: History) -> None:
    """Where nothing was learned the exchange is the hit, on the lines where the words stand."""
    [_, key] = history.say("one", Said("first"), Said("brass kettle", LONG, at=MAY_1), cwd="/w/app")

    [hit] = history.search("valve", mode=Mode.TEXT).hits

    assert (hit.id, hit.kind, hit.type, hit.title) == (f"ex-{key}", "exchange", "general", "brass kettle")
    assert (hit.path, hit.session_id, hit.project) == ("test/one.jsonl", "one", "one")
    assert (hit.start_line, hit.end_line, hit.at) == (LINES + 1, 2 * LINES, MAY_1)
    assert "valve" in hit.snippet
    assert hit.similarity is None


def test_an_observation_stands_for_its_exchange(history: History) -> None:
    """Words found in lines that prove an observation are shown as that observation, with its lines."""
    [key] = history.say("one", Said("brass kettle", LONG))
    _, covering = history.learn(key, learned("about the kettle", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    hits = history.search("cleaning", mode=Mode.TEXT).hits

    assert [(hit.id, hit.kind, hit.start_line, hit.end_line) for hit in hits] == [
        (f"obs-{covering}", "observation", 3, 3)
    ]


def test_words_where_nothing_was_learned_show_the_exchange(history: History) -> None:
    """Words that stand outside the evidence, and that no observation has, are shown as the exchange."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned("something else", lines=(1, 1)))

    assert history.ids("valve vinegar", mode=Mode.TEXT) == [f"ex-{key}"]


def test_what_covers_the_words_goes_before_what_has_some_of_them(history: History) -> None:
    """The observation that is proved by the lines found is shown, although another has a word of the query itself."""
    [key] = history.say("one", Said(FILLER, LONG))
    _, covering = history.learn(key, learned("the valve", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    assert history.ids("stuck valve vinegar", mode=Mode.TEXT) == [f"obs-{covering}"]


@pytest.mark.parametrize(
    ("title", "kind"), [("the valve", "exchange"), ("pressure valve stuck, vinegar", "observation")]
)
def test_the_exchange_is_shown_where_it_says_much_more(history: History, title: str, kind: str) -> None:
    """Where the exchange has far more of the words, in lines that prove nothing, it is shown, on those lines."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned(title, lines=(1, 1)))

    [hit] = history.search("pressure valve stuck vinegar whistles", mode=Mode.TEXT).hits

    assert hit.kind == kind
    assert (hit.start_line, hit.end_line) == ((3, 3) if kind == "exchange" else (1, 1))


def test_observations_are_found_by_their_own_words(history: History) -> None:
    """An observation whose words nobody said in the exchange is found by them."""
    [key] = history.say("one", Said("brass kettle"))
    [insight] = history.learn(key, learned("limescale", lines=(1, 1)))

    assert history.ids("limescale", mode=Mode.TEXT) == [f"obs-{insight}"]


def test_one_hit_per_exchange(history: History) -> None:
    """An exchange with several observations is one hit: the one that matches best."""
    [key] = history.say("one", Said("brass kettle"))
    _, best = history.learn(key, learned("kettle", lines=(1, 1)), learned("brass kettle", lines=(1, 1)))

    assert history.ids("brass kettle", mode=Mode.TEXT) == [f"obs-{best}"]


def test_several_concepts_are_found_in_one_conversation(history: History) -> None:
    """A search for several concepts shows what says best in each conversation that has them all, observations too."""
    first, _ = history.say("one", Said("brass kettle", LONG), Said("unrelated"))
    [insight] = history.learn(first, learned("the valve of the kettle was cleaned"))
    history.say("two", Said("brass kettle"))

    results = history.search("kettle", "valve", mode=Mode.TEXT)

    assert ([hit.id for hit in results.hits], results.total) == ([f"obs-{insight}"], 1)


def test_several_concepts_order_by_what_they_show(history: History) -> None:
    """The score is the mean over the concepts, has a part for each, and orders the list."""
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
    """A memory that has all concepts belongs to no conversation and is not listed."""
    [said, _] = history.say("one", Said("Which kettle has a valve?"), Said("And the colour?"))
    with history.store.transaction():
        memory = history.store.memories.insert(Memory("The kettle has a valve."), 1)

    assert history.ids("kettle", "valve", mode=Mode.TEXT) == [ids.show("exchange", said)]
    assert ids.show("memory", memory) in history.ids("kettle valve", mode=Mode.TEXT)


def test_a_memory_that_nothing_supports_is_not_listed(history: History) -> None:
    """What stands by itself and has neither a word of a query nor its meaning is no hit, however short the list is."""
    with history.store.transaction():
        kettle, other = (
            history.store.memories.insert(Memory(text), 1) for text in ("The kettle has a valve.", "A pump.")
        )
    history.embed()

    found = history.search("kettle valve", filters=replace(NO_FILTERS, kinds=("memory",)))
    newest = history.search(filters=replace(NO_FILTERS, kinds=("memory",)))

    assert [hit.id for hit in found.hits] == [ids.show("memory", kettle)]
    assert {hit.id for hit in newest.hits} == {ids.show("memory", kettle), ids.show("memory", other)}


def test_several_concepts_have_the_floor_of_each(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of the concepts finds nothing relevant there are no hits, and the nearest are named as weak."""
    history.say("one", Said("brass kettle", LONG))
    history.embed()
    monkeypatch.setattr(engine, "_THRESHOLD", 0.9)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 1.1)

    found = history.search("kettle", "valve")

    assert found.hits == ()
    assert found.explanation is not None
    assert len(found.explanation.weak) == 1


def test_a_command_alone_is_near_to_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is clearly relevant, a single word that was typed is not the nearest unless it was asked for."""
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
    ("query", "unheard"),
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
def test_nothing_is_near_to_words_that_stand_nowhere(
    history: History, monkeypatch: pytest.MonkeyPatch, query: str, unheard: bool
) -> None:
    """Of a few words, none of which stands anywhere, nor one that is spelled like it, no nearest is told; of a sentence
    it is, which may say in other words what is there. Who wants what is weak gets it.
    """
    history.say("one", Said("brass kettle", LONG))
    history.embed()
    monkeypatch.setattr(engine, "_THRESHOLD", 2.0)
    monkeypatch.setattr(engine, "_RELEVANT_WORDS", 2.0)
    found = history.search(query)

    assert not found.hits
    assert found.explanation is not None
    assert (found.explanation.no_known_term, not found.explanation.weak) == (unheard, unheard)
    assert '"' in query or Hits(history.store, history.engine()).search(Query((query,), weak=True)).hits


def test_several_concepts_that_find_nothing_say_which_of_them_is_to_blame(history: History) -> None:
    """Each is counted by itself; where each is somewhere, those two are named that are in no conversation together."""
    history.say("one", Said("the kettle has a valve"))
    history.say("two", Said("a kettle and a pump"))

    missing = history.search("kettle", "zeppelin", mode=Mode.TEXT).explanation
    parted = history.search("kettle", "valve", "pump", mode=Mode.TEXT).explanation
    two = history.search("valve", "pump", mode=Mode.TEXT).explanation

    assert missing is not None
    assert (missing.concepts, missing.disjoint) == ((("kettle", 2), ("zeppelin", 0)), ())
    assert parted is not None
    assert (parted.concepts, parted.disjoint) == ((("kettle", 2), ("valve", 1), ("pump", 1)), (("valve", "pump"),))
    assert two is not None
    assert (two.concepts, two.disjoint) == ((("valve", 1), ("pump", 1)), (("valve", "pump"),))


def test_the_limit_is_kept(history: History) -> None:
    """No more hits than asked for, the best ones, and the total counts them."""
    history.say("one", *(Said(f"kettle {'steam ' * n}") for n in range(12)))

    many, few = history.search("kettle", mode=Mode.TEXT), history.search("kettle", mode=Mode.TEXT, limit=3)

    assert (few.total, len(few.hits), many.total) == (3, 3, 12)
    assert few.hits == many.hits[:3]


def test_filters_reach_past_the_limit(history: History) -> None:
    """Events that a filter leaves nothing of do not use up the limit."""
    made = history.say("one", *(Said(f"kettle {n}") for n in range(30)))
    for key in made[:-1]:
        history.learn(key, learned("kettle kettle"))
    [wanted] = history.learn(made[-1], learned("nothing alike", ObservationType.DECISION))

    found = history.search("kettle", mode=Mode.TEXT, limit=1, filters=Filters(types=(ObservationType.DECISION,)))

    assert [hit.id for hit in found.hits] == [f"obs-{wanted}"]


def test_a_type_is_that_of_the_observation_shown(history: History) -> None:
    """Asked for a type, only observations of it are shown, although the exchange has others too."""
    [key] = history.say("one", Said("brass kettle"))
    _, decision = history.learn(
        key, learned("brass kettle", lines=(1, 1)), learned("taste", ObservationType.DECISION, (2, 2))
    )

    assert history.ids("kettle", filters=Filters(types=(ObservationType.DECISION,))) == [f"obs-{decision}"]
    assert history.ids("kettle", filters=Filters(types=(ObservationType.TEST,))) == []


def test_what_was_said_again_has_the_types_of_what_it_confirms(history: History) -> None:
    """An exchange that says an observation again is found under its type and concepts, until it no longer does."""
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
    """`after` and `before` include their day; what is undated is in no range."""
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
    """A project is named by its name, its whole path in any case, with or without a slash, or its namespace."""
    [key] = history.say("one", Said("kettle"), project="App", cwd="/Code/App")
    history.say("two", Said("kettle"), project="app2", cwd="/code/app2")

    for name in ("app", "APP", "/code/app", "/Code/App/", "project:app"):
        assert history.ids("kettle", filters=Filters(projects=(name,))) == [f"ex-{key}"]
    assert history.ids("kettle", filters=Filters(projects=("work", "/code", "ap"))) == []


said = st.builds(
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
    """Whether what a hit shows is what was asked for."""
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


@given(st.lists(st.tuples(said, insights), min_size=1, max_size=5), wanted, st.sampled_from(Mode), st.booleans())
@settings(max_examples=40)
def test_every_hit_satisfies_the_filters(
    told: list[tuple[Said, list[Observation]]], filters: Filters, mode: Mode, publish: bool
) -> None:
    """Every hit satisfies every filter, and a filter finds no event that the search without it would not find."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        for number, (each, observations) in enumerate(told):
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
def test_numbers_are_what_they_say(prompts: list[str]) -> None:
    """Scores lie between 0 and 1 and fall, similarities are cosines, and a search has the same answer twice."""
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
