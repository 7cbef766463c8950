"""Tests of the changes in the tool calls of each agent."""

from typing import Any

import orjson
import pytest

from palaver.archiver.reading.exchanges import TextChange, changes_in

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-one\n+two\n*** Add File: b.py\n+three\n*** End Patch"
PATCHED = [TextChange("a.py", "", "@@\n-one\n+two", signed=True), TextChange("b.py", "", "+three", signed=True)]


def claude(name: str, arguments: Any, call: str = "call-1") -> dict[str, Any]:
    return {"message": {"content": [{"type": "tool_use", "id": call, "name": name, "input": arguments}]}}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            claude("Edit", {"file_path": "a.py", "old_string": "one", "new_string": "two"}),
            [TextChange("a.py", "one", "two")],
        ),
        (
            claude("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "1", "new_string": "2"}] * 2}),
            [TextChange("a.py", "1", "2")] * 2,
        ),
        (claude("Write", {"file_path": "a.py", "content": "two"}), [TextChange("a.py", "", "two")]),
        (claude("Bash", {"command": "ls"}), []),
        ({"payload": {"call_id": "call-1", "name": "apply_patch", "input": PATCH}}, PATCHED),
        ({"payload": {"call_id": "call-1", "arguments": orjson.dumps({"input": PATCH}).decode()}}, PATCHED),
        ({"payload": {"call_id": "call-1", "arguments": {"command": ["apply_patch", PATCH]}}}, PATCHED),
        (
            {"toolCalls": [{"id": "call-1", "args": {"file_path": "a.py", "old_string": "1", "new_string": "2"}}]},
            [TextChange("a.py", "1", "2")],
        ),
        (
            {"parts": [{"callID": "call-1", "state": {"input": {"path": "a.py", "oldString": "1", "newString": "2"}}}]},
            [TextChange("a.py", "1", "2")],
        ),
    ],
)
def test_each_agent_records_changes(record: Any, expected: list[TextChange]) -> None:
    assert changes_in(orjson.dumps(record), "call-1") == expected


def test_other_calls_on_the_line_do_not_count() -> None:
    first = claude("Write", {"file_path": "a.py", "content": "1"}, "call-1")
    second = claude("Write", {"file_path": "b.py", "content": "2"}, "call-2")
    first["message"]["content"] += second["message"]["content"]

    assert changes_in(orjson.dumps(first), "call-2") == [TextChange("b.py", "", "2")]


def test_a_number_after_a_repeated_id_is_ignored() -> None:
    record = claude("Write", {"file_path": "a.py", "content": "1"}, "call_0")

    assert changes_in(orjson.dumps(record), "call_0#2") == [TextChange("a.py", "", "1")]


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b'{"id":"call-1","input":"{"}', b'{"id":"call-1","input":null}'])
def test_damaged_records_have_no_changes(line: bytes) -> None:
    assert changes_in(line, "call-1") == []
