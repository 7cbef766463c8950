"""Draft of the first text index. The first ingest run writes it while it ingests."""

import shutil
import tempfile
from pathlib import Path

from ...archiver.store import Entity, Store
from ...core.closing import Closing
from ...core.errors import IndexUnwritable
from . import indexed_texts
from .text_entry import TextWriter
from .text_index import TextIndex

_SUFFIX = ".draft"
"""Suffix of a draft's folder. The name contains no generation number, so `Generations.sweep` removes old drafts."""


class Draft(Closing):
    """Text index that is built while the first ingest run fills an empty store. `close` deletes it if unpublished."""

    def __init__(self, store: Store, root: Path) -> None:
        """Prepare a draft in `root`, the folder of generations. The first entry creates the files."""
        self._store, self._root = store, root
        self._folder: Path | None = None
        self._writer: TextWriter | None = None
        self._watermark, self._known = 0, set[int]()
        self._useful = store.changes.last() == 0

    def follow(self) -> None:
        """Write the changes of the store since the last call. After a failed write, the draft is unusable."""
        if self._useful:
            try:
                self._follow()
            except (IndexUnwritable, OSError):
                self._useful = False

    def publish(self, folder: Path) -> bool:
        """Move the complete text index to a new folder. Return False if the draft is empty or a write failed."""
        self.follow()
        if not self._useful or self._writer is None or self._folder is None:
            return False
        try:
            self._writer.finish()
            self._folder.rename(folder)
        except (IndexUnwritable, OSError):
            return False
        finally:
            self._useful = False
        return True

    def _follow(self) -> None:
        watermark = self._store.changes.last()
        changed = self._store.changes.since(self._watermark, [Entity.ITEM])
        if not changed:
            return
        if self._writer is None:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(_SUFFIX, dir=self._root))
            self._writer = TextIndex.make(self._folder).begin()
        self._writer.replace(self._known.intersection(changed), indexed_texts.entries(self._store, changed))
        self._known.update(changed)
        self._watermark = watermark

    def close(self) -> None:
        """Remove all files of the draft."""
        self._useful, self._writer = False, None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
