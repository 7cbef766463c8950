"""Palaver homes of benchmark runs."""

from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.archiver.store import Store
from palaver.core.home import Home

from .corpus import Corpus


class BenchHome:
    """Folder with the home of a corpus: a temporary folder, or a folder in `kept` that later runs reuse."""

    def __init__(self, corpus: Corpus, kept: Path | None) -> None:
        if kept is None:
            self._temporary = TemporaryDirectory(prefix="palaver-bench-")
            kept = Path(self._temporary.name)
        self.root = kept.resolve() / corpus.name
        self.home = Home(self.root / "home")
        self.known = self.home.database.exists()
        """True if the home already contains the corpus."""
        if not self.known:
            self.root.mkdir(parents=True, exist_ok=True)
            self.home.make()
            Store.create(self.home.database).close()
