"""Search for the lines that a tool call of any agent added to a file.

Tool names differ between agents. All agents record the file's path. They also record one of these: the whole new text,
the old and new text, or a patch. The original transcript line is searched, because the store shortens calls.
"""

from collections.abc import Iterator
from typing import Any, cast

import orjson

from ..files.lines import decode

_PATHS = (
    "file_path",
    "notebook_path",
    "path",
    "filePath",
    "absolute_path",
    "target_file",
    "TargetFile",
    "relative_path",
)
_NEW = (
    *("new_string", "new_str", "newString", "newText", "new_text", "new_source", "file_text", "content", "contents"),
    *("insert_text", "text", "CodeContent", "ReplacementContent", "replacement"),
)
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "TargetContent")
_BEGIN = "*** Begin Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Move to: ")
_DEPTH = 12
"""Maximum nesting depth of a record that is searched."""


def written_lines(call: bytes, path: str, result: bytes = b"") -> frozenset[str]:
    """Return the lines that a call added to the file `path`, without surrounding whitespace.

    `call` and `result` are the transcript records of the call and of its result. If the result contains a diff, only
    the diff is used. Unlike the call, it has complete lines and takes into account the earlier content of a replaced
    file.
    """
    texts = [*_diffs(_record(result), path, _DEPTH)] or [
        text for new, old in _changes(_record(call), path, _DEPTH) for text in _added(new, old)
    ]
    return frozenset(text.strip() for text in texts if text.strip())


def _record(line: bytes) -> object:
    found = decode(line)
    return found[0] if isinstance(found, list) else None


def _diffs(value: object, path: str, depth: int) -> Iterator[str]:
    """Yield the lines that diffs of the file add. The diffs can be at any depth of a record."""
    if depth == 0 or not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    hunks = fields.get("structuredPatch")
    if isinstance(hunks, list) and any(fields.get(name) == path for name in _PATHS):
        for hunk in cast("list[object]", hunks):
            rows = cast("dict[str, Any]", hunk).get("lines") if isinstance(hunk, dict) else None
            added = cast("list[object]", rows) if isinstance(rows, list) else []
            yield from (row[1:] for row in added if isinstance(row, str) and row.startswith("+"))
    for below in fields.values():
        yield from _diffs(below, path, depth - 1)


def _added(new: str, old: str) -> Iterator[str]:
    before = {line.strip() for line in old.splitlines()}
    return (line for line in new.splitlines() if line.strip() not in before)


def _changes(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of a new text and the text that it replaced, found at any depth of a record."""
    if depth == 0:
        return
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if any(fields.get(name) == path for name in _PATHS):
            yield from _edits(fields)
        for below in fields.values():
            yield from _changes(below, path, depth - 1)
    elif isinstance(value, list):
        for below in cast("list[object]", value):
            yield from _changes(below, path, depth - 1)
    elif isinstance(value, str):
        if value.lstrip().startswith("{") and path.rpartition("/")[2] in value:
            try:
                yield from _changes(orjson.loads(value), path, depth - 1)
            except orjson.JSONDecodeError:
                return
        elif _BEGIN in value:
            yield from _patched(value, path)


def _edits(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    edits = fields.get("edits")
    for edit in [fields, *(cast("list[object]", edits) if isinstance(edits, list) else [])]:
        if isinstance(edit, dict):
            given = cast("dict[str, Any]", edit)
            old = "\n".join(text for name in _OLD if isinstance(text := given.get(name), str))
            yield from ((text, old) for name in _NEW if isinstance(text := given.get(name), str))


def _patched(patch: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield each line that a patch adds to this file, paired with an empty text in place of the replaced text."""
    inside = False
    for row in patch.splitlines():
        if row.startswith("*** "):
            if row.startswith(_FILES):
                inside = row.partition(": ")[2].strip() == path
            continue
        if inside and row.startswith("+"):
            yield row[1:], ""
