"""Theo tools for documents: index, count and delete them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...core.document import FailedFile
from ...core.errors import InvalidInput
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import GOLDEN_RULE
from ...templates.quote import clean
from ..call_progress import REPORTER
from ..delete_question import delete_question
from ..json_reply import Rows
from ..toolset import ToolReply
from .theo_context import TheoContext
from .theo_data import (
    ClearData,
    DeleteChunksData,
    DeleteFileData,
    IndexDirectoryData,
    IndexFileData,
    IndexStatsData,
)
from .theo_replies import success_reply

_RESTORED = "Indexing the files again restores it."
"""Note in the question to the user before documents are deleted."""
_UNDO = "Index the files again with index_file or index_directory."
Namespace = Annotated[str, Field(description="Groups documents that belong together")]


def index_file(
    theo: TheoContext,
    file_path: Annotated[str, Field(description="Markdown, RST, Org, text, HTML, .ipynb, .docx, .pdf or source code")],
    namespace: Namespace = "default",
) -> ToolReply:
    """Index a file for search. New chunks replace its earlier ones. An unchanged file keeps its chunks."""
    if not file_path.strip():
        raise InvalidInput("file_path cannot be empty", hint='Give a file, such as "README.md".')
    indexed = theo.documents.index_file(file_path, namespace)
    ids = list(indexed.chunk_ids)
    return success_reply(
        IndexFileData(
            chunks_created=0 if indexed.unchanged else len(ids),
            source_file=clean(str(indexed.source_file)),
            namespace=indexed.namespace,
            chunk_ids=ids,
            unchanged=indexed.unchanged,
            truncated=indexed.truncated,
        )
    )


def index_directory(
    theo: TheoContext,
    dir_path: Annotated[str, Field(description="Folder to scan")],
    recursive: Annotated[bool, Field(description="Scan its subfolders too")] = True,
    namespace: Namespace = "default",
    async_mode: Annotated[bool, Field(description="Compute embeddings in the background; false waits for them")] = True,
) -> ToolReply:
    """Index every supported file of a folder. Unchanged and unreadable files are skipped."""
    if not dir_path.strip():
        raise InvalidInput("dir_path cannot be empty", hint='Give a folder, such as "docs" or ".".')
    indexed = theo.documents.index_directory(
        dir_path, namespace, recursive=recursive, async_mode=async_mode, report=REPORTER.get()
    )
    theo.embed_waiting(indexed)
    return success_reply(
        IndexDirectoryData(
            files_indexed=indexed.indexed,
            total_chunks=indexed.chunks,
            failed_files=_failed(indexed.failed),
            skipped_duplicates=indexed.unchanged,
            queued=indexed.queued,
            waiting_for_embedding=indexed.unembedded,
            truncated_files=[clean(str(file)) for file in indexed.truncated],
        )
    )


def delete_chunks(
    theo: TheoContext, ids: Annotated[list[str], Field(description="chunk_… IDs from search")]
) -> ToolReply:
    """Delete these chunks. Indexing their files again brings them back."""
    deleted = list(theo.documents.delete([chunk.id for chunk in theo.documents.get(ids)]))
    return success_reply(DeleteChunksData(len(deleted), deleted, _undo(len(deleted))))


def delete_chunks_question(theo: TheoContext, *, ids: list[str]) -> str:
    """Return the question to the user before `delete_chunks`. It lists the chunks."""
    items = [f"{chunk.id} in {chunk.source_file}" for chunk in theo.documents.get(ids)]
    return delete_question("Delete 1 chunk" if len(items) == 1 else f"Delete {len(items):,} chunks", items, _RESTORED)


def delete_file(
    theo: TheoContext, source_file: Annotated[str, Field(description="Path, as in search results")]
) -> ToolReply:
    """Delete all chunks of a file from the index. The file itself stays."""
    deleted = theo.documents.delete_file(Path(source_file))
    return success_reply(DeleteFileData(deleted, source_file, _undo(deleted)))


def delete_file_question(_theo: TheoContext, *, source_file: str) -> str:
    """Return the question to the user before `delete_file`."""
    return delete_question("Delete all chunks of this file from the index", [source_file], _RESTORED)


def clear_index(theo: TheoContext, confirm: Annotated[bool, Field(description="Must be true")]) -> ToolReply:
    """Delete all documents from the index. Memories, conversations and the files themselves stay."""
    if not confirm:
        raise InvalidInput("Safety check: Set confirm=True to delete all documents")
    deleted = theo.documents.clear()
    return success_reply(ClearData(deleted, memories_kept=theo.core.count(), undo=_undo(deleted)))


def clear_index_question(theo: TheoContext, *, confirm: bool) -> str:
    """Return the question to the user before `clear_index`, with the number of files.

    The text is empty if the agent did not set `confirm`, because the call then fails.
    """
    files = len(theo.documents.stats().source_files) if confirm else 0
    return delete_question("Delete all documents from the index", [f"{files:,} files"], _RESTORED) if files else ""


def get_index_stats(theo: TheoContext) -> ToolReply:
    """Count indexed documents and memories. `total_documents` counts chunks."""
    stats, memories = theo.documents.stats(), theo.core
    namespaces = {**stats.namespaces, **memories.count_by("namespace")}
    return success_reply(
        IndexStatsData(
            total_documents=stats.chunks,
            unique_sources=len(stats.source_files),
            source_files=[clean(str(path)) for path in stats.source_files],
            namespaces=sorted(namespaces),
            memory_count=memories.count(),
            golden_rule_count=memories.count(MemoryFilter(types=(GOLDEN_RULE,))),
            queued=stats.queued,
            waiting_for_embedding=stats.unembedded,
            failed_files=_failed(stats.failed),
        )
    )


def _undo(deleted: int) -> str:
    """Return the instruction to restore deleted chunks, or an empty text if no chunk was deleted."""
    return _UNDO if deleted else ""


def _failed(files: Iterable[FailedFile]) -> Rows:
    return [{"file": clean(str(each.file)), "error": clean(each.error)} for each in files]
