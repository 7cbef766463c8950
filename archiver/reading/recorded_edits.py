"""What an agent wrote into a file: the lines of a call that were not there before, whichever agent made it.

Agents differ in the names of their tools, but all of them name the file and say either the whole new text, or the old
and the new, or a patch. Looked for in the archived line itself, because what the store keeps of a call is shortened.
"""

from collections.abc import Iterator
from typing import Any, cast

import orjson

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


def written_lines(call: bytes, path: str, result: bytes = b"") -> frozenset[str]:
    """The lines, without blanks around them, that a call wrote into the file `path`; `call` and `result` are archived.

    A result that shows a difference is believed before the call: it knows the whole of a line of which the call names
    a part, and what stood in a file that the call wrote anew.
    """
    texts = [*_differences(_record(result), path, _DEPTH)] or [
        text for new, old in _changes(_record(call), path, _DEPTH) for text in _added(new, old)
    ]
    return frozenset(text.strip() for text in texts if text.strip())


def _record(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _differences(value: object, path: str, depth: int) -> Iterator[str]:
    """The added lines of every difference of the file, from anywhere in a record."""
    if depth == 0 or not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    hunks = fields.get("structuredPatch")
    if isinstance(hunks, list) and any(fields.get(name) == path for name in _PATHS):
        for hunk in cast("list[object]", hunks):
            rows = cast("dict[str, Any]", hunk).get("lines") if isinstance(hunk, dict) else None
            told = cast("list[object]", rows) if isinstance(rows, list) else []
            yield from (row[1:] for row in told if isinstance(row, str) and row.startswith("+"))
    for below in fields.values():
        yield from _differences(below, path, depth - 1)


def _added(new: str, old: str) -> Iterator[str]:
    before = {line.strip() for line in old.splitlines()}
    return (line for line in new.splitlines() if line.strip() not in before)


def _changes(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Each new text with the old one that it replaced, from anywhere in a record."""
    if depth == 0:
        return
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if any(fields.get(name) == path for name in _PATHS):
            yield from _said(fields)
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


def _said(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    edits = fields.get("edits")
    for edit in [fields, *(cast("list[object]", edits) if isinstance(edits, list) else [])]:
        if isinstance(edit, dict):
            given = cast("dict[str, Any]", edit)
            old = "\n".join(text for name in _OLD if isinstance(text := given.get(name), str))
            yield from ((text, old) for name in _NEW if isinstance(text := given.get(name), str))


def _patched(patch: str, path: str) -> Iterator[tuple[str, str]]:
    """The added lines of a patch's part that is about this file."""
    inside = False
    for row in patch.splitlines():
        if row.startswith("*** "):
            if row.startswith(_FILES):
                inside = row.partition(": ")[2].strip() == path
            continue
        if inside and row.startswith("+"):
            yield row[1:], ""
