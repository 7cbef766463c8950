"""Theo's documents: files taken up, counted and deleted."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...core.document import FailedFile
from ...core.errors import InvalidInput
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import GOLDEN_RULE
from ...templates.quote import clean
from ..toolset import Reply
from .desk import TheoDesk
from .envelope import done

Namespace = Annotated[str, Field(description="A name for what belongs together")]


def index_file(
    desk: TheoDesk,
    file_path: Annotated[str, Field(description=".md, .markdown, .txt, .py or .pdf")],
    namespace: Namespace = "default",
) -> Reply:
    """Take a file up so that it can be searched. Its chunks replace those of before; an unchanged file keeps them."""
    indexed = desk.documents.index_file(file_path, namespace)
    ids = list(indexed.chunk_ids)
    return done(
        {
            "chunks_created": 0 if indexed.unchanged else len(ids),
            "source_file": clean(str(indexed.source_file)),
            "namespace": indexed.namespace,
            "chunk_ids": ids,
            "unchanged": indexed.unchanged,
        }
    )


def index_directory(
    desk: TheoDesk,
    dir_path: Annotated[str, Field(description="Folder to scan")],
    recursive: Annotated[bool, Field(description="Scan its subfolders too")] = True,
    namespace: Namespace = "default",
    async_mode: Annotated[bool, Field(description="Queue what takes long; false waits for all embeddings")] = True,
) -> Reply:
    """Index every supported file of a folder. Unchanged files are skipped, and so are files that cannot be read."""
    if not dir_path.strip():
        raise InvalidInput("dir_path cannot be empty", hint='Give a folder, such as "docs" or ".".')
    indexed = desk.documents.index_directory(dir_path, namespace, recursive=recursive, async_mode=async_mode)
    desk.embed_waiting(indexed)
    return done(
        {
            "files_indexed": indexed.indexed,
            "total_chunks": indexed.chunks,
            "failed_files": _failed(indexed.failed),
            "skipped_duplicates": indexed.unchanged,
            "queued": indexed.queued,
            "waiting_for_embedding": indexed.unembedded,
        }
    )


def delete_chunks(desk: TheoDesk, ids: Annotated[list[str], Field(description="chunk_… IDs from search")]) -> Reply:
    """Delete these chunks. Indexing their files again brings them back."""
    deleted = list(desk.documents.delete([held.id for held in desk.documents.get(ids)]))
    return done({"deleted_count": len(deleted), "deleted_ids": deleted})


def delete_file(desk: TheoDesk, source_file: Annotated[str, Field(description="As search tells it")]) -> Reply:
    """Delete all chunks of a file, from the index only: the file stays."""
    return done({"deleted_count": desk.documents.delete_file(Path(source_file)), "source_file": source_file})


def clear_index(desk: TheoDesk, confirm: Annotated[bool, Field(description="Must be true: all documents go")]) -> Reply:
    """Delete all documents from the index. Memories, conversations and the files themselves stay."""
    if not confirm:
        raise InvalidInput("Safety check: Set confirm=True to delete all documents")
    deleted = desk.documents.clear()
    return done({"deleted_count": deleted, "memories_kept": desk.core.count()})


def get_index_stats(desk: TheoDesk) -> Reply:
    """How much is indexed and remembered. `total_documents` counts chunks."""
    stats, memories = desk.documents.stats(), desk.core
    namespaces = {**stats.namespaces, **memories.count_by("namespace")}
    return done(
        {
            "total_documents": stats.chunks,
            "unique_sources": len(stats.source_files),
            "source_files": [clean(str(path)) for path in stats.source_files],
            "namespaces": sorted(namespaces),
            "memory_count": memories.count(),
            "golden_rule_count": memories.count(MemoryFilter(types=(GOLDEN_RULE,))),
            "queued": stats.queued,
            "waiting_for_embedding": stats.unembedded,
            "failed_files": _failed(stats.failed),
        }
    )


def _failed(files: Iterable[FailedFile]) -> list[dict[str, str]]:
    return [{"file": clean(str(each.file)), "error": clean(each.error)} for each in files]
