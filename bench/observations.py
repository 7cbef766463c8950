"""Measure the observations of real sessions and retrieval by observations alone: `python -m bench.observations`."""

import argparse
import hashlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from msgspec import Struct
from msgspec.structs import replace

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store, StoredExchange, StoredObservation
from palaver.core.home import Home
from palaver.core.observation import Observation
from palaver.core.query import LIMIT_MAX, Query
from palaver.observe.pipeline import Pipeline
from palaver.observe.rules.rule_extractor import observe
from palaver.search.archive_search import ArchiveSearch

from . import shared
from .retrieval.corpus import Corpus, Ranked, Searcher
from .retrieval.run import run
from .retrieval.sets import coding_sessions
from .shared import PROJECT, SetMissing, find, parents_of_subagents, transcripts, unpack
from .table import table, write_section

LABELS = PROJECT / "tests" / "observe" / "rules" / "labelled.json"
NOTHING = "nothing"
Row = tuple[str, str, str]
"""Name of a measure, its value, and its target."""


class Archive(Struct, frozen=True):
    """Exchanges and observations by the native ID of their session.

    Attributes:
        confirmed: Keys of exchanges that repeat known observations.
    """

    exchanges: dict[str, list[StoredExchange]]
    observations: dict[str, list[StoredObservation]]
    titles: dict[str, str]
    """Titles of the sessions."""
    confirmed: set[int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.observations", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        text = _measured()
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(text)
    if chosen.write:
        write_section("Observations", f"`python -m bench.observations --write`\n\n{text}")
    return 0


def _measured() -> str:
    corpus = coding_sessions()
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        sessions = archived(unpack(transcripts(), Path(folder) / "history"), Path(folder) / "home")
        samples = archived([shared.samples()], Path(folder) / "samples")
        hit_rates = list(_hit_rates(corpus, Home(Path(folder) / "home")))
    rows = [*hit_rates, *_coverage(sessions), *_speed(sessions)]
    parts = [table(["98 sessions", "", "target"], rows)]
    parts.append(table(["exchanges labelled by hand", "train", "test"], _label_agreement([sessions, samples])))
    return "\n\n".join(parts)


def archived(paths: Sequence[Path], folder: Path) -> Archive:
    """Archive transcripts in a fresh home and load exchanges and observations."""
    home = Home(folder)
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths(paths))
    said: dict[str, list[StoredExchange]] = defaultdict(list)
    learned: dict[str, list[StoredObservation]] = defaultdict(list)
    titles: dict[str, str] = {}
    parents = parents_of_subagents(home)
    with Store.open(home.database) as store:
        keys = store.items.all_keys()
        for start in range(0, len(keys), 200):
            part = keys[start : start + 200]
            for stored in store.exchanges.load(part).values():
                session = store.sessions.load(stored.session)
                said[parents.get(session.native_id, session.native_id)].append(stored)
                titles[session.native_id] = session.title
            for found in store.observations.load(part).values():
                native_id = store.sessions.load(found.session).native_id
                learned[parents.get(native_id, native_id)].append(found)
        again = store.confirmations.of_observations(keys)
    return Archive(said, learned, titles, {each.exchange for every in again.values() for each in every})


def _hit_rates(corpus: Corpus, home: Home) -> Iterator[Row]:
    """Yield the hit rates of an engine that searches only observations."""
    asked = tuple(question for question in corpus.questions if {"intent", "code"} & set(question.kinds))
    found = run("observations", lambda _: Observed(home), replace(corpus, questions=asked))
    for kind, target in (("intent", 0.90), ("code", 0.85)):
        values = found.values("hit@5", kind, "all")
        yield f"`{kind}` questions, hit@5 by observations alone", f"{sum(values) / len(values):.3f}", f"{target:.2f}"


