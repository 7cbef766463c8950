"""Compare titles with ratings by two readers: `python -m bench.titles [--fit] [--write]`."""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
from msgspec import Struct

from palaver.core.conversation import Exchange, Session
from palaver.core.text import headline
from palaver.observe.rules.exchange_analysis import analyze_exchange
from palaver.observe.rules.rule_extractor import observe
from palaver.observe.rules.titles import features, title_candidates

from . import shared
from .observations import Archive, archived, split_of
from .shared import SetMissing, transcripts, unpack
from .table import table, write_section

RATINGS = Path(__file__).with_name("title_ratings.json")
"""Ratings of candidates from 0 (misleading or empty) to 3 (states the specific result), by the hash of their text."""
_RATED = 120
"""Maximum characters of a rated line."""
_POOR = 1.0
"""Highest mean rating of a poor title."""
_SHRINKAGE, _STEPS, _RATE = 0.03, 800, 0.5
"""L2 penalty, gradient steps and step size of the fit."""


class Rated(Struct):
    """Exchange whose title candidates were rated.

    Attributes:
        split: Split of the session.
        title: Title of the first observation.
        ratings: Ratings of both readers, by the digest of the candidate.
    """

    split: str
    title: str
    ratings: dict[str, tuple[int, int]]
    exchange: Exchange

    def rating(self, text: str) -> float | None:
        """Return the mean rating of a line, or None if it was not rated."""
        found = self.ratings.get(digest(headline(text, _RATED)))
        return None if found is None else sum(found) / len(found)


def digest(text: str) -> str:
    """Return the hash that identifies a line in the file of ratings, which contains no text of the sessions."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. `--fit` also prints weights fitted to the train split."""
    parser = argparse.ArgumentParser(prog="python -m bench.titles", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="print weights fitted to the train split")
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        rated = load()
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    text = table(["300 exchanges", "train", "test"], list(_rows(rated)))
    print(text)
    if chosen.fit:
        for name, weight in fit([each for each in rated if each.split == "train"]).items():
            print(f'    "{name}": {weight:+.2f},')
    if chosen.write:
        write_section("Titles", f"`python -m bench.titles --write`\n\n{text}")
    return 0


def load() -> list[Rated]:
    """Archive the sessions and return the rated exchanges. Raises `SetMissing`."""
    rows = {(row["session"], *row["lines"]): row["ratings"] for row in orjson.loads(RATINGS.read_bytes())}
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        archives = [
            archived(unpack(transcripts(), Path(folder) / "history"), Path(folder) / "home"),
            archived([shared.samples()], Path(folder) / "samples"),
        ]
    return [each for archive in archives for each in _rated(archive, rows)]


def _rated(archive: Archive, rows: dict[Any, dict[str, tuple[int, int]]]) -> Iterator[Rated]:
    for session, stored in archive.exchanges.items():
        for each in stored:
            ratings = rows.get((session, each.exchange.span.start_line, each.exchange.span.end_line))
            observed = any(
                one.exchange == each.key and not one.summary for one in archive.observations.get(session, ())
            )
            found = observe(each.exchange, Session("", session)).observations
            if ratings is not None and observed and found:
                yield Rated(split_of(session), found[0].title, ratings, each.exchange)


def _rows(rated: Sequence[Rated]) -> Iterator[tuple[str, str, str]]:
    halves = [[each for each in rated if each.split == split] for split in ("train", "test")]
    measures = [_measures(half) for half in halves]
    for name in measures[0]:
        yield name, measures[0][name], measures[1][name]


def _measures(rated: Sequence[Rated]) -> dict[str, str]:
    chosen = [each.rating(each.title) for each in rated]
    known = [rating for rating in chosen if rating is not None]
    best = [max(sum(pair) / 2 for pair in each.ratings.values()) for each in rated]
    pairs = [pair for each in rated for pair in each.ratings.values()]
    return {
        "exchanges": str(len(rated)),
        "titles without a rating": str(len(chosen) - len(known)),
        "mean rating of the titles (0-3)": f"{sum(known) / max(1, len(known)):.2f}",
        "titles rated 1 or less": f"{sum(rating <= _POOR for rating in known) / max(1, len(known)):.1%}",
        "mean rating of the best candidates": f"{sum(best) / max(1, len(best)):.2f}",
        "best candidate rated 1 or less": f"{sum(rating <= _POOR for rating in best) / max(1, len(best)):.1%}",
        "readers agree exactly": f"{sum(first == second for first, second in pairs) / len(pairs):.1%}",
        "weighted kappa of the readers": f"{kappa(pairs):.2f}",
    }


def kappa(pairs: Sequence[tuple[int, int]]) -> float:
    """Return Cohen's kappa with quadratic weights (Cohen 1968) of two readers' ratings from 0 to 3."""
    counts = np.zeros((4, 4))
    for first, second in pairs:
        counts[first, second] += 1
    distance = (np.arange(4)[:, None] - np.arange(4)[None, :]) ** 2
    expected = counts.sum(1)[:, None] * counts.sum(0)[None, :] / counts.sum()
    return 1 - float((distance * counts).sum() / (distance * expected).sum())


def fit(rated: Sequence[Rated]) -> dict[str, float]:
    """Return the weight of each property, in descending order.

    The fit is listwise (ListNet, Cao et al. 2007). Within each exchange, the softmax of the scores approaches the
    softmax of twice the ratings. The method was preferred to ridge regression by five-fold cross-validation on the
    train split.
    """
    lists = [scored for each in rated if (scored := _scored(each))]
    names = sorted({name for scored in lists for found, _ in scored for name in found})
    matrices = [np.array([[name in found for name in names] for found, _ in scored], float) for scored in lists]
    targets = [_softmax(2 * np.array([rating for _, rating in scored])) for scored in lists]
    weights = np.zeros(len(names))
    for _ in range(_STEPS):
        pairs = zip(matrices, targets, strict=True)
        gradient = sum(matrix.T @ (target - _softmax(matrix @ weights)) for matrix, target in pairs)
        weights += _RATE * (gradient / len(lists) - _SHRINKAGE * weights)
    return dict(sorted(zip(names, map(float, weights), strict=True), key=lambda pair: -pair[1]))


def _scored(each: Rated) -> list[tuple[set[str], float]]:
    """Return the properties and the rating of each rated candidate."""
    analysis = analyze_exchange(each.exchange)
    return [
        (set(features(candidate, analysis)), rating)
        for candidate in title_candidates(analysis)
        if (rating := each.rating(candidate.text)) is not None
    ]


def _softmax(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    powers: np.ndarray[Any, Any] = np.exp(values - values.max())
    shares: np.ndarray[Any, Any] = powers / powers.sum()
    return shares


if __name__ == "__main__":
    sys.exit(main())
