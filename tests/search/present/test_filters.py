"""Filters select hits: they never add one, and keep every hit that satisfies them."""

import random
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.conversation import day_end, day_start
from palaver.core.observation import Observation, ObservationType
from palaver.core.query import Filters, Mode, Query
from palaver.core.results import Hit
from palaver.search.rank.engine import DEPTH

from ..history import MAY_1, NO_FILTERS, History, Said, keys, learned

PATHS = ["src/auth.ts", "/w/app/api/auth.ts", "README.md"]

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


def test_a_project_includes_the_worktrees_of_its_repository(history: History) -> None:
    """The folder of a repository selects the sessions in its worktrees, and a worktree only its own."""
    places = ("/code/shop", "/code/shop.worktrees/fix-1", "/code/shop/.claude/worktrees/fix-2")
    every = [history.say(str(number), Said("kettle"), cwd=cwd)[0] for number, cwd in enumerate(places)]
    history.say("other", Said("kettle"), cwd="/code/shop-2")

    assert sorted(history.ids("kettle", filters=Filters(projects=("/code/shop",)))) == [f"ex-{key}" for key in every]
    assert history.ids("kettle", filters=Filters(projects=places[1:2])) == [f"ex-{every[1]}"]


def test_filters_find_both_unicode_forms(history: History) -> None:
    """Projects and files are found in either form of their names, however they were recorded."""
    forms = [unicodedata.normalize(form, "/Users/demo/Größe") for form in ("NFC", "NFD")]
    every = [
        history.say(str(number), Said("kettle", writes=(f"{folder}/Öl.md",)), project=Path(folder).name, cwd=folder)[0]
        for number, folder in enumerate(forms)
    ]
    for spelled in forms:
        for filters in (
            Filters(projects=(spelled,)),
            Filters(projects=(Path(spelled).name,)),
            Filters(files=(f"{spelled}/Öl.md",)),
            Filters(files=(unicodedata.normalize("NFD", "Öl.md"),)),
            Filters(files=(unicodedata.normalize("NFD", "Ö*.md"),)),
        ):
            assert sorted(history.ids("kettle", filters=filters)) == [f"ex-{key}" for key in every], filters


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

    assert set(archive.ids("kettle", mode=Mode.TEXT, filters=wanted)) == found
    for mode in (Mode.BOTH, Mode.VECTOR):
        assert set(archive.ids("kettle", mode=mode, filters=wanted)) <= set(archive.ids("kettle", mode=mode))


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
