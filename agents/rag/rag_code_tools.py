"""Rag tools for code: index a folder, and search the indexed units."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace
from pydantic import Field

from ...core.document import ChunkKind, DocumentFilter
from ...core.errors import InvalidInput
from ...search.query.secret_placeholders import redacted
from ...search.rank.item_finder import FoundChunk
from ...templates.quote import clean
from ..call_progress import REPORTER
from ..json_reply import NOTICE
from ..toolset import ToolReply
from .rag_context import RagContext
from .rag_parameters import CodeLimit, LanguageName, without_controls
from .rag_replies import CodeReply, CodeRow, IndexedReply


def search_code(
    rag: RagContext,
    query: Annotated[str, Field(min_length=1, description="Question, name or keywords")],
    project_name: Annotated[str | None, Field(description="Default: this project")] = None,
    limit: CodeLimit = 10,
    file_pattern: Annotated[str | None, Field(description="Glob, such as */auth/*")] = None,
    language: Annotated[LanguageName | None, Field(description="Only this language")] = None,
) -> ToolReply:
    """Search indexed code by meaning, names and words. Returns functions, classes and methods, best first.

    Results with scores from 0.7 are usually relevant.
    """
    start = time.perf_counter()
    query = redacted(without_controls(query), rag.config.home)
    wanted = DocumentFilter(
        pattern=_below(file_pattern or ""), languages=(language,) if language else (), kinds=(ChunkKind.CODE,)
    )
    if project_name is not None:
        places = [replace(wanted, namespaces=(rag.namespace_of(project_name),))]
    else:  # `palaver index` and other toolsets may index the files of the project in another namespace.
        places = [replace(wanted, namespaces=(rag.own_namespace(),)), replace(wanted, under=rag.project_root)]
    with rag.lookup():
        found = _best([each for place in places for each in rag.documents.search(query, place, limit=limit)])
    rows = [_row(rag, each) for each in found[:limit]]
    elapsed = round(1_000 * (time.perf_counter() - start))
    reply: CodeReply = {"results": rows, "count": len(rows), "search_time_ms": elapsed}
    if rows:
        reply["notice"] = NOTICE["notice"]
    return rag.reply(reply)


def index_codebase(
    rag: RagContext,
    directory_path: Annotated[str, Field(min_length=1, description="Absolute path")],
    project_name: Annotated[str | None, Field(description="Default: name of the folder")] = None,
    recursive: Annotated[bool, Field(description="Index its subfolders too")] = True,
) -> ToolReply:
    """Index the code and documents of a folder for search_code. Unchanged files are skipped.

    The status is in_progress while files are queued. Embeddings follow in the background.
    """
    folder = Path(directory_path).expanduser()
    if not folder.is_absolute():
        raise InvalidInput("directory_path must be an absolute path", hint=f"Use {folder.absolute()}.")
    start, name = time.perf_counter(), folder.resolve().name if project_name is None else project_name
    namespace = rag.namespace_of(name, claim=True)
    indexed = rag.documents.index_directory(folder, namespace, recursive=recursive, report=REPORTER.get())
    rag.embed_waiting(indexed)
    reply: IndexedReply = {
        "status": "in_progress" if indexed.queued else "completed",
        "files_indexed": indexed.indexed,
        "semantic_units_extracted": indexed.units,
        "indexing_time_seconds": round(time.perf_counter() - start, 2),
        "project_name": name,
    }
    if indexed.unchanged:
        reply["files_unchanged"] = indexed.unchanged
    if indexed.queued:
        reply["files_queued"] = indexed.queued
    if indexed.unembedded:
        reply["waiting_for_embedding"] = indexed.unembedded
    if indexed.truncated:
        reply["truncated_files"] = [clean(str(file)) for file in indexed.truncated]
    if indexed.failed:
        reply["failed_files"] = [{"file": clean(str(each.file)), "error": clean(each.error)} for each in indexed.failed]
    return rag.reply(reply)


def _best(found: Iterable[FoundChunk]) -> list[FoundChunk]:
    """Return the chunks, the most relevant first. A chunk that is indexed in several namespaces is returned once."""
    best: dict[tuple[Path, int], FoundChunk] = {}
    for each in sorted(found, key=lambda each: (-each.calibrated, -each.score)):
        best.setdefault((each.stored.source_file, each.stored.index), each)
    return list(best.values())


def _below(pattern: str) -> str:
    """Return the pattern with `**` for a final `*`, so that `*/auth/*` also matches files in subfolders."""
    return f"{pattern}*" if pattern.endswith("/*") else pattern


def _row(rag: RagContext, found: FoundChunk) -> CodeRow:
    stored, chunk = found.stored, found.stored.chunk
    return {
        "file_path": clean(rag.shown_path(stored.source_file)),
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "unit_type": chunk.unit,
        "unit_name": clean(chunk.name),
        "signature": clean(chunk.signature),
        "language": stored.language,
        "score": round(found.calibrated, 4),
        "content": clean(chunk.text),
    }
