"""Tests of vector search."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.store import StoredVector
from palaver.search.index import vector_index
from palaver.search.index import vector_index as vector_graph
from palaver.search.index.matches import Flags, Integers, VectorMatches
from palaver.search.index.vector_index import Array, TokenBits, VectorGraph, VectorIndex, packed
from palaver.search.model.embedding import TOKEN_DIMENSIONS, TokenVectors

WIDTH = 24


def unit(seed: int) -> Array:
    vector = np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def stored(item: int, event: int | None = None, part: int = 0, vector: Array | None = None) -> StoredVector:
    data = unit(item * 1_000 + part) if vector is None else vector
    signs = packed(tokens(item * 1_000 + part))
    return StoredVector(item, item if event is None else event, part, data.astype("<f2").tobytes(), signs)


def tokens(seed: int) -> TokenVectors:
    return np.random.default_rng(seed).standard_normal((1 + seed % 3, TOKEN_DIMENSIONS)).astype(np.float32)


def index(*vectors: StoredVector) -> VectorIndex:
    return VectorIndex().changed([], vectors)


def published(folder: Path, before: VectorIndex, gone: Iterable[int], added: Iterable[StoredVector]) -> VectorIndex:
    """Save the index after a change, which is written in small batches, in a new folder, and open it."""
    ordered = sorted(added, key=lambda vector: (vector.event, vector.item))
    batches = [ordered[start : start + 7] for start in range(0, len(ordered), 7)]
    folder.mkdir()
    with TemporaryDirectory(dir=folder.parent) as parts:
        before.rewritten(gone, batches, Path(parts) / "parts").save(folder)
    return VectorIndex.open(folder)


def expected(query: Array, items: Iterable[int]) -> list[int]:
    return sorted(items, key=lambda item: -float(unit(item * 1_000) @ query))


def items(found: VectorMatches) -> list[int]:
    keys: list[int] = found.item.tolist()
    return keys


def flags(items: Iterable[int]) -> Flags:
    """Return an array of flags by item key, just long enough for the highest key."""
    wanted = list(items)
    flagged = np.zeros(max(wanted, default=0) + 1, dtype=bool)
    flagged[wanted] = True
    return flagged


def test_similarity_is_a_true_cosine() -> None:
    """Similarities are cosines from -1 to 1, exact to float16, in descending order."""
    query = unit(7)
    made = index(*(stored(item) for item in range(50)), stored(50, vector=query), stored(51, vector=-query))

    found = made.nearest(query, 60)

    assert items(found)[0] == 50
    assert items(found)[-1] == 51
    assert items(found)[1:-1] == expected(query, range(50))
    for place in range(1, 51):
        assert found.similarity[place] == pytest.approx(float(unit(int(found.item[place]) * 1_000) @ query), abs=2e-3)
    assert -1 <= found.similarity[-1] <= -0.999
    assert 0.999 <= found.similarity[0] <= 1


@given(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)), st.integers(1, 40))
@settings(max_examples=40)
def test_only_allowed_items_are_found(allowed: set[int], gone: set[int], limit: int) -> None:
    """Items that are not allowed or were removed are never found. All others are found in order."""
    made, query = index(*(stored(item) for item in range(40))).changed(gone, []), unit(1)

    assert items(made.nearest(query, limit, flags(allowed))) == expected(query, allowed - gone)[:limit]
    assert items(made.nearest(query, limit)) == expected(query, set(range(40)) - gone)[:limit]


def late_interaction(item: int) -> float:
    """Return the late interaction of the item with the query tokens of seed 7."""
    return float(TokenBits.of([packed(tokens(item * 1_000))]).similarity(tokens(7))[0])


changes = st.lists(st.tuples(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.booleans()), max_size=8)


@given(changes)
@settings(max_examples=40)
def test_an_index_reflects_all_changes(changes: list[tuple[set[int], set[int], bool]]) -> None:
    """After any additions, replacements and removals, in any number of segments, exactly the remaining items are
    found.
    """
    made, left, query = VectorIndex(), set[int](), unit(1)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(vector_index, "_ALWAYS", 1)
        patch.setattr(vector_index, "EXACT_UP_TO", 12)
        patch.setattr(vector_index, "_ROWS_AT_ONCE", 5)
        for number, (gone, added, publish) in enumerate(changes):
            vectors = [stored(item) for item in sorted(added)]
            if publish:
                made = published(Path(folder) / str(number), made, gone, vectors)
            else:
                made = made.changed(gone | added, vectors)
            left = (left - gone) | added

            assert len(made) == len(left)
            assert items(made.nearest(query, 50)) == expected(query, left)
            assert set(items(made.of_events(query, np.arange(31)))) == left
            close = made.late_interaction(tokens(7), unit(3), np.array([(item, item, 0) for item in range(31)]).T)
            assert close == pytest.approx(
                [late_interaction(item) if item in left else np.nan for item in range(31)], abs=1e-6, nan_ok=True
            )


def test_the_best_vectors_of_each_item() -> None:
    """The search returns, for each item of an event, the vector of part 0 and the best other vector."""
    query = unit(3)
    made = index(
        stored(1, part=0),
        stored(1, part=1, vector=query),
        stored(1, part=2),
        stored(2, event=1, part=0, vector=-query),
        stored(3),
        stored(4),
    )

    compared = made.changed([4], []).of_events(query, np.array([1, 4]))
    rows: list[list[int]] = compared.rows.T.tolist()
    similarities: list[float] = compared.similarity.tolist()
    found = {tuple(row): similarity for row, similarity in zip(rows, similarities, strict=True)}

    assert set(found) == {(1, 1, 0), (1, 1, 1), (2, 1, 0)}
    assert found[1, 1, 1] == pytest.approx(1, abs=1e-3)
    assert found[2, 1, 0] == pytest.approx(-1, abs=1e-3)


def test_an_item_has_the_late_interaction_of_its_best_text(tmp_path: Path) -> None:
    """An item has the highest late interaction of its texts, even if other texts have nearer vectors. Unknown items
    and items without token embeddings have NaN. An index that is opened from disk gives the same values.
    """
    tokenless = StoredVector(9, 9, 0, stored(9).data)
    half = StoredVector(1, 1, 3, stored(1, part=3).data)
    made = index(
        stored(1), stored(1, part=1), stored(1, part=2), half, stored(2, event=1), stored(3, event=1), tokenless
    )
    made.save(tmp_path)
    rows = np.array([(1, 1, 1), (2, 1, 0), (1, 1, 0), (9, 9, 0), (5, 5, 0)]).T
    first = max(TokenBits.of([packed(tokens(seed))]).similarity(tokens(7))[0] for seed in (1_000, 1_001, 1_002))
    other = TokenBits.of([packed(tokens(2_000))]).similarity(tokens(7))[0]

    for one in (made, VectorIndex.open(tmp_path)):
        close = one.late_interaction(tokens(7), unit(3), rows)
        assert close[:3] == pytest.approx([first, other, first], abs=1e-6)
        assert np.isnan(close[3:]).all()


def test_late_interaction_uses_the_nearest_texts_of_a_long_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the texts with the nearest vectors are compared if an event has many texts, of one or of several items."""
    monkeypatch.setattr(vector_index, "_TEXTS", 2)
    near, far = unit(3), -unit(3)
    made = index(
        *(stored(1, part=part, vector=near if part in {4, 7} else far) for part in range(9)),
        *(stored(2, part=part, vector=near) for part in range(2)),
        stored(3, event=2, vector=far),
    )

    close = made.late_interaction(tokens(7), near, np.array([(1, 1, 0), (2, 2, 0), (3, 2, 0)]).T)
    picked = [((1_000 + part) for part in (4, 7)), (2_000, 2_001)]
    assert np.isnan(close[2])
    expected = [max(TokenBits.of([packed(tokens(n))]).similarity(tokens(7))[0] for n in each) for each in picked]
    assert close[:2] == pytest.approx(expected, abs=1e-6)
    assert expected[0] < max(TokenBits.of([packed(tokens(1_000 + n))]).similarity(tokens(7))[0] for n in range(9))


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    """An index without vectors can be searched, saved and opened."""
    VectorIndex().save(tmp_path)
    made = VectorIndex.open(tmp_path)

    assert (len(made), made.dimension) == (0, 0)
    assert np.isnan(made.late_interaction(tokens(1), unit(1), np.array([[1], [1], [0]]))).all()
    assert len(made.nearest(unit(1), 5)) == len(made.of_events(unit(1), np.array([1]))) == 0


