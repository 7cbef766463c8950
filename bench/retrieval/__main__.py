"""Compare search engines on the development sets: `python -m bench.retrieval`."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from palaver.search.model.embedder import load

from ..shared import SetMissing
from ..table import write_section
from .ablation import ablation
from .baselines import BM25, RankFusion, VectorSearch
from .corpus import Corpus, Engine, Searcher
from .documents import OurDocuments
from .ours import Ours
from .report import report, times
from .rewordings import has_rewordings, reworded
from .run import Run, run
from .sets import SETS


def _vector_search(corpus: Corpus) -> Searcher:
    return VectorSearch(corpus, load())


def _rank_fusion(corpus: Corpus) -> Searcher:
    return RankFusion([BM25(corpus), _vector_search(corpus)])


def _ours(corpus: Corpus, kept: Path | None = None) -> Ours | OurDocuments:
    return OurDocuments(corpus, kept) if corpus.suffix else Ours(corpus, kept)


ENGINES: Mapping[str, Engine] = {
    "BM25 windows": BM25,
    "vectors only": _vector_search,
    "RRF": _rank_fusion,
    "Palaver": _ours,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md. Missing sets are reported and skipped."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--set", dest="sets", action="append", choices=[*SETS], help="only this set; may be repeated")
    parser.add_argument(
        "--engine", dest="engines", action="append", choices=[*ENGINES], help="only this engine; may be repeated"
    )
    parser.add_argument("--ablate", action="store_true", help="remove one part of the ranking at a time")
    parser.add_argument("--reworded", action="store_true", help="only compare queries alone and with other wordings")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep and reuse homes in FOLDER")
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    if chosen.write and (chosen.sets or chosen.engines):
        parser.error("--write requires a run with all sets and engines")
    found = list(_corpora(chosen.sets or SETS))
    if chosen.ablate:
        _ablate(found, chosen.keep, write=chosen.write)
        return 0
    if chosen.reworded:
        print("\n\n".join(_reworded(corpus, chosen.keep) for corpus in found if has_rewordings(corpus)))
        return 0
    engines: dict[str, Engine] = {**ENGINES, "Palaver": partial(_ours, kept=chosen.keep)}
    done: list[tuple[Corpus, list[Run]]] = []
    parts: list[str] = []
    for corpus in found:
        done.append((corpus, [_measured(name, engines[name], corpus) for name in chosen.engines or ENGINES]))
        parts.append(report(*done[-1]))
        if has_rewordings(corpus) and "Palaver" in (chosen.engines or ENGINES):
            parts[-1] += f"\n\n{_reworded(corpus, chosen.keep)}"
        print(f"{parts[-1]}\n", flush=True)
    if done:
        parts.append(f"### Time\n\n{times(done)}")
        print(parts[-1])
    if done and chosen.write:
        write_section("Retrieval", "\n\n".join(["`python -m bench.retrieval --write`", *parts]))
    return 0


def _corpora(names: Iterable[str]) -> Iterator[Corpus]:
    for name in names:
        try:
            yield SETS[name]()
        except SetMissing as missing:
            print(f"{name}: {missing}")


def _ablate(corpora: Sequence[Corpus], kept: Path | None, *, write: bool) -> None:
    parts: list[str] = []
    for corpus in corpora:
        parts.append(ablation(corpus, _ours(corpus, kept), load()))
        print(f"{parts[-1]}\n", flush=True)
    if parts and write:
        write_section("Ablation", "\n\n".join(["`python -m bench.retrieval --ablate --write`", *parts]))


def _reworded(corpus: Corpus, kept: Path | None) -> str:
    return f"### {corpus.name}: other wordings\n\n{reworded(corpus, Ours(corpus, kept))}"


def _measured(name: str, engine: Engine, corpus: Corpus) -> Run:
    started = time.perf_counter()
    finished = run(name, engine, corpus)
    print(f"{corpus.name}: {name} {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return finished


if __name__ == "__main__":
    sys.exit(main())
