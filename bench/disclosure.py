"""Measure the token cost of each layer on real sessions: `python -m bench.disclosure`.

It archives the 98 sessions and the samples in temporary homes. The queries are the questions of the benchmark, and the
titles of the sample sessions.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from msgspec import Struct, field

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.core.tokens import count
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.quote import line
from palaver.templates.render import Renderer

from .retrieval.sets import coding_sessions
from .shared import SetMissing, samples, transcripts, unpack
from .table import table, write_section

_HEADER = [
    *("", "queries", "hits", "tokens per hit", "maximum of a page", "median tokens of a title", "truncated titles"),
    *("tokens per observation", "tokens per excerpt"),
]


class Costs(Struct):
    """Token costs of replies.

    Attributes:
        lists: Number of hits and tokens of each page of hits.
        titles: Tokens of the complete title of each hit.
        truncated: Number of titles that a page truncates.
        details: Tokens of each reply with details.
        excerpts: Tokens of each transcript excerpt.
    """

    lists: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    titles: list[int] = field(default_factory=list[int])
    truncated: int = 0
    details: list[int] = field(default_factory=list[int])
    excerpts: list[int] = field(default_factory=list[int])

    @property
    def per_hit(self) -> float:
        """Mean tokens per hit, including the heading and the last lines of a page."""
        return sum(cost for _, cost in self.lists) / sum(hits for hits, _ in self.lists)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.disclosure", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        text = table(_HEADER, list(_rows()))
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(text)
    if chosen.write:
        write_section("Disclosure", f"`python -m bench.disclosure --write`\n\n{text}")
    return 0


def measured(home: Home, questions: Sequence[str]) -> Costs:
    """Return the token costs of these queries: the page of hits, the details of the first hit, and its lines."""
    costs, page = Costs(), Renderer()
    with ArchiveSearch(home) as layers:
        for question in questions:
            found = layers.find(Query.parse(question))
            if not found.hits:
                continue
            shown, titles = page.search(found), [line(hit.title) for hit in found.hits]
            costs.lists.append((len(found.hits), count(shown)))
            costs.titles += map(count, titles)
            costs.truncated += sum(f" {title}\n" not in shown for title in titles)
            [first] = layers.details([found.hits[0].id])
            costs.details.append(count(page.observations([first])))
            if first.end_line:
                costs.excerpts.append(count(page.read(layers.read(first.path, first.start_line, first.end_line))))
    return costs


def _rows() -> Iterator[Sequence[str]]:
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        root = Path(folder)
        sessions = _archived(unpack(transcripts(), root / "history"), root / "home")
        yield _row("98 sessions", measured(sessions, [each.text for each in coding_sessions().questions]))
        others = _archived([samples()], root / "samples")
        yield _row("samples", measured(others, _titles(others)))


def _row(name: str, costs: Costs) -> Sequence[str]:
    return [
        name,
        str(len(costs.lists)),
        str(sum(hits for hits, _ in costs.lists)),
        f"{costs.per_hit:.1f}",
        f"{max(cost / hits for hits, cost in costs.lists if hits > 1):.1f}",
        f"{median(costs.titles):.0f}",
        f"{costs.truncated / len(costs.titles):.0%}",
        f"{mean(costs.details):.0f}",
        f"{mean(costs.excerpts):.0f}",
    ]


def _archived(paths: Sequence[Path], root: Path) -> Home:
    home = Home(root)
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths(paths))
    return home


def _titles(home: Home) -> list[str]:
    with Store.open(home.database) as store:
        titles = {store.sessions.load(source.session).title for source in store.sources.all() if source.session}
    return sorted(title for title in titles if len(title) > 1)


if __name__ == "__main__":
    sys.exit(main())
