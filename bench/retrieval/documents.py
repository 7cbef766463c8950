"""Palaver's documents as an engine, through the interface that its tools call."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.core.home import Home
from palaver.search.library import Documents

from .corpus import Corpus, Ranked, Searcher


class OurDocuments(Searcher):
    """A corpus of files in a fresh home: each passage is a file, indexed as a folder of them is, and an item its files.

    A file is found as its best chunk is.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._folder = TemporaryDirectory(prefix="palaver-bench-")
        root = Path(self._folder.name)
        self._items: dict[str, str] = {}
        (root / "files").mkdir()
        for number, passage in enumerate(corpus.passages):
            name = f"{number:06}{corpus.suffix}"
            (root / "files" / name).write_text(passage.text, "utf-8", "replace")
            self._items[name] = passage.item
        self._documents = Documents.open(Home(root / "home"), [root])
        self._documents.index_directory(root / "files", async_mode=False)

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:  # noqa: ARG002 - one project
        """Items, each at most once, best first."""
        best: dict[str, float] = {}
        for found in self._documents.search(query, limit=limit):
            best.setdefault(self._items[found.held.source_file.name], found.score)
        return [Ranked(item, score) for item, score in best.items()]
