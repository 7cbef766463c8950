"""The benchmark measures the same phases as the engine executes."""

import math
from pathlib import Path

import numpy as np
import pytest

from bench.phases import phases
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.search.index.matches import Floats, VectorMatches
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.vector_index import Array
from palaver.search.model.embedding import TokenVectors
from palaver.search.rank import engine

from ..search.history import History, Said


@pytest.mark.parametrize("clear", [True, False])
def test_late_interaction_measures_the_engines_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clear: bool
) -> None:
    """Late interaction compares the same tokens as the engine, and does not run if no result is relevant."""
    home = Home(tmp_path)
    history = History(tmp_path)
    history.say("tea", Said("brass kettle"), Said("water for tea"), Said("brass pan"))
    history.embed()
    history.publish()
    compared: list[tuple[TokenVectors, int]] = []
    compare = Snapshot.late_interaction

    def spy(view: Snapshot, query: TokenVectors, vector: Array, vector_matches: VectorMatches) -> Floats:
        compared.append((query, len(vector_matches)))
        return compare(view, query, vector, vector_matches)

    monkeypatch.setattr(Snapshot, "late_interaction", spy)
    if not clear:
        monkeypatch.setattr(engine, "_THRESHOLD", math.inf)
        monkeypatch.setattr(engine, "_RELEVANT_WORDS", math.inf)
    phases(history.store, home, history.embedder, [Query(("brass kettle",))])

    assert len(compared) == 4 * clear  # warm-up and measurement, each in phases and as a whole
    assert all(np.array_equal(query, compared[0][0]) and count == compared[0][1] for query, count in compared)
