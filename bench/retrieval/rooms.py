"""Where Palaver has the home of a run: for as long as it lasts, or from one run to the next."""

from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.archiver.store import Store
from palaver.core.home import Home

from .corpus import Corpus


class Rooms:
    """A folder for a corpus with a home in it: of this run alone, or in `kept`, where it is found again."""

    def __init__(self, corpus: Corpus, kept: Path | None) -> None:
        self._own = TemporaryDirectory(prefix="palaver-bench-")
        self.root = (kept or Path(self._own.name)).resolve() / corpus.name
        self.home = Home(self.root / "home")
        self.known = self.home.database.exists()
        """Whether the corpus is in the home already."""
        if not self.known:
            self.root.mkdir(parents=True, exist_ok=True)
            self.home.make()
            Store.create(self.home.database).close()
