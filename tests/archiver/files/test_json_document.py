"""A conversation in one JSON document is read as lines."""

import io
import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.lines import document_lines, opened, records, split

MESSAGES = [{"id": "a", "text": "Hi"}, {"id": "b", "text": "Hello"}]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def lines(data: bytes) -> list[object]:
    return [json.loads(row) for row in document_lines(io.BytesIO(data)).read().splitlines()]


def test_plain_fields_of_a_document_come_first() -> None:
    """Each object in a document's lists is a line. Other lists stay with the plain fields."""
    document = {"id": "s", "messages": MESSAGES, "title": "T", "folders": ["/a", "/b"], "empty": []}

    assert lines(json.dumps(document, indent=2).encode()) == [
        {"id": "s", "title": "T", "folders": ["/a", "/b"], "empty": []},
        *MESSAGES,
    ]


def test_each_element_of_a_list_becomes_a_line() -> None:
    """Each element of a list becomes a line, whatever its type."""
    assert lines(b'[{"a": 1}, 2, null]') == [{"a": 1}, 2, None]


@pytest.mark.parametrize("data", [b'{"messages": [{"id": "a"},\n{"id"', b"", b"{\n\n}}", b"[" * 100_000])
def test_a_damaged_document_is_one_unfinished_line(data: bytes) -> None:
    """A damaged document is treated like a document that is still being written."""
    found = list(split(document_lines(io.BytesIO(data))))

    assert [line.complete for line in found] == [False] * bool(data)


@given(JSON)
def test_every_value_round_trips(value: object) -> None:
    """Values are unchanged by the conversion to lines, including lone surrogates."""
    elements = cast("list[object]", value) if isinstance(value, list) else [value]

    assert lines(json.dumps(elements).encode()) == elements


def test_lone_surrogates_are_repaired_when_lines_are_read() -> None:
    """Lone surrogates in documents are repaired as in other transcripts."""
    (line,) = split(document_lines(io.BytesIO(b'[{"text": "\\ud83d"}]')))

    assert records(line) == [{"text": "\ufffd"}]


def test_a_file_is_a_document_by_its_name(tmp_path: Path) -> None:
    """The file suffix identifies a document, also in the raw archive."""
    for name in ("a.json", "a.jsonl"):
        (tmp_path / name).write_bytes(b'{\n"id": "s"}')

    with opened(tmp_path / "a.json") as document, opened(tmp_path / "a.jsonl") as file:
        assert document.read() == b'{"id":"s"}\n'
        assert file.read() == b'{\n"id": "s"}'
