"""Tests of text search and of filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.errors import IndexUnwritable
from palaver.core.observation import ObservationType
from palaver.core.query import Filters
from palaver.search.index import text_index
from palaver.search.index.text_index import TextEntry, TextIndex
from palaver.search.query.tokenizer import path_label

from ...cases import for_each
from ..history import NO_FILTERS
from ..query.test_tokenizer import HOSTILE

DAY = 86_400_000
NOWHERE = set[int]()
TYPES = [ObservationType.DECISION, ObservationType.BUG_FIX]
PATHS = ["/w/app/src/auth.ts", "/w/app/auth.ts", "/w/lib/api/auth.ts", "/w/lib/tests/unauth.ts"]


@dataclass(frozen=True)
class Fields:
    """Fields of an entry that filters use."""

    at: int = 0
    types: Sequence[str] = ()
    concepts: Sequence[str] = ()
    projects: Sequence[str] = ()
    files: Sequence[str] = ()

    def entry(self, key: int, body: str = "word") -> TextEntry:
        return TextEntry(
            key,
            key,
            source=1,
            ordinal=key,
            at=self.at,
            start_line=key,
            end_line=key + 1,
            body=body,
            values={
                "type": self.types,
                "concept": self.concepts,
                "file": [*map(path_label, self.files)],
                "project": self.projects,
            },
        )


def entry(key: int, body: str = "word") -> TextEntry:
    return Fields().entry(key, body)


def keys(made: TextIndex, filters: Filters) -> set[int]:
    return set(made.keys(filters).tolist())


def index(*entries: TextEntry) -> TextIndex:
    made = TextIndex.make()
    made.apply([], entries)
    return made


def found(made: TextIndex, words: str, filters: Filters = NO_FILTERS, limit: int = 50) -> list[int]:
    keys: list[int] = made.search(words, filters, limit).key.tolist()
    return keys


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    """An index that cannot be written to its folder raises IndexUnwritable."""
    (tmp_path / "full").write_bytes(b"")

    with pytest.raises(IndexUnwritable):
        TextIndex.make(tmp_path / "full")


def test_any_word_matches_and_more_words_rank_higher() -> None:
    """A query needs only one matching word. Entries with more of its words rank higher."""
    made = index(entry(1, "the cache is slow"), entry(2, "the cache is evicted by a timer"), entry(3, "nothing here"))

    assert found(made, "cache eviction timer") == [2, 1]


def test_a_match_has_the_fields_of_its_entry() -> None:
    """A match has the item, event, lines and ordinal of its entry."""
    [match] = index(TextEntry(1, 2, 3, 4, 5, 6, 7, "needle")).search("needle", NO_FILTERS, 5)

    assert match[:6] == (1, 2, 3, 4, 6, 7)


def test_idf_counts_the_entries_of_all_indexes() -> None:
    """The IDF of a word counts the entries of all indexes that a search combines."""
    few, many = entry(1, "samovar tap"), [entry(key, f"kettle {key}") for key in range(2, 40)]
    alone, rest = index(few), index(*many)
    [apart] = alone.search("which kettle has a samovar", NO_FILTERS, 9)
    [beside] = alone.search("which kettle has a samovar", NO_FILTERS, 9, larger=rest)
    [whole, *_] = index(few, *many).search("which kettle has a samovar", NO_FILTERS, 9)

    assert whole.key == 1
    assert beside.fraction == pytest.approx(whole.fraction, rel=0.1)
    assert apart.fraction < whole.fraction / 2


def test_fractions_are_absolute() -> None:
    """The fraction of a match is its score divided by the highest possible score. Without the rare words it is low."""
    made = index(*(entry(n, f"common word{n}") for n in range(1, 30)), entry(30, "common zebra"))

    [alone] = made.search("zebra", NO_FILTERS, 1)
    [missing] = made.search("common unicorn", NO_FILTERS, 1)

    assert 0.4 < alone.fraction <= 1
    assert 0 < missing.fraction < 0.1


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["alpha", "alpha beta", "gamma"])), max_size=25))
@settings(max_examples=30)
def test_replaced_entries_keep_fractions_in_range(changes: list[tuple[int, str]]) -> None:
    """After many replacements each item is found once, and its share of the highest possible score is valid."""
    made = index(*(entry(n, "alpha alpha") for n in range(1, 7)))
    for key, body in changes:
        made.apply([key], [entry(key, body)])

    matches = made.search("alpha beta", NO_FILTERS, 50)

    assert len({match.key for match in matches}) == len(matches)
    assert all(0 < match.fraction <= 1 for match in matches)


def test_deletions_leave_no_negative_fractions() -> None:
    """If most deleted entries contained a word, the IDF of this word stays positive."""
    made = index(*(entry(n, "alpha beta") for n in range(1, 11)))
    made.apply(range(2, 11), [])

    [match] = made.search("alpha", NO_FILTERS, 5)

    assert (match.key, len(made)) == (1, 1)
    assert 0 < match.fraction <= 1


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_queries_have_no_syntax(query: str) -> None:
    """A query with syntax of a query language only searches its words and raises no error."""
    made = index(entry(1, "ordinary text about key and body"))

    assert found(made, query) in ([], [1])
    assert found(made, f"{query} ordinary") == [1]


def test_a_query_cannot_name_a_field() -> None:
    """A query such as `field:value` searches two words."""
    made = index(Fields(concepts=["secret"]).entry(1, "x"), entry(2, "concept secret"))

    assert found(made, "concept:secret") == [2]


@for_each(
    "wanted, expected",
    [
        ("auth.ts", {0, 1, 2}),
        ("AUTH.TS", {0, 1, 2}),
        ("src/auth.ts", {0}),
        ("app/src/auth.ts", {0}),
        ("./src/auth.ts", {0}),
        ("src\\auth.ts", {0}),
        ("/w/app/auth.ts", {1}),
        ("/app/auth.ts", NOWHERE),
        ("uth.ts", NOWHERE),
        ("src", NOWHERE),
        ("", NOWHERE),
        ("\ud800\0*", NOWHERE),
    ],
)
def test_a_file_filter_matches_the_end_of_a_path(wanted: str, expected: set[int]) -> None:
    """A file filter matches the name, the last parts of the path, or the whole path."""
    made = index(*(Fields(files=[path]).entry(key) for key, path in enumerate(PATHS)))

    assert keys(made, Filters(files=(wanted,))) == expected


def test_date_ranges_are_half_open() -> None:
    """The first instant is included, the last is not, and undated entries are in no date range."""
    made = index(entry(1), Fields(at=DAY).entry(2), Fields(at=2 * DAY).entry(3))

    assert keys(made, Filters(after=DAY)) == {2, 3}
    assert keys(made, Filters(before=2 * DAY)) == {2}
    assert keys(made, Filters(after=DAY, before=2 * DAY)) == {2}
    assert keys(made, Filters(after=-DAY)) == {2, 3}
    assert keys(made, Filters(before=-DAY)) == set()
    assert keys(made, Filters(after=2 * DAY, before=DAY)) == set()


few = st.lists(st.sampled_from(["alpha", "beta", "gamma"]), max_size=2, unique=True)
days = st.integers(0, 4).map(lambda day: day * DAY)
types = st.lists(st.sampled_from(TYPES), max_size=2, unique=True)
files = st.lists(st.sampled_from(PATHS), max_size=2, unique=True)
entries = st.lists(
    st.builds(Fields, at=days, types=types, concepts=few, projects=few, files=files), min_size=1, max_size=8
)
filters = st.builds(
    Filters,
    after=st.none() | days,
    before=st.none() | days,
    types=st.lists(st.sampled_from(TYPES), max_size=1).map(tuple),
    concepts=few.map(tuple),
    projects=few.map(tuple),
    files=st.lists(st.sampled_from([*PATHS, "auth.ts", "src/auth.ts"]), max_size=1).map(tuple),
)


def satisfies(stored: Fields, wanted: Filters) -> bool:
    """Return whether an entry satisfies the filters, as a reference implementation."""
    return (
        (not wanted.types or any(name in stored.types for name in wanted.types))
        and (not wanted.concepts or any(name in stored.concepts for name in wanted.concepts))
        and (not wanted.projects or any(name in stored.projects for name in wanted.projects))
        and (not wanted.files or any(f"/{path}".endswith(f"/{end}") for path in stored.files for end in wanted.files))
        and (wanted.after is None or stored.at >= max(wanted.after, 1))
        and (wanted.before is None or 0 < stored.at < wanted.before)
    )


@given(entries, filters)
@settings(max_examples=60)
def test_filters_combine(stored: list[Fields], wanted: Filters) -> None:
    """Different filters combine with AND, values of one filter with OR. All search methods agree."""
    made = index(*(one.entry(key) for key, one in enumerate(stored)))
    expected = {key for key, one in enumerate(stored) if satisfies(one, wanted)}

    assert keys(made, wanted) == expected
    assert made.allowed(wanted, range(len(stored))) == expected
    assert set(found(made, "word", wanted)) == expected
    assert set(made.search("word", wanted, 50).fraction.tolist()) <= set(
        made.search("word", NO_FILTERS, 50).fraction.tolist()
    )


def test_hidden_items_are_not_found() -> None:
    """A search omits items that changed after the index was published."""
    made = index(entry(1), entry(2))

    assert made.search("word", NO_FILTERS, 5, hidden=[1]).key.tolist() == [2]


def test_few_allowed_entries_have_their_usual_scores() -> None:
    """Entries that are scored one by one, because few are allowed, have the same scores as in a full search."""
    some = ["kettle of brass", "kettle", "spoon", "brass spoon and kettle", "brass kettle, brass kettle"]
    made = index(*(Fields(projects=[f"p{key % 400}"]).entry(key, some[key % len(some)]) for key in range(1, 1_201)))
    wanted, filters = [3, 4, 400, 404], Filters(projects=("p4",))

    def scores(**narrowed: Any) -> list[tuple[int, float]]:
        found = made.search("brass kettle", NO_FILTERS, 2_000, **narrowed)
        return list(zip(found.key.tolist(), found.fraction.tolist(), strict=True))

    every = dict(scores())
    assert dict(scores(among=wanted)) == {key: every[key] for key in wanted if key in every}
    assert dict(scores(among=wanted, hidden=[4])) == {key: every[key] for key in (3, 400, 404) if key in every}
    found = made.search("brass kettle", filters, 2_000)
    sought = made.search("brass kettle", filters, 2_000, share=3 / 1_200)
    assert found.numbers.tolist() == sought.numbers.tolist()
    assert found.fraction.tolist() == sought.fraction.tolist() == [every[key] for key in found.key.tolist()]


def test_allowed_checks_the_given_items_only() -> None:
    """`allowed` returns only items from the given list."""
    made = index(Fields(concepts=["a"]).entry(1), Fields(concepts=["a"]).entry(2), entry(3))

    assert made.allowed(Filters(concepts=("a",)), [2, 3, 9]) == {2}
    assert made.allowed(Filters(concepts=("a",)), []) == set()


def test_adjacent_terms_are_scored_by_the_best_entry() -> None:
    """A pair of terms scores where the second follows the first. An item has the score of its best entry."""
    made = index(
        entry(1, "a slow cache"), entry(1, "slow cache timer"), entry(2, "the cache, slow"), entry(3, "slow cache")
    )
    pairs = {("slow", "cach"): 0.25, ("cach", "timer"): 0.75}

    assert made.adjacent_terms(pairs, [1, 2]) == {1: 1.0}
    assert made.adjacent_terms(pairs, [3]) == {3: 0.25}
    assert made.adjacent_terms(pairs, []) == made.adjacent_terms({}, [1]) == index().adjacent_terms(pairs, [1]) == {}


@pytest.mark.parametrize("singly", [0, 100])
def test_long_lists_of_items_work_like_short_lists(singly: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every item of a list is used, whether the list selects, limits or hides items."""
    monkeypatch.setattr(text_index, "_SINGLY", singly)
    made = index(*(Fields(concepts=["a"]).entry(key) for key in range(1, 7)), entry(7))

    assert made.allowed(Filters(concepts=("a",)), [2, 5, 7, 9]) == {2, 5}
    assert set(made.search("word", NO_FILTERS, 9, among=[2, 5, 7, 9]).key.tolist()) == {2, 5, 7}
    assert set(made.search("word", NO_FILTERS, 9, hidden=[2, 5, 9]).key.tolist()) == {1, 3, 4, 6, 7}
    every = made.search("word", NO_FILTERS, 9)
    scored = dict(zip(every.key.tolist(), every.fraction.tolist(), strict=True))
    for found in (made.search("word", NO_FILTERS, 9, among=[2, 5]), made.search("word", Filters(concepts=("a",)), 9)):
        assert found.fraction.tolist() == [scored[key] for key in found.key.tolist()]
        assert found.fraction.max() < 1
    assert not len(made.search("word", NO_FILTERS, 9, among=[]))


