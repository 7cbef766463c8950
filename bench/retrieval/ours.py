"""Palaver's search in conversations as an engine."""

import tarfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.query import LIMIT_MAX, PER_SESSION, Query
from palaver.core.results import Hit
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch

from ..shared import parents_of_subagents
from .bench_home import BenchHome
from .corpus import Corpus, Passage, Ranked, Searcher


class Ours(Searcher):
    """Palaver's search in a new home.

    The transcripts of a corpus are archived as usual, and the items are their sessions. In a corpus without
    transcripts, each passage is stored as the prompt of an exchange, and each project is a session.
    """

    def __init__(self, corpus: Corpus, kept: Path | None = None) -> None:
        """Archive the corpus, or reuse its home in the folder `kept`."""
        self._bench_home = BenchHome(corpus, kept)
        self.home = self._bench_home.home
        self._items = [passage.item for passage in corpus.passages] if corpus.transcripts is None else None
        with Pipeline(self.home) as pipeline:
            pipeline.run([] if self._bench_home.known else self._store(corpus))
        self._parents = parents_of_subagents(self.home)
        self._layers = ArchiveSearch(self.home)

    def _store(self, corpus: Corpus) -> list[Transcript]:
        """Return the transcripts to archive. For a corpus without transcripts, store its passages."""
        if corpus.transcripts is not None:
            return in_paths([_unpacked(corpus.transcripts, self._bench_home.root / "history")])
        with Store.open(self.home.database) as store:
            _store_passages(store, corpus.passages)
        return []

    def item_of(self, store: Store, key: int) -> str | None:
        """Return the item of an event, or None if it was deleted."""
        stored = store.exchanges.load([key]).get(key)
        if stored is None:
            return None
        if self._items is not None:
            return self._items[stored.exchange.span.start_line - 1]
        return self._main_session(store.sessions.load(stored.session).native_id)

    def _main_session(self, session_id: str) -> str:
        """Return the ID of a session or, for a sub-agent, of its parent."""
        return self._parents.get(session_id, session_id)

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Return up to `limit` distinct items, best first."""
        best: dict[str, float] = {}
        for hit in self.find(query, min(limit, LIMIT_MAX), project):
            best.setdefault(self.item(hit), hit.score)
        return [Ranked(item, score) for item, score in best.items()]

    def find(self, query: str, limit: int, project: str | None = None, also: Sequence[str] = ()) -> Sequence[Hit]:
        """Return the hits of the first page. `also` are other wordings of the query."""
        # In a corpus without transcripts, the items of a session are distinct results.
        per_session = PER_SESSION if self._items is None else 0
        projects = (project,) if project else ()
        wanted = Query.parse(query, limit=limit, projects=projects, per_session=per_session, also=also)
        return self._layers.find(wanted).hits

    def item(self, hit: Hit) -> str:
        """Return the item of a hit."""
        return self._main_session(hit.session_id) if self._items is None else self._items[hit.start_line - 1]


def _unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def _store_passages(store: Store, passages: Sequence[Passage]) -> None:
    """Store each passage as an exchange. The line of the exchange is the position of the passage in the corpus."""
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
