"""Text entries and embedded texts of memories and document chunks. Archived memories are not indexed."""

from collections.abc import Iterator, Sequence

from ...archiver.store import Store
from ...core.document import ChunkKind, StoredChunk
from ...core.memory import Memory, MemoryState, StoredMemory
from ...core.origin import Origin
from ..query.tokenizer import label, path_label
from .text_entry import TextEntry

MEMORY = "memory"
"""Value of `TextEntry.kind` for memories."""
WINDOW = 1_500
"""Maximum number of characters of an entry and of an embedded text."""
OVERLAP = 200
"""Number of characters shared by consecutive entries. A phrase up to this length is therefore within one entry."""
_MEMORY_WINDOWS = 32
_NAMES = 3
"""Number of times that the name of a unit of code is added to its indexed text, so that the name has more weight.

The added names raise the MRR of text search from 0.349 to 0.361 on CoSQA and from 0.613 to 0.644 on docstrings.
Embedded texts contain no added names, which would lower the MRR on CoSQA by 0.013 (bench/RESULTS.md).
"""


def entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """Yield the text entries of the memories and chunks among these items."""
    for memory in store.memories.load(keys).values():
        if memory.state is not MemoryState.ARCHIVED:
            yield from _memory_entries(memory)
    for chunk in store.documents.load(keys).values():
        yield from _chunk_entries(chunk)


def texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """Map the key of each memory and chunk among these items to its texts to embed, by text number."""
    memories = {key: memory_parts(stored.memory) for key, stored in store.memories.load(keys).items()}
    chunks = store.documents.load(keys).items()
    return memories | {key: dict(enumerate(pieces(_chunk_text(chunk), WINDOW))) for key, chunk in chunks}


def memory_parts(memory: Memory) -> dict[int, str]:
    """Return the numbered texts to embed of a memory. Text 0 begins with the title."""
    return dict(enumerate(pieces(_memory_text(memory), WINDOW)))


def pieces(text: str, step: int) -> list[str]:
    """Split a text into pieces of at most `WINDOW` characters. Pieces begin `step` characters apart."""
    return [text[start : start + WINDOW] for start in range(0, max(min(1, len(text)), len(text) - WINDOW + step), step)]


def _memory_text(memory: Memory) -> str:
    text = f"{memory.title}\n{memory.content}" if memory.title else memory.content
    return text[: WINDOW * _MEMORY_WINDOWS]


def _chunk_text(stored: StoredChunk) -> str:
    chunk = stored.chunk
    return f"{chunk.header_path}\n{chunk.text}" if chunk.header_path else chunk.text


def _memory_entries(stored: StoredMemory) -> Iterator[TextEntry]:
    memory = stored.memory
    for text in pieces(_memory_text(memory), WINDOW - OVERLAP):
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=0,
            ordinal=0,
            at=stored.created,
            start_line=0,
            end_line=0,
            body=text,
            kind=MEMORY,
            types=(label(memory.type),),
            concepts=_labels(*memory.tags),
            projects=_labels(memory.namespace, memory.project),
            sessions=_labels(memory.session_id),
            origins=(memory.origin,),
        )


def _chunk_entries(stored: StoredChunk) -> Iterator[TextEntry]:
    chunk = stored.chunk
    names = f"{chunk.name}\n" * (_NAMES if chunk.name else 0)
    for text in pieces(names + _chunk_text(stored), WINDOW - OVERLAP):
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=0,
            ordinal=0,
            at=stored.at,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            body=text,
            kind=chunk.kind,
            in_code=int(chunk.kind is ChunkKind.CODE),
            files=(path_label(str(stored.source_file)),),
            projects=(label(stored.namespace),),
            origins=(Origin.DOCUMENT,),
            languages=_labels(stored.language),
            units=_labels(chunk.unit),
        )


def _labels(*values: str) -> tuple[str, ...]:
    """Return the distinct labels in the given order. The digest of an entry depends on this order."""
    return tuple(dict.fromkeys(text for value in values if (text := label(value))))