def test_a_small_share_is_returned_with_its_items() -> None:
    """If few items satisfy the filters, their share of all items is returned together with their keys."""
    made = index(*(Fields(concepts=["a"]).entry(key) for key in (2, 5)), entry(7), entry(8))
    wanted = Filters(concepts=("a",))

    share, listed = made.share(wanted, 2)

    assert listed is not None
    assert (share, sorted(listed.tolist())) == (0.5, [2, 5])
    assert made.share(wanted, 1) == (0.5, None)


def test_the_limit_keeps_the_best_entries() -> None:
    """A search with a limit returns the entries with the highest scores."""
    made = index(*(entry(n, "needle " + "hay " * n) for n in range(1, 9)))

    assert found(made, "needle", limit=3) == [1, 2, 3]


def test_an_empty_index_finds_nothing() -> None:
    """Every search of an index without entries returns nothing."""
    made = TextIndex.make()

    assert (len(made), found(made, "word"), keys(made, Filters(files=("a",)))) == (0, [], set())


def test_an_index_on_disk_can_be_reopened(tmp_path: Path) -> None:
    """An index in a folder can be opened again and updated."""
    TextIndex.make(tmp_path).apply([], [entry(1, "first")])
    again = TextIndex.open(tmp_path)
    again.apply([1], [entry(2, "second")])

    assert found(TextIndex.open(tmp_path), "first second") == [2]


def test_opening_a_folder_without_an_index_fails(tmp_path: Path) -> None:
    """Opening raises an error and creates no files."""
    with pytest.raises(ValueError, match=r"meta\.json"):
        TextIndex.open(tmp_path)

    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []
