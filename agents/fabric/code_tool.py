"""Fabric tool for code: search the indexed files of a project."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ...core.amount import many
from ...core.clock import show_millisecond
from ...core.code import CodeStatus
from ...core.document import ChunkKind, DocumentFilter
from ...core.errors import DocumentOutsideRoots
from ...core.project import root_of
from ...search.query.secret_placeholders import redacted
from ...templates.quote import clean
from ..toolset import ToolReply
from .fabric_context import FabricContext
from .fabric_data import CodeSearchReply
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
_NOTHING: Final = {
    "text": "No line contains the text. Mode semantic searches by meaning.",
    "symbol": "No symbol has this name. Mode semantic searches by meaning.",
    "semantic": "No unit reaches a similarity of {threshold:g}. Lower the threshold, or use mode text or symbol.",
}
"""Note in the reply if nothing is found, by search mode."""
_KINDS: Final = {"constant": "const"}
_EXPORTS: Final = 50
"""Number of search results among which exported symbols are selected."""


def search_code(
    fabric: FabricContext,
    query: Annotated[Text, Field(description="Text, name of a symbol, or question")],
    mode: Annotated[
        Literal["text", "symbol", "semantic"], Field(description="Match literal lines, names, or meaning")
    ] = "semantic",
    language: Annotated[str | None, Field(description="Only this language")] = None,
    file_pattern: Annotated[str | None, Field(alias="filePattern", description="Glob, such as src/**/*.ts")] = None,
    symbol_kind: Annotated[
        Literal["function", "class", "interface", "type", "enum", "const", "export", "method"] | None,
        Field(alias="symbolKind", description="Only symbols of this kind"),
    ] = None,
    limit: Limit = 10,
    threshold: Similarity = 0.5,
    include_content: Annotated[bool, Field(alias="includeContent", description="Return source code")] = True,
    project_path: ProjectPath = None,
) -> ToolReply:
    """Search the source code of a project. Its index is built on first use and updated when files changed."""
    root, query = root_of(fabric.folder(project_path)), redacted(query, fabric.config.home)
    status, note = _refreshed(fabric, root)
    if mode == "semantic" and not note and (waiting := fabric.documents.count_unembedded()):
        note = f"The index is incomplete: {many(waiting, 'unit')} not embedded yet."
    wanted = DocumentFilter(
        under=root,
        pattern=file_pattern or "",
        languages=(language,) if language else (),
        kinds=(ChunkKind.CODE,),
        units=_UNITS[symbol_kind] if symbol_kind else (),
    )
    most = _EXPORTS if symbol_kind == "export" else limit
    match mode:
        case "symbol":
            rows = _symbol_rows(fabric, query, wanted, most, content=include_content)
        case "text":
            rows = _line_rows(fabric, query, wanted, most, content=include_content)
        case "semantic":
            rows = _unit_rows(fabric, query, wanted, most, threshold, content=include_content)
    chosen = [row for text, row in rows if symbol_kind != "export" or text.lstrip().startswith("export")]
    results = chosen[:limit]
    if status.files and not (results or note):
        note = _NOTHING[mode].format(threshold=threshold)
    return fabric.reply(CodeSearchReply(results, _status_row(status), len(results), note), quotes=bool(results))


def _refreshed(fabric: FabricContext, root: Path) -> tuple[CodeStatus, str]:
    """Index the project on first use, and update the index if files changed.

    Return the status of the index, and a note if the index is incomplete.
    """
    known = fabric.documents.code_status(root)
    if fabric.config.home.read_only or (known.files and root in fabric.indexed and not known.is_stale):
        return known, ""
    if root in {Path.home().resolve(), Path(root.anchor)} or not root.is_dir():
        return known, "" if known.files else f"Not indexed: {clean(str(root))} is not the folder of a project."
    try:
        done = fabric.documents.index_directory(root, fabric.target(2, root))
    except DocumentOutsideRoots as error:
        return known, clean(error.full_message)
    fabric.indexed.add(root)
    fabric.embed_waiting(done)
    status = fabric.documents.code_status(root)
    if done.queued or done.unembedded:
        queued = [f"{many(done.queued, 'file')} not read"] if done.queued else []
        waiting = [f"{many(done.unembedded, 'unit')} not embedded"] if done.unembedded else []
        return status, f"The index is incomplete: {', '.join(queued + waiting)} yet."
    return status, ""


def _status_row(status: CodeStatus) -> dict[str, Any]:
    indexed = None if status.newest is None else show_millisecond(status.newest)
    return {
        "totalFiles": status.files,
        "totalSymbols": status.symbols,
        "lastIndexed": indexed,
        "isStale": status.is_stale,
    }


def _symbol_rows(
    fabric: FabricContext, query: str, wanted: DocumentFilter, limit: int, *, content: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Return a pair for each code unit with this name: the signature of the unit, and its row in the reply."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for each in fabric.documents.code.symbols(query, wanted, limit=limit).symbols:
        symbol = _symbol(each.name, each.unit, each.signature, (each.start_line, each.end_line), each.doc)
        row: dict[str, Any] = {"filePath": _shown(each.source_file, wanted), "language": each.language}
        row |= {"symbol": symbol, "match": each.match}
        if content:
            row["content"] = clean("\n".join(found.chunk.text for found in fabric.documents.get([each.id])))
        rows.append((each.signature, row))
    return rows


def _line_rows(
    fabric: FabricContext, query: str, wanted: DocumentFilter, limit: int, *, content: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Return a pair for each line of code that contains the text: the text of the line, and its row in the reply."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for each in fabric.documents.code.lines(query, wanted, limit=limit).lines:
        row: dict[str, Any] = {"filePath": _shown(each.source_file, wanted), "language": each.language}
        if each.line:  # Notebooks have no lines.
            row["line"] = each.line
        if each.name:
            row["symbol"] = {"name": clean(each.name), "kind": _KINDS.get(each.unit, each.unit)}
        if content:
            row["content"] = clean("\n".join((*each.before, each.text, *each.after)))
        rows.append((each.text, row))
    return rows


def _unit_rows(
    fabric: FabricContext, query: str, wanted: DocumentFilter, limit: int, threshold: float, *, content: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Return a pair for each code unit that is similar enough to a question: the signature of the unit, and its row."""
    rows: dict[tuple[Path, int], tuple[str, dict[str, Any]]] = {}
    for each in fabric.documents.code.units(query, wanted, limit=limit):
        stored, chunk = each.stored, each.stored.chunk
        row: dict[str, Any] = {"filePath": _shown(stored.source_file, wanted), "language": stored.language}
        lines = chunk.start_line, chunk.end_line
        if chunk.name:
            row["symbol"] = _symbol(chunk.name, chunk.unit, chunk.signature, lines, chunk.doc)
        elif lines[0]:
            row |= {"lineStart": lines[0], "lineEnd": lines[1]}
        row["similarity"] = round(each.calibrated, 4)
        if content:
            row["content"] = clean(chunk.text)
        if each.calibrated >= threshold:  # A file can be indexed in several namespaces.
            rows.setdefault((stored.source_file, stored.index), (chunk.signature, row))
    return list(rows.values())


def _symbol(name: str, unit: str, signature: str, lines: tuple[int, int], doc: str) -> dict[str, Any]:
    fields = {"name": clean(name), "kind": _KINDS.get(unit, unit), "signature": clean(signature)}
    return {**fields, "lineStart": lines[0], "lineEnd": lines[1], "docComment": clean(doc)}


def _shown(file: Path, wanted: DocumentFilter) -> str:
    """Return a path relative to the searched folder, or the whole path of a file outside of it."""
    root = wanted.under
    return clean(str(file.relative_to(root) if root is not None and file.is_relative_to(root) else file))
