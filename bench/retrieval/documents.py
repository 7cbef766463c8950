"""Palaver's document search as an engine."""

from collections.abc import Sequence
from pathlib import Path

from palaver.archiver.store import Store
from palaver.observe.archive import Archive

from .bench_home import BenchHome
from .corpus import Corpus, Ranked, Searcher


class OurDocuments(Searcher):
    """Document search in a new home, with each passage as a file. A file ranks by its best chunk."""

    def __init__(self, corpus: Corpus, kept: Path | None = None) -> None:
        """Index the corpus, or reuse its home in the folder `kept`."""
        self._bench_home = BenchHome(corpus, kept)
        self.home, root = self._bench_home.home, self._bench_home.root
        self._items = {f"{number:06}{corpus.suffix}": passage.item for number, passage in enumerate(corpus.passages)}
        self._documents = Archive(self.home).documents([root])
        if not self._bench_home.known:
            (root / "files").mkdir()
            for name, passage in zip(self._items, corpus.passages, strict=True):
                (root / "files" / name).write_text(passage.text, "utf-8", "replace")
            self._documents.index_directory(root / "files", async_mode=False)

    def item_of(self, store: Store, key: int) -> str | None:
        """Return the item of an event, or None if it was deleted."""
        held = store.documents.load([key]).get(key)
        return self._items[held.source_file.name] if held else None

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:  # noqa: ARG002 - one project
        """Return up to `limit` distinct items, best first."""
        best: dict[str, float] = {}
        for found in self._documents.search(query, limit=limit):
            best.setdefault(self._items[found.stored.source_file.name], found.score)
        return [Ranked(item, score) for item, score in best.items()]
