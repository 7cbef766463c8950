"""Comparison of the published index with the store: all text entries and all vector values."""

from collections import Counter
from functools import partial

import numpy as np
from msgspec import Struct

from ...archiver.store import Entity, Store
from ...core.errors import IndexDamaged
from ...core.reports import many
from ...core.runtime import Progress, silent
from . import indexed_texts
from .generation import Generation, Generations, IndexOutdated
from .matches import Integers
from .text_index import TextIndex
from .vector_index import Segment, VectorIndex

UNINDEXED_MAX = 5_000
"""Maximum number of unindexed changes. Each search process reads them again when it starts."""
_CHECK_BATCH = 500


class IndexDifferences(Struct, frozen=True):
    """Result of a comparison.

    Attributes:
        entries: Number of entries in the text index.
        vectors: Number of vectors in the vector index.
        differences: Descriptions of the differences.
        mismatched_vectors: Keys of items whose vectors in the store do not match their texts. Each text to embed must
            have exactly one vector.
    """

    entries: int
    vectors: int
    differences: list[str]
    mismatched_vectors: list[int]


class IndexCheck:
    """Comparison of index and store. Items that change during the comparison are ignored."""

    def __init__(self, store: Store, generations: Generations) -> None:
        self._store, self._generations = store, generations

    def run(self, progress: Progress = silent) -> IndexDifferences:
        """Compare the whole index with the whole store."""
        last, keys = self._store.changes.last(), self._store.items.all_keys()
        generation, problem = self._generation(last)
        model = generation.manifest.model if generation else ""
        expected, mismatched = self._expected(keys, model, progress)
        since = partial(self._store.changes.since, generation.manifest.watermark if generation else last)
        wrong_size = set(self._store.integrity.damaged_vectors())
        vectors = [vector for vector in self._store.vectors.all(model) if vector.item not in wrong_size]
        changed, changed_vectors = set(since([Entity.ITEM])), set(since())
        mismatched = [key for key in mismatched if key not in changed_vectors]
        if generation is None:
            return IndexDifferences(0, 0, [problem] if problem and keys else [], mismatched)
        text = TextIndex.open(generation.text, read_only=self._generations.read_only).contents()
        differences = _entry_differences(expected, text, changed)
        indexed = VectorIndex.open(generation.vectors).contents()
        differences += self._vector_differences(Segment.of(vectors), indexed, changed_vectors)
        return IndexDifferences(text.total(), len(indexed), differences, mismatched)

    def _generation(self, last: int) -> tuple[Generation | None, str]:
        """Verify the checksums of the published generation and return it, or return the reason why it is unavailable.

        If another version of Palaver built the generation, return None and an empty reason.
        """
        try:
            generation = self._generations.current()
            if generation is None and self._store.publications.is_empty() and last <= UNINDEXED_MAX:
                return None, ""  # The archive is too small to need an index.
            if generation is None:
                return None, f"the index is missing, and {many(last, 'change is', 'changes are')} not indexed"
            self._generations.verify(generation)
        except IndexOutdated:
            return None, ""
        except IndexDamaged as damage:
            return None, str(damage)
        if not generation.manifest.is_of(self._store):
            return (
                None,
                "the index does not belong to this state of the archive, for example after restoring a backup",
            )
        return generation, ""

    def _expected(self, keys: list[int], model: str, progress: Progress) -> tuple[Counter[tuple[int, int]], list[int]]:
        """Return the expected (item, digest) pairs of the text index, and items with missing or superfluous vectors."""
        expected, mismatched = Counter[tuple[int, int]](), list[int]()
        for start in range(0, len(keys), _CHECK_BATCH):
            progress(start, len(keys))
            part = keys[start : start + _CHECK_BATCH]
            expected.update((entry.key, entry.digest) for entry in indexed_texts.entries(self._store, part))
            texts = indexed_texts.texts(self._store, part)
            for key, parts in self._store.integrity.vector_parts(model, part).items():
                if parts != texts.get(key, {}).keys():
                    mismatched.append(key)
        progress(len(keys), len(keys))
        return expected, mismatched

    def _vector_differences(self, stored: Segment, indexed: Segment, changed: set[int]) -> list[str]:
        skipped = np.array(sorted(changed), dtype=np.int64)
        ours = Segment.merged([stored.without(skipped)])
        theirs = Segment.merged([indexed.without(np.union1d(skipped, self._of_other_models(indexed, stored)))])
        same = (
            np.array_equal(ours.rows, theirs.rows)
            and ours.matrix.tobytes() == theirs.matrix.tobytes()
            and np.array_equal(ours.token_bits.starts, theirs.token_bits.starts)
            and np.array_equal(ours.token_bits.bits, theirs.token_bits.bits)
        )
        return [] if same else [f"vectors differ: {len(theirs)} in the index, {len(ours)} in the archive"]

    def _of_other_models(self, indexed: Segment, stored: Segment) -> Integers:
        """Return the keys of items that were already embedded again with a new model.

        The index keeps the vectors of the old model until all items are embedded again.
        """
        gone = np.setdiff1d(indexed.rows[0], stored.rows[0])
        alive = self._store.items.load(gone.tolist())
        return np.array([key for key in gone.tolist() if key in alive], dtype=np.int64)


def _entry_differences(
    expected: Counter[tuple[int, int]], indexed: Counter[tuple[int, int]], changed: set[int]
) -> list[str]:
    missing = [key for key, _ in expected - indexed if key not in changed]
    extra = [key for key, _ in indexed - expected if key not in changed]
    differences = ((missing, "missing from the index"), (extra, "not in the archive"))
    return [
        f"{label}: {many(len(keys), 'entry', 'entries')} of {many(len(set(keys)), 'item')}, such as item {min(keys)}"
        for keys, label in differences
        if keys
    ]
