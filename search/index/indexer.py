"""Index updates: embedding new items and publishing changes as a new generation."""

import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ...archiver.store import Embedding, Entity, Lease, Store
from ...core.errors import IndexDamaged, LeaseHeld
from ...core.runtime import Progress, never, silent
from ..model.embedding import Embedder
from . import indexed_texts
from .generation import Draft, Generation, Generations, Manifest, checksums, link_or_copy
from .text_index import TextEntry, TextIndex

LEASE = "index"
_BATCH = 32
"""Number of items embedded per transaction. Embedding them takes a few seconds."""
_TAIL = 100
"""Number of changed items above which they are published while others are still observed and embedded.

Every search indexes unpublished items in memory. 100 long exchanges take about 0.2 s of CPU time, which a search should
not exceed. Unpublished vectors are cheap: 10,000 take 0.1 s.
"""
_PROGRESS_STEP = 500
"""Number of items indexed between progress reports."""
_STALE = 0.25
"""Maximum share of changed items up to which the text index is updated. Above this share, it is rebuilt.

The same maximum applies to the share of deleted entries, because these still count in document frequencies.
"""
_REWRITTEN = {"meta.json", ".managed.json"}
"""Files of a Tantivy index that each update rewrites. All other files are immutable and shared between generations."""

MakeText: TypeAlias = Callable[[Path], int]
"""Function that builds a text index in a new folder and returns its number of entries."""


