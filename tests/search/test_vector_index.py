"""Are the nearest vectors found, with true cosines, and only where they may be?"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.store import StoredVector
from palaver.search import vector_index
from palaver.search.vector_index import Array, Near, VectorIndex

WIDTH = 24
NONE = frozenset[int]()


def unit(seed: int) -> Array:
    vector = np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def stored(item: int, event: int | None = None, part: int = 0, vector: Array | None = None) -> StoredVector:
    data = unit(item * 1_000 + part) if vector is None else vector
    return StoredVector(item, item if event is None else event, part, data.astype("<f2").tobytes())


def index(*vectors: StoredVector) -> VectorIndex:
    return VectorIndex.empty().changed([], vectors)


def expected(query: Array, items: Iterable[int]) -> list[int]:
    return sorted(items, key=lambda item: -float(unit(item * 1_000) @ query))


def items(found: list[Near]) -> list[int]:
    return [near.item for near in found]


def test_similarity_is_a_true_cosine() -> None:
    """Similarities are cosines from -1 to 1, exact to what float16 can hold, best first."""
    query = unit(7)
    made = index(*(stored(item) for item in range(50)), stored(50, vector=query), stored(51, vector=-query))

    found = made.nearest(query, 60, None, NONE)

    assert items(found)[0] == 50
    assert items(found)[-1] == 51
    assert items(found)[1:-1] == expected(query, range(50))
    for near in found[1:-1]:
        assert near.similarity == pytest.approx(float(unit(near.item * 1_000) @ query), abs=2e-3)
    assert -1 <= found[-1].similarity <= -0.999
    assert 0.999 <= found[0].similarity <= 1


@given(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)), st.integers(1, 40))
@settings(max_examples=40)
def test_only_allowed_and_nothing_hidden(allowed: set[int], hidden: set[int], limit: int) -> None:
    """What is not allowed or hidden is never found; what is left is found completely and in order."""
    made, query = index(*(stored(item) for item in range(40))), unit(1)

    assert items(made.nearest(query, limit, allowed, hidden)) == expected(query, allowed - hidden)[:limit]


def test_the_best_vectors_of_each_item() -> None:
    """Of each item of the wanted events the first part is compared, and the best other part."""
    query = unit(3)
    made = index(
        stored(1, part=0),
        stored(1, part=1, vector=query),
        stored(1, part=2),
        stored(2, event=1, part=0, vector=-query),
        stored(3),
        stored(4),
    )

    found = {(near.item, near.event, near.part): near.similarity for near in made.of_events(query, [1, 4], {4})}

    assert set(found) == {(1, 1, 0), (1, 1, 1), (2, 1, 0)}
    assert found[1, 1, 1] == pytest.approx(1, abs=1e-3)
    assert found[2, 1, 0] == pytest.approx(-1, abs=1e-3)


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    """An index without vectors can be asked, saved and opened."""
    VectorIndex.empty().save(tmp_path)
    made = VectorIndex.open(tmp_path)

    assert (len(made), made.dimension) == (0, 0)
    assert made.nearest(unit(1), 5, None, NONE) == made.of_events(unit(1), [1], NONE) == []


def test_an_emptied_index_takes_vectors_again() -> None:
    """An index can lose all its vectors and get others."""
    emptied = index(stored(1)).changed([1], [])

    assert len(emptied) == 0
    assert items(emptied.changed([], [stored(2)]).nearest(unit(1), 5, None, NONE)) == [2]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0])
def test_unsound_vectors_are_left_out(value: float) -> None:
    """Vectors that are not finite or have no direction are not indexed."""
    made = index(stored(1, vector=np.full(WIDTH, value, dtype=np.float32)), stored(2))

    assert items(made.nearest(unit(1), 5, None, NONE)) == [2]


def test_changing_makes_another(tmp_path: Path) -> None:
    """A change leaves the index it was made from as it was, also when that one is mapped from disk."""
    index(stored(1), stored(2), stored(2, part=1)).save(tmp_path)
    before = VectorIndex.open(tmp_path)

    after = before.changed([2], [stored(3)])

    assert sorted(items(before.nearest(unit(1), 5, None, NONE))) == [1, 2, 2]
    assert sorted(items(after.nearest(unit(1), 5, None, NONE))) == [1, 3]


def test_many_vectors_are_found_through_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit of the exact scan a graph answers, nearly as well, under wide and narrow filters alike."""
    monkeypatch.setattr(vector_index, "EXACT_UP_TO", 100)
    index(*(stored(item) for item in range(1_000))).save(tmp_path)
    made, narrow = VectorIndex.open(tmp_path), set(range(90))

    shares: list[float] = []
    for seed in range(20):
        query = unit(-seed % 9_999)
        for allowed, hidden in ((set(range(1_000)), set[int]()), (set(range(600)), {1, 2, 3}), (narrow, {5})):
            found = items(made.nearest(query, 10, allowed, hidden))
            assert set(found) <= allowed - hidden
            shares.append(len(set(found) & set(expected(query, allowed - hidden)[:10])) / 10)

    assert (tmp_path / "graph.usearch").exists()
    assert sum(shares) / len(shares) > 0.95


def test_a_process_that_searches_can_embed() -> None:
    """A fresh process that loads the vector index first can run the packaged model afterwards."""
    program = (
        "from palaver.search import vector_index\n"
        "from palaver.search.embedder import load\n"
        "print(load().embed(['a text']).shape)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "(1, 384)\n", "")
