"""Memories as what can be found: text entries for the text index, texts for the embedder. Archived ones are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...core.memory import Memory, MemoryState, StoredMemory
from ..query.tokenizer import label
from .text_entry import TextEntry

if TYPE_CHECKING:
    from ...archiver.store import Store

KIND = "memory"
WINDOW = 1_500
"""Characters in one entry and in one embedded text, as of a conversation."""
_PARTS_MAX = 32


def entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """Yield the text entries of those of these items that are stored memories."""
    for held in store.memories.load(keys).values():
        if held.state is not MemoryState.ARCHIVED:
            yield from _entries(held)


def texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """What to embed for each of these items that is a memory, by part."""
    return {key: parts(held.memory) for key, held in store.memories.load(keys).items()}


def parts(memory: Memory) -> dict[int, str]:
    """What to embed of a memory: its title with the beginning of its content, then the rest in windows."""
    told = f"{memory.title}\n{memory.content}" if memory.title else memory.content
    return dict(enumerate(told[start : start + WINDOW] for start in range(0, min(len(told), _MOST), WINDOW)))


_MOST = WINDOW * _PARTS_MAX


def _entries(held: StoredMemory) -> Iterator[TextEntry]:
    memory = held.memory
    for text in parts(memory).values():
        yield TextEntry(
            key=held.key,
            event=held.key,
            source=0,
            ordinal=0,
            at=held.created,
            start_line=0,
            end_line=0,
            body=text,
            kind=KIND,
            types=(label(memory.type),),
            concepts=tuple(dict.fromkeys(map(label, memory.tags))),
            projects=_labels(memory.namespace, memory.project),
            sessions=_labels(memory.session_id),
            origins=(memory.origin,),
        )


def _labels(*values: str) -> tuple[str, ...]:
    """In the order given: an entry's digest tells of the order, and another process has to come to the same."""
    return tuple(dict.fromkeys(told for value in values if (told := label(value))))