class Indexer:
    """Writer of embeddings and index generations. An interruption loses at most the current batch of embeddings."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        self._store, self._generations, self._embedder = store, generations, embedder

    def embed(
        self, progress: Progress, should_stop: Callable[[], bool] = never, among: Sequence[int] | None = None
    ) -> int:
        """Embed items that have no vectors of this model, newest first, and return the number of embedded items.

        If another process changes an item meanwhile, the new vectors of this item are discarded. The next run embeds
        it.

        Args:
            progress: Called with the number of embedded items and the total.
            should_stop: Called between batches. Embedding stops when the result is True.
            among: Items to embed, by default all.

        Raises:
            ModelUnavailable: The model cannot be loaded.
        """
        model, done = self._embedder.name, 0
        waiting = None if among is None else self._store.vectors.waiting(model, among)
        total = self._store.vectors.count_unembedded(model) if waiting is None else len(waiting)
        while not should_stop():
            before = self._store.changes.last()
            if waiting is None:
                keys = self._store.vectors.unembedded(model, _BATCH)
            else:
                keys, waiting = waiting[:_BATCH], waiting[_BATCH:]
            if not keys:
                break
            progress(done, total)
            vectors = self._embed(keys)
            with self._store.transaction():
                changed = self._store.changes.since(before, [Entity.ITEM])
                fresh = {key: vectors[key] for key in vectors.keys() - changed}
                self._store.vectors.replace(model, fresh)
            done += len(fresh)
        progress(done, total)
        return done

    @property
    def lag(self) -> int:
        """Number of changes that are not in the published index, or of all changes if no usable index exists."""
        last, usable = self._store.changes.last(), self._usable()
        return last - usable.manifest.watermark if usable else last

    def draft(self) -> Draft:
        """Return a draft of the first index. Pass it to `publish`."""
        return Draft(self._store, self._generations.root)

    def publish(self, draft: Draft | None = None) -> Generation | None:
        """Publish all changes so far. Return None if nothing changed or if another process is publishing.

        Raises:
            IndexUnwritable: The disk is full.
        """
        try:
            with self._store.leases.hold(LEASE) as lease:
                previous = self._usable()
                if previous is not None and previous.manifest.watermark == self._store.changes.last():
                    return None
                return self._publish(lease, previous, lambda folder: self._text(folder, previous, draft))
        except LeaseHeld:
            return None

    def publish_texts(self) -> None:
        """Publish all changes so far, if so many texts changed that each search would spend much time on them.

        Raises:
            IndexUnwritable: The disk is full.
        """
        usable = self._usable()
        watermark = usable.manifest.watermark if usable else 0
        if len(self._store.changes.since(watermark, [Entity.ITEM])) >= _TAIL:
            self.publish()

    def rebuild(self, progress: Progress = silent, patience: float = 0.0) -> Generation:
        """Rebuild the index from the store without a model and publish it.

        The current index stays in use during the rebuild.

        Raises:
            LeaseHeld: Another process was still publishing after `patience` seconds.
            IndexUnwritable: The disk is full.
        """
        with self._store.leases.hold(LEASE, patience) as lease:
            return self._publish(lease, None, lambda folder: self._build_text(folder, None, progress))

    def _publish(self, lease: Lease, previous: Generation | None, text: MakeText) -> Generation:
        token = secrets.token_hex(8)

        def check() -> None:
            with self._store.transaction():
                self._store.leases.check(lease)
                self._store.publications.add(token)

        return self._generations.publish(lambda folder: self._build(folder, previous, token, text), check)

    def _usable(self) -> Generation | None:
        """Return the current generation if it can be updated, or None if a rebuild is needed."""
        try:
            current = self._generations.current()
        except IndexDamaged:
            return None
        return current if current is not None and current.manifest.is_of(self._store) else None

    def _build(self, folder: Path, previous: Generation | None, token: str, text: MakeText) -> Manifest:
        watermark = self._store.changes.last()
        entries = text(folder / "text")
        dimension, count, model = self._build_vectors(folder / "vectors", previous)
        return Manifest(
            watermark=watermark,
            model=model,
            dimension=dimension,
            entries=entries,
            vectors=count,
            files=checksums(folder, previous),
            token=token,
        )

    def _text(self, folder: Path, previous: Generation | None, draft: Draft | None) -> int:
        """Use the draft as the first text index, or build the text index. Return its number of entries."""
        if previous is None and draft is not None and draft.publish(folder):
            return len(TextIndex.open(folder))
        return self._build_text(folder, previous, silent)

    def _build_text(self, folder: Path, previous: Generation | None, progress: Progress) -> int:
        keys = self._store.items.all_keys()
        changed = self._store.changes.since(previous.manifest.watermark, [Entity.ITEM]) if previous else keys
        if previous is None or len(changed) > _STALE * len(keys) or TextIndex.open(previous.text).stale > _STALE:
            folder.mkdir()
            index, changed, gone = TextIndex.make(folder), keys, list[int]()
        else:
            _share(previous.text, folder)
            index, gone = TextIndex.open(folder), changed
        index.apply(gone, self._entries(changed, progress))
        return len(index)

    def _entries(self, keys: Sequence[int], progress: Progress) -> Iterator[TextEntry]:
        for start in range(0, len(keys), _PROGRESS_STEP):
            progress(start, len(keys))
            yield from indexed_texts.entries(self._store, keys[start : start + _PROGRESS_STEP])
        progress(len(keys), len(keys))

    def _build_vectors(self, folder: Path, previous: Generation | None) -> tuple[int, int, str]:
        """Write the vectors and return their dimension, number and model.

        After a change of the model, the index keeps the vectors of the old model until all items are re-embedded.
        Vector libraries are loaded only if vectors exist, so that text becomes searchable sooner.
        """
        folder.mkdir()
        model = self._embedder.name
        if previous is None or (previous.manifest.model != model and not self._store.vectors.count_unembedded(model)):
            gone, changed, before = list[int](), None, None
            if not self._store.vectors.has(model):
                return 0, 0, model
        else:
            model, before, since = previous.manifest.model, previous.vectors, previous.manifest.watermark
            gone, changed = self._store.changes.since(since, [Entity.ITEM]), self._store.changes.since(since)
        from .vector_index import VectorIndex

        added = self._store.vectors.in_event_order(model, changed)
        parts = folder / "parts"
        vectors = (VectorIndex.open(before) if before else VectorIndex()).rewritten(gone, added, parts)
        vectors.save(folder)
        shutil.rmtree(parts)
        return vectors.dimension, len(vectors), model

    def _embed(self, keys: list[int]) -> dict[int, dict[int, Embedding]]:
        from .vector_index import stored

        texts = indexed_texts.texts(self._store, keys)
        parts = [(key, part) for key in keys for part in texts.get(key, {})]
        embeddings = self._embedder.read([texts[key][part] for key, part in parts])
        vectors: dict[int, dict[int, Embedding]] = {key: {} for key in keys}
        for (key, part), embedded in zip(parts, stored(embeddings), strict=True):
            vectors[key][part] = embedded
        return vectors


def _share(source: Path, target: Path) -> None:
    """Copy an index folder. Immutable files are hard-linked instead of copied."""
    target.mkdir()
    for path in source.iterdir():
        if path.name in _REWRITTEN:
            shutil.copy2(path, target / path.name)
        elif not path.name.endswith(".lock"):
            link_or_copy(path, target / path.name)