class Observed(Searcher):
    """Engine that finds sessions by their observations."""

    def __init__(self, home: Home) -> None:
        self._layers, self._parents = ArchiveSearch(home), parents_of_subagents(home)

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Return up to `limit` distinct items, best first."""
        projects = (project,) if project else ()
        wanted = Query.parse(query, limit=min(limit, LIMIT_MAX), projects=projects, kinds=("observation",))
        best: dict[str, float] = {}
        for hit in self._layers.find(wanted).hits:
            best.setdefault(self._parents.get(hit.session_id, hit.session_id), hit.score)
        return [Ranked(session, score) for session, score in best.items()]


def _coverage(archive: Archive) -> Iterator[Row]:
    queries = [orjson.loads(line) for line in find("coding-sessions", "queries.jsonl").read_bytes().splitlines()]
    named = [(query["session"], query["path"]) for query in queries if query.get("path")]
    known = {
        session: {path for one in found for path in (*one.observation.files_read, *one.observation.files_modified)}
        for session, found in archive.observations.items()
    }
    share = sum(path in known.get(session, ()) for session, path in named) / len(named)
    yield "files of `code` questions that observations contain", f"{share:.3f}", "0.85"
    learned = {one.exchange for found in archive.observations.values() for one in found} | archive.confirmed
    changed = [one.key for said in archive.exchanges.values() for one in said if one.exchange.writes]
    covered = sum(key in learned for key in changed) / len(changed)
    yield "exchanges with changed files that have an observation", f"{covered:.3f}", "1.00"
    prices = [one.tokens for found in archive.observations.values() for one in found]
    yield "observations", f"{len(prices):,}", ""
    yield "tokens per observation, mean and maximum", f"{sum(prices) / len(prices):.0f}, {max(prices)}", "500"


def _speed(archive: Archive) -> Iterator[Row]:
    from palaver.core.conversation import Session

    session = Session("bench", "bench")
    said = [one.exchange for every in archive.exchanges.values() for one in every]
    started = time.process_time()
    for exchange in said:
        observe(exchange, session)
    yield f"CPU time of the rules for {len(said)} exchanges", f"{time.process_time() - started:.1f} s", "20 s"


def _label_agreement(archives: Sequence[Archive]) -> list[Row]:
    """Compare observations with the labels. An exchange with two labels can match either label."""
    rows = orjson.loads(LABELS.read_bytes())
    labelled = {(row["session"], *row["lines"]): row["types"] for row in rows}
    splits = {split: _Tally() for split in ("train", "test")}
    for archive in archives:
        for session, said in archive.exchanges.items():
            for stored in said:
                labels = labelled.get((session, stored.exchange.span.start_line, stored.exchange.span.end_line))
                if labels:
                    found = [one.observation for one in archive.observations.get(session, ()) if _of(one, stored)]
                    splits[split_of(session)].count(labels, found, confirms=stored.key in archive.confirmed)
    measures: list[tuple[str, Callable[[_Tally], str]]] = [
        ("exchanges", lambda tally: str(tally.exchanges)),
        ("type is the first label", lambda tally: f"{tally.first / max(1, tally.typed):.3f}"),
        ("type is one of the labels", lambda tally: f"{tally.any / max(1, tally.typed):.3f}"),
        (
            "share of observations from exchanges without salient content",
            lambda tally: f"{tally.unwanted / max(1, tally.observations):.3f}",
        ),
        (
            "share of exchanges with salient content but no observation",
            lambda tally: f"{tally.missed / max(1, tally.exchanges):.3f}",
        ),
    ]
    return [(name, value(splits["train"]), value(splits["test"])) for name, value in measures]


def _of(one: StoredObservation, stored: StoredExchange) -> bool:
    return one.exchange == stored.key and not one.summary


def split_of(session: str) -> str:
    """Return the split of a session, `train` or `test`, by a hash of its ID."""
    return "test" if hashlib.sha256(session.encode()).digest()[0] >> 4 & 1 else "train"


class _Tally(Struct):
    exchanges: int = 0
    typed: int = 0
    first: int = 0
    any: int = 0
    observations: int = 0
    unwanted: int = 0
    missed: int = 0

    def count(self, labels: Sequence[str], found: Sequence[Observation], *, confirms: bool) -> None:
        """Count one exchange. Its first observation determines its type.

        An exchange that only confirms an earlier observation, such as a commit, is not counted as missed.
        """
        self.exchanges += 1
        self.observations += len(found)
        if not found:
            self.missed += NOTHING not in labels and not confirms
        elif labels[0] == NOTHING:
            self.unwanted += len(found)
        else:
            kind = found[0].type.value
            self.typed += 1
            self.first += kind == labels[0]
            self.any += kind in labels


if __name__ == "__main__":
    sys.exit(main())
