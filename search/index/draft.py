"""The draft of a first text index, written while the archive is still being filled: both take about as long."""

import shutil
import tempfile
from pathlib import Path

from ...archiver.store import Entity, Store
from ...core.closing import Closing
from ...core.errors import IndexUnwritable
from . import indexed_texts
from .text_index import TextIndex, Writing

_SUFFIX = ".draft"
"""No number, so that a draft whose process was killed counts as older than every generation and is swept up."""


class Draft(Closing):
    """Follows a store that never held anything. Nothing depends on it: what is not published is thrown away."""

    def __init__(self, store: Store, root: Path) -> None:
        """`root` is the folder of generations, in which nothing is made before there is something to write."""
        self._store, self._root = store, root
        self._folder: Path | None = None
        self._writing: Writing | None = None
        self._watermark, self._known = 0, set[int]()
        self._useful = store.changes.last() == 0

    def follow(self) -> None:
        """Write what was stored since the last time. A disk that refuses it makes the draft useless, and no more."""
        if self._useful:
            try:
                self._follow()
            except (IndexUnwritable, OSError):
                self._useful = False

    def publish(self, folder: Path) -> bool:
        """Put a text index of everything that is stored now into a new folder; False where there is none to put."""
        self.follow()
        if not self._useful or self._writing is None or self._folder is None:
            return False
        try:
            self._writing.finish()
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
        if self._writing is None:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(_SUFFIX, dir=self._root))
            self._writing = TextIndex.make(self._folder).begin()
        self._writing.replace(self._known.intersection(changed), indexed_texts.entries(self._store, changed))
        self._known.update(changed)
        self._watermark = watermark

    def close(self) -> None:
        """Leave nothing of it behind."""
        self._useful, self._writing = False, None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
