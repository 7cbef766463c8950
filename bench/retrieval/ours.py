"""Palaver itself as an engine, through its public interface."""

import tarfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.archiver.intake.transcripts import Transcript, in_paths
from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.disclosure import LIMIT_MAX, Hit, Query
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline
from palaver.search.layers import Layers

from .corpus import Corpus, Passage, Ranked, Searcher


class Ours(Searcher):
    """Palaver with a corpus in a fresh home, asked for as much as it gives.

    A corpus with `transcripts` is archived as a person's history would be, and the hits' sessions are the items. In
    any other corpus each passage is a prompt of its own in the history of its project.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._folder = TemporaryDirectory(prefix="palaver-bench-")
        home = Home(Path(self._folder.name) / "home")
        home.make()
        self._items: list[str] | None = None
        if corpus.transcripts is None:
            self._items = [passage.item for passage in corpus.passages]
            with Store.create(home.database) as store:
                _store(store, corpus.passages)
            found: list[Transcript] = []
        else:
            found = in_paths([_unpacked(corpus.transcripts, Path(self._folder.name) / "history")])
        with Pipeline(home) as pipeline:
            pipeline.run(found)
        self._layers = Layers(home)

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Items, each at most once, best first."""
        wanted = Query.parse(query, limit=min(limit, LIMIT_MAX), projects=(project,) if project else ())
        best: dict[str, float] = {}
        for hit in self._layers.search(wanted).hits:
            best.setdefault(self._item(hit), hit.score)
        return [Ranked(item, score) for item, score in best.items()]

    def _item(self, hit: Hit) -> str:
        return hit.session_id if self._items is None else self._items[hit.start_line - 1]


def _unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def _store(store: Store, passages: Sequence[Passage]) -> None:
    """Each passage as an exchange whose line is its place in the corpus."""
    numbered = enumerate(passages, 1)
    with store.transaction():
        for project, of_one in groupby(numbered, key=lambda pair: pair[1].project):
            session = store.sessions.save(Session("bench", f"bench-{project}", project=project))
            source = store.sources.save(_source(project))
            exchanges = [_exchange(place, line, passage) for place, (line, passage) in enumerate(of_one)]
            store.exchanges.replace(session, source, 0, exchanges)


def _source(project: str) -> Source:
    name = f"bench/{project}.jsonl"
    return Source("bench", Path("/") / name, name, device=0, inode=0, mtime=0, size=0, head=b"", tail=b"")


def _exchange(place: int, line: int, passage: Passage) -> Exchange:
    turn = Turn(line, Speaker.HUMAN, Kind.PROMPT, passage.text)
    return Exchange(place, Span(line, line, 0, 0), (turn,), None, None)
