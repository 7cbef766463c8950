"""Fabric tool for code: search the indexed files of a project."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ...core.clock import show_millisecond
from ...core.code import CodeLine, Symbol
from ...core.document import ChunkKind, DocumentFilter
from ...core.errors import DocumentOutsideRoots
from ...core.project import root_of
from ...search.query.secret_placeholders import redacted
from ...search.rank.item_finder import FoundChunk
from ...templates.quote import clean
from ..json_reply import NOTICE
from ..toolset import ToolReply
from .fabric_context import FabricContext
from .fabric_parameters import Limit, ProjectPath, Similarity, Text

_UNITS: Final[dict[str, tuple[str, ...]]] = {
    "function": ("function",),
    "class": ("class",),
    "interface": ("interface",),
    "type": ("type",),
    "enum": ("enum",),
    "const": ("constant",),
    "method": ("method",),
    "export": (),
}
_KINDS: Final = {"constant": "const"}


def search_code(
    fabric: FabricContext,
    query: Annotated[Text, Field(description="Text, name of a symbol, or question")],
    mode: Annotated[
        Literal["text", "symbol", "semantic"], Field(description="Literal lines, names, or meaning")
    ] = "semantic",
    language: Annotated[str | None, Field(description="Only this language")] = None,
    file_pattern: Annotated[str | None, Field(alias="filePattern", description="Glob, such as src/**/*.ts")] = None,
    symbol_kind: Annotated[
        Literal["function", "class", "interface", "type", "enum", "const", "export", "method"] | None,
        Field(alias="symbolKind", description="Only symbols of this kind"),
    ] = None,
    limit: Limit = 10,
    threshold: Similarity = 0.5,
    include_content: Annotated[bool, Field(alias="includeContent", description="Return source code")] = True,  # noqa: FBT002
    project_path: ProjectPath = None,
) -> ToolReply:
    """Search the source code of a project. Its index is built on first use and updated when files changed."""
    root, query = root_of(fabric.folder(project_path)), redacted(query, fabric.config.home)
    note = _refreshed(fabric, root)
    wanted = DocumentFilter(
        under=root,
        pattern=file_pattern or "",
        languages=(language,) if language else (),
        kinds=(ChunkKind.CODE,),
        units=_UNITS[symbol_kind] if symbol_kind else (),
    )
    code, most = fabric.documents.code, limit if symbol_kind != "export" else 100
    if mode == "symbol":
        rows = [(each.signature, _symbol_row(each, root)) for each in code.symbols(query, wanted, limit=most).symbols]
        if include_content:
            rows = [(signature, row | _content(fabric, row.pop("_chunk"))) for signature, row in rows]
    elif mode == "text":
        rows = [(each.text, _line_row(each, root, content=include_content)) for each in code.lines(query, wanted, limit=most).lines]
    else:
        found = [each for each in code.units(query, wanted, limit=most) if each.calibrated >= threshold]
        rows = [(each.held.chunk.signature, _unit_row(each, root, content=include_content)) for each in _distinct(found)]
    results = [row for text, row in rows if symbol_kind != "export" or text.lstrip().startswith("export")][:limit]
    for row in results:
        row.pop("_chunk", None)
    status = _status(fabric, root)
    return fabric.reply({"results": results, "indexStatus": status, "total": len(results), **note, **NOTICE})


def _refreshed(fabric: FabricContext, root: Path) -> dict[str, str]:
    """Index the project on first use, and its changes later. Return a note if this is impossible."""
    known = fabric.documents.code_status(root)
    if fabric.config.home.read_only or (known.files and root in fabric.indexed and not known.is_stale):
        return {}
    if root in {Path.home().resolve(), Path(root.anchor)} or not root.is_dir():
        return {} if known.files else {"note": f"Not indexed: {clean(str(root))} is not the folder of a project."}
    try:
        done = fabric.documents.index_directory(root, fabric.target(2, root))
    except DocumentOutsideRoots as error:
        return {"note": clean(error.full_message)}
    fabric.indexed.add(root)
    fabric.embed_waiting(done)
    return {"note": f"{done.queued} files are still queued."} if done.queued else {}


def _status(fabric: FabricContext, root: Path) -> dict[str, Any]:
    status = fabric.documents.code_status(root)
    indexed = None if status.newest is None else show_millisecond(status.newest)
    return {
        "totalFiles": status.files,
        "totalSymbols": status.symbols,
        "lastIndexed": indexed,
        "isStale": status.is_stale,
    }


def _symbol_row(each: Symbol, root: Path) -> dict[str, Any]:
    return {
        "filePath": _shown(each.source_file, root),
        "language": each.language,
        "symbol": _symbol(each.name, each.unit, each.signature, (each.start_line, each.end_line), each.doc),
        "match": each.match,
        "_chunk": each.id,
    }


def _line_row(each: CodeLine, root: Path, *, content: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"filePath": _shown(each.source_file, root), "language": each.language, "line": each.line}
    if each.name:
        row["symbol"] = {"name": clean(each.name), "kind": _KINDS.get(each.unit, each.unit)}
    return row | ({"content": clean("\n".join((*each.before, each.text, *each.after)))} if content else {})


def _unit_row(found: FoundChunk, root: Path, *, content: bool) -> dict[str, Any]:
    held, chunk = found.held, found.held.chunk
    row: dict[str, Any] = {"filePath": _shown(held.source_file, root), "language": held.language}
    lines = chunk.start_line, chunk.end_line
    if chunk.name:
        row["symbol"] = _symbol(chunk.name, chunk.unit, chunk.signature, lines, chunk.doc)
    else:
        row |= {"lineStart": lines[0], "lineEnd": lines[1]}
    return {**row, "similarity": round(found.calibrated, 4), **({"content": clean(chunk.text)} if content else {})}


def _symbol(name: str, unit: str, signature: str, lines: tuple[int, int], doc: str) -> dict[str, Any]:
    fields = {"name": clean(name), "kind": _KINDS.get(unit, unit), "signature": clean(signature)}
    return {**fields, "lineStart": lines[0], "lineEnd": lines[1], "docComment": clean(doc)}


def _content(fabric: FabricContext, chunk: str) -> dict[str, str]:
    return {"content": clean(each.chunk.text) for each in fabric.documents.get([chunk])}


def _distinct(found: Iterable[FoundChunk]) -> list[FoundChunk]:
    """Return the chunks without those of the same place in another namespace."""
    return list({(each.held.source_file, each.held.index): each for each in reversed(list(found))}.values())[::-1]


def _shown(file: Path, root: Path) -> str:
    return clean(str(file.relative_to(root) if file.is_relative_to(root) else file))
