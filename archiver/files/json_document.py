"""JSON documents that contain a conversation, converted to one record per line."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

import orjson

from .lines import blanked_record

LIMIT = 256 * 1024 * 1024
"""Maximum bytes of a document that is parsed. Larger documents are only copied."""


def document_lines(file: BinaryIO) -> BinaryIO:
    """Convert a JSON document to JSON lines: first the fields of the document, then one line per record.

    Records are the objects in the document's lists. For example, `{"id": 1, "turns": [{"a": 2}, {"a": 3}]}` becomes
    three lines: `{"id":1}`, `{"a":2}` and `{"a":3}`.

    A document that is itself a list becomes one line per element. A damaged or oversized document becomes one line
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


def without_records(data: bytes, erased: Mapping[int, bool]) -> bytes:
    """Return a JSON document in which blank records replace the records on the erased lines.

    The lines are numbered as in `document_lines`. `erased` maps each erased line to True if an exchange began on it.
    """
    number = 1

    def replaced(value: object) -> object:
        nonlocal number
        number += 1
        blank = number - 1 in erased and value != {"": 1}
        return blanked_record(opens=erased[number - 1]) if blank else value

    value = _loaded(data)
    if isinstance(value, list):
        return line([replaced(each) for each in cast("list[object]", value)])
    if not isinstance(value, dict):
        return b"{}"
    document = cast("dict[str, object]", value)
    lists = {name: cast("list[object]", each) for name, each in document.items() if _contains_records(each)}
    number += 1
    emptied = {name: [replaced(each) for each in records] for name, records in lists.items()}
    return line(emptied if 1 in erased else {name: emptied.get(name, each) for name, each in document.items()})


def line(value: object) -> bytes:
    """Return a JSON value on one line, with a line end. Lone surrogates stay escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # orjson rejects lone surrogates, deep nesting and large integers.
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
        lists = {name: each for name, each in document.items() if _contains_records(each)}
        yield {name: each for name, each in document.items() if name not in lists}
        for each in lists.values():
            yield from cast("list[object]", each)
    else:
        yield value


def _contains_records(value: object) -> bool:
    return isinstance(value, list) and isinstance(next(iter(cast("list[object]", value)), None), dict)
