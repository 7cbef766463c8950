"""Chunks of documents as what can be found: text entries for the text index, texts for the embedder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...core.origin import Origin
from ..query.tokenizer import label, path_label
from .text_entry import TextEntry

if TYPE_CHECKING:
    from ...archiver.store import Store
    from ...core.document import HeldChunk

WINDOW = 1_500
"""Characters in one entry and in one embedded text, as of a conversation."""


def entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """The text entries of those of these items that are chunks."""
    for held in store.documents.load(keys).values():
        yield from _entries(held)


def texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """What to embed for each of these items that is a chunk, by part."""
    return {key: parts(held) for key, held in store.documents.load(keys).items()}


def parts(held: HeldChunk) -> dict[int, str]:
    """What to embed of a chunk: the headings above it with its beginning, then the rest in windows."""
    chunk = held.chunk
    told = f"{chunk.header_path}\n{chunk.text}" if chunk.header_path else chunk.text
    return dict(enumerate(told[start : start + WINDOW] for start in range(0, len(told), WINDOW)))


def _entries(held: HeldChunk) -> Iterator[TextEntry]:
    from ...core.document import ChunkKind  # most archives hold no documents

    chunk = held.chunk
    for text in parts(held).values():
        yield TextEntry(
            key=held.key,
            event=held.key,
            source=0,
            ordinal=0,
            at=held.at,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            body=text,
            kind=chunk.kind,
            in_code=int(chunk.kind is ChunkKind.CODE),
            files=(path_label(str(held.source_file)),),
            projects=(label(held.namespace),),
            origins=(Origin.DOCUMENT,),
        )
