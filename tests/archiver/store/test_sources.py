"""Each archived file has one row, with the outcome of every line."""

# pyright: reportPrivateUsage=false

import os
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.store import Store
from palaver.core.conversation import ResumePoint
from palaver.core.errors import StoreError

from .sample_values import source, store_session


def test_a_stored_source_is_the_same_source(store: Store) -> None:
    """Every field is loaded as it was stored, by path, by copy and by ID. Paths can contain any bytes."""
    session, _ = store_session(store)
    saved = replace(
        source("two", session),
        path=Path(os.fsdecode(b"/h/\xff.jsonl")),
        parsed=90,
        pending=10,
        lines=9,
        coverage={"parsed": 8, "blank": 1},
        resume=ResumePoint(5, 50, 2, {"parsed": 4}, sets_title=True),
    )
    number = store.sources.save(saved)

    assert saved.id == number
    assert store.sources.load(number) == saved
    assert store.sources.by_archived(saved.archived) == saved
    assert store.sources.by_path()[saved.path] == saved
    assert store.sources.session_of(number) == session


def test_saving_a_source_again_updates_its_row(store: Store) -> None:
    """A source with an ID keeps its row."""
    saved = source("one")
    number = store.sources.save(saved)
    saved.size = 200

    assert store.sources.save(saved) == number
    assert store.sources.load(number).size == 200


def test_a_superseded_source_releases_its_path(store: Store) -> None:
    """The superseded source keeps its row and copy, and a path has one current source."""
    first = source("one")
    store.sources.save(first)
    second = replace(source("one"), archived="claude-code/shop/one~2.jsonl")
    with pytest.raises(StoreError):
        store.sources.save(replace(second))

    store.sources.supersede(first)
    assert store.sources.by_path() == {}
    store.sources.save(second)

    assert store.sources.by_path() == {first.path: second}
    assert store.sources.archived_names() == {first.archived, second.archived}
    assert store.sources.by_archived(first.archived) == first


def test_a_copy_belongs_to_one_source(store: Store) -> None:
    """The schema rejects two sources with the same copy."""
    store.sources.save(source("one"))
    with pytest.raises(StoreError):
        store.sources.save(replace(source("two"), archived=source("one").archived))


def test_records_belong_to_their_first_source(store: Store) -> None:
    """A record keeps its first source when other sources repeat it. Unknown records are omitted."""
    _, one = store_session(store)
    _, two = store_session(store, "two")
    store.sources.add_records(one, {"a": 1, "b": 2})
    store.sources.add_records(two, {"b": 5, "c": 6, "quote '\"; --": 7})

    assert store.sources.locate(["a", "b", "c", "quote '\"; --", "unknown"]) == {
        "a": (one, 1),
        "b": (one, 2),
        "c": (two, 6),
        "quote '\"; --": (two, 7),
    }
    assert store.sources.locate([]) == {}


def test_any_number_of_records_is_looked_up_at_once(store: Store) -> None:
    """A single query looks up the records of a long transcript."""
    _, one = store_session(store)
    lines = {f"record-{line}": line for line in range(100_000)}
    with store.transaction():
        store.sources.add_records(one, lines)

    assert store.sources.locate([*lines, "unknown"]) == {record: (one, line) for record, line in lines.items()}


def test_lines_are_counted_over_all_sources(store: Store) -> None:
    """The counts include superseded sources, because their copies are kept."""
    assert (store.sources.totals(), store.sources.coverage()) == ((0, 0, 0, 0), Counter())
    first = replace(source("one"), parsed=90, pending=10, lines=3, coverage={"parsed": 2, "blank": 1})
    store.sources.save(first)
    store.sources.supersede(first)
    store.sources.save(replace(source("two"), parsed=100, lines=2, coverage={"parsed": 2}))

    assert store.sources.totals() == (2, 200, 5, 10)
    assert store.sources.coverage() == {"parsed": 4, "blank": 1}


def test_problems_are_kept_until_they_are_resolved(store: Store) -> None:
    """Only the latest problem of a file is kept. File names can contain any bytes."""
    bad, worse = Path(os.fsdecode(b"/h/\xff")), Path("/h/b")
    store.sources.report(worse, "first")
    store.sources.report(worse, "second")
    store.sources.report(bad, "closed")
    assert store.sources.problems() == [(worse, "second"), (bad, "closed")]

    store.sources.report(worse, None)
    assert store.sources.problems() == [(bad, "closed")]


def test_an_unknown_source_is_not_found(store: Store) -> None:
    """`at` returns None and `load` raises `KeyError`."""
    assert store.sources.by_archived("x") is None
    assert store.sources.session_of(1) is None
    with pytest.raises(KeyError):
        store.sources.load(1)