def test_an_emptied_index_accepts_new_vectors() -> None:
    """Vectors can be added after all vectors were removed."""
    emptied = index(stored(1)).changed([1], [])

    assert len(emptied) == 0
    assert items(emptied.changed([], [stored(2)]).nearest(unit(1), 5)) == [2]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0])
def test_zero_and_infinite_vectors_are_not_indexed(value: float) -> None:
    """Vectors with NaN or infinite values or with norm 0 are not indexed."""
    made = index(stored(1, vector=np.full(WIDTH, value, dtype=np.float32)), stored(2))

    assert items(made.nearest(unit(1), 5)) == [2]


def test_changes_make_a_new_index(tmp_path: Path) -> None:
    """A change returns a new index and leaves the old index unchanged, even if it is memory-mapped."""
    index(stored(1), stored(2), stored(2, part=1)).save(tmp_path)
    before = VectorIndex.open(tmp_path)

    after = before.changed([2], [stored(3)])

    assert sorted(items(before.nearest(unit(1), 5))) == [1, 2, 2]
    assert sorted(items(after.nearest(unit(1), 5))) == [1, 3]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that 100 vectors get a graph and every search uses it."""
    monkeypatch.setattr(vector_index, "EXACT_UP_TO", 100)
    monkeypatch.setattr(vector_index, "_SCAN_OR_WALK", 0.1)


@pytest.mark.usefixtures("small_limits")
def test_many_vectors_are_found_through_a_graph(tmp_path: Path) -> None:
    """Above the limit of the exact scan, a graph gives nearly the same results, under wide and narrow filters."""
    first = published(tmp_path / "one", VectorIndex(), [], [stored(item) for item in range(1_000)])
    made, narrow = first.changed([1, 2, 3], []), set(range(90))

    shares: list[float] = []
    for seed in range(20):
        query = unit(-seed % 9_999)
        for allowed in (set(range(1_000)), set(range(600)), narrow):
            found = items(made.nearest(query, 10, flags(allowed)))
            left = allowed - {1, 2, 3}
            assert set(found) <= left
            shares.append(len(set(found) & set(expected(query, left)[:10])) / 10)

    assert (tmp_path / "one" / "0" / "graph.usearch").exists()
    assert sum(shares) / len(shares) > 0.95


def test_a_larger_graph_is_searched_more_widely(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in a larger graph visits more candidates, so its recall stays high."""
    drawn = np.random.default_rng(7).standard_normal((3_000, 64)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    asked, rows = drawn[:50], drawn[50:]
    made, nearest = VectorGraph.of(rows.astype(np.float16)), [np.argsort(-(rows @ row))[:100] for row in asked]

    def share() -> float:
        found = [made.near(row.astype(np.float16), 100, 100) for row in asked]
        return float(np.mean([np.isin(exact, near).mean() for exact, near in zip(nearest, found, strict=True)]))

    monkeypatch.setattr(vector_graph, "_CANDIDATES", 1)
    before = share()
    monkeypatch.setattr(vector_graph, "_SMALL", 5)

    assert before < 0.95 < share()


@pytest.mark.usefixtures("small_limits")
def test_a_filter_that_removes_all_candidates(tmp_path: Path) -> None:
    """If the filter removes all candidates of the graph, allowed items are still found."""
    query = unit(1)
    near = [stored(item, vector=(query + unit(item) / 50).astype(np.float32)) for item in range(500)]
    away = [stored(item, vector=(unit(item) / 50 - query).astype(np.float32)) for item in range(500, 1_000)]
    made = published(tmp_path / "one", VectorIndex(), [], [*near, *away])

    found = made.nearest(query, 10, flags(range(500, 1_000)))

    assert len(found) == 10
    assert set(items(found)) <= set(range(500, 1_000))


@pytest.mark.usefixtures("small_limits")
def test_unchanged_segments_are_shared(tmp_path: Path) -> None:
    """A few changes write only a few rows. Other segments keep their matrix and graph files."""
    made = published(tmp_path / "one", VectorIndex(), [], [stored(item) for item in range(2_000)])

    again = published(tmp_path / "two", made, [5], [stored(number) for number in range(5_000, 5_010)])

    for name in ("vectors.npy", "rows.npy", "graph.usearch", "signs.npy", "tokens.npy"):
        assert (tmp_path / "two" / "0" / name).samefile(tmp_path / "one" / "0" / name)
    assert len(again) == 2_009
    assert 5 not in items(again.nearest(unit(5_000), 2_009))
    assert items(again.nearest(unit(5_000_000), 1)) == [5_000]


@pytest.mark.usefixtures("small_limits")
def test_a_segment_with_many_removed_rows_is_rewritten(tmp_path: Path) -> None:
    """A segment is rewritten without removed rows when these exceed a quarter of its rows."""
    made = published(tmp_path / "one", VectorIndex(), [], [stored(item) for item in range(2_000)])

    published(tmp_path / "two", made, range(600), [])

    assert not (tmp_path / "two" / "0" / "alive.npy").exists()
    kept = {packed(tokens(item * 1_000)) for item in range(600, 2_000)}
    assert len((tmp_path / "two" / "0" / "signs.npy").read_bytes()) == 128 + sum(map(len, kept))
    assert np.load(tmp_path / "two" / "0" / "rows.npy").shape == (3, 1_400)


def test_a_process_that_searches_can_embed() -> None:
    """A new process that searches a graph first can then load the packaged model."""
    program = (
        "import numpy\n"
        "from palaver.search.index.vector_index import VectorGraph\n"
        "VectorGraph.of(numpy.ones((9, 9), dtype='f2')).near(numpy.ones(9, dtype='f2'), 1, 1)\n"
        "from palaver.search.model.embedder import load\n"
        "print(load().embed(['a text']).shape)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "(1, 384)\n", "")


@given(
    st.sets(st.integers(0, 209), min_size=1),
    st.sets(st.integers(0, 199), max_size=40),
    st.integers(1, 30),
    st.floats(0.01, 1),
)
@settings(max_examples=50)
def test_a_filter_function_finds_the_same_as_flags(passing: set[int], gone: set[int], limit: int, share: float) -> None:
    """For any estimated share, a filter function finds the same items as flags, or the search returns None."""
    made = index(*(stored(item) for item in range(200))).changed(gone, [])
    made = made.changed([], [stored(item) for item in range(200, 210)])
    query = unit(7)

    found = made.nearest_passing(query, limit, share, lambda items: np.isin(items, list(passing)))

    if found is not None:
        assert items(found) == items(made.nearest(query, limit, flags(passing)))


def test_the_nearest_candidates_are_filtered_first() -> None:
    """The filter function gets only as many candidates as needed, nearest first, and more if all of them fail."""
    made, query, asked = index(*(stored(item) for item in range(200))), unit(7), list[int]()

    def accepts(items: Integers) -> Flags:
        asked.extend(items.tolist())
        return np.isin(items, passing)

    order = items(made.nearest(query, 200))
    passing = order[::2]
    assert made.nearest_passing(query, 50, 1 / 2, accepts) is not None
    assert 100 <= len(asked) < 150
    assert asked == order[: len(asked)]
    asked.clear()
    passing = order[100:150]
    found = made.nearest_passing(query, 50, 1 / 2, accepts)
    assert found is not None
    assert (items(found), asked) == (passing, order[:150])


@pytest.mark.usefixtures("small_limits")
def test_candidates_of_a_graph_are_filtered(tmp_path: Path) -> None:
    """With a graph, a filter function finds nearly the same items as a scan, and only items that pass."""
    first = published(tmp_path / "one", VectorIndex(), [], [stored(item) for item in range(4_000)])
    made, left = first.changed([1, 2, 3], []), set(range(4, 2_000))

    shares: list[float] = []
    for seed in range(20):
        query = unit(-seed % 9_999)
        found = made.nearest_passing(query, 10, 0.5, lambda items: items < 2_000)
        assert found is not None
        assert set(items(found)) <= left | {0}
        shares.append(len(set(items(found)) & set(expected(query, left | {0})[:10])) / 10)

    assert sum(shares) / len(shares) > 0.95
