"""Conversations in one JSON document, converted to one record per line."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

import orjson

from .lines import blanked_record

LIMIT = 256 * 1024 * 1024
"""Maximum bytes of a document that is parsed; larger documents are only copied."""


def document_lines(file: BinaryIO) -> BinaryIO:
    """Return a document as lines: its plain fields on the first line, then each element of its object lists.

    A document that is a list becomes one line per element. A damaged or oversized document becomes a single line
    without a line end, like a line that is still being written.
    """
    with file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        return io.BytesIO(b"{")
    try:
        return io.BytesIO(b"".join(map(line, _records(_loaded(data)))))
    except (ValueError, RecursionError):
        return io.BytesIO(data.replace(b"\n", b" "))


def without_records(data: bytes, gone: Mapping[int, bool]) -> bytes:
    """Return a document in which the records on these lines are replaced by empty records.

    The lines are numbered as in `document_lines`. A line maps to True if an exchange began on that line.
    """
    number = 1

    def kept(value: object) -> object:
        nonlocal number
        number += 1
        blank = number - 1 in gone and value != {"": 1}
        return blanked_record(opens=gone[number - 1]) if blank else value

    value = _loaded(data)
    if isinstance(value, list):
        return line([kept(each) for each in cast("list[object]", value)])
    if not isinstance(value, dict):
        return b"{}"
    document = cast("dict[str, object]", value)
    lists = {name: cast("list[object]", each) for name, each in document.items() if _holds_records(each)}
    number += 1
    emptied = {name: [kept(each) for each in records] for name, records in lists.items()}
    return line(emptied if 1 in gone else {name: emptied.get(name, each) for name, each in document.items()})


def line(value: object) -> bytes:
    """Return a JSON value on one line, with a line end. Lone surrogates stay escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # orjson rejects lone surrogates, deep nesting and large integers
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _loaded(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data.decode("utf-8-sig", "replace"), strict=False)


def _records(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from cast("list[object]", value)
    elif isinstance(value, dict):
        document = cast("dict[str, object]", value)
        lists = {name: each for name, each in document.items() if _holds_records(each)}
        yield {name: each for name, each in document.items() if name not in lists}
        for each in lists.values():
            yield from cast("list[object]", each)
    else:
        yield value


def _holds_records(value: object) -> bool:
    return isinstance(value, list) and isinstance(next(iter(cast("list[object]", value)), None), dict)
