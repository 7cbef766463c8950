"""The lines that an agent wrote to a file are found in raw transcript lines."""

from typing import Any

import orjson
import pytest

from palaver.archiver.reading.exchanges import written_lines

PATH = "/home/demo/shop/price.py"
PATCH = (
    "*** Begin Patch\n*** Update File: other.py\n+not mine\n*** Update File: price.py\n@@\n-old = 1\n+new = 2\n kept\n"
    "*** Add File: more.py\n+nor this\n*** End Patch"
)


def lines(path: str = PATH, **record: Any) -> set[str]:
    """Return the lines that a record wrote to a file."""
    return set(written_lines(orjson.dumps(record), path))


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": PATH, "old_string": "old = 1\nkept", "new_string": "new = 2\nkept"},
        {"path": PATH, "old_str": "old = 1\nkept", "new_str": "new = 2\nkept"},
        {"filePath": PATH, "oldString": "kept", "newString": "  new = 2\n"},
        {"path": PATH, "file_text": "new = 2\n"},
        {"file_path": PATH, "content": "new = 2"},
        {"path": PATH, "edits": [{"oldText": "old = 1", "newText": "new = 2"}]},
        {"notebook_path": PATH, "new_source": "new = 2"},
        {"file_path": PATH, "edits": [{"old_string": "x", "new_string": "new = 2"}, "odd", None]},
    ],
)
def test_edits_of_every_agent_are_found(arguments: dict[str, Any]) -> None:
    """Added lines are found in edits of every agent, even if the arguments are JSON inside a string."""
    block = {"type": "tool_use", "name": "Edit", "input": arguments}

    assert lines(message={"content": [block]}) == {"new = 2"}
    assert lines(payload={"arguments": orjson.dumps(arguments).decode()}) == {"new = 2"}
    assert lines("/home/demo/shop/other.py", message={"content": [block]}) == set()


def test_a_diff_in_the_result_is_preferred() -> None:
    """A diff in the result takes precedence over the call, because it has whole lines and the earlier content."""
    call = orjson.dumps({"input": {"file_path": PATH, "old_string": "1.19", "new_string": "RATE"}})
    hunk = {"lines": [" def price(net):", "-    return net * 1.19", "+    return net * RATE"]}
    result = orjson.dumps({"toolUseResult": {"filePath": PATH, "newString": "RATE", "structuredPatch": [hunk, 1]}})
    elsewhere = orjson.dumps({"toolUseResult": {"filePath": "/other", "structuredPatch": [hunk]}})

    assert written_lines(call, PATH, result) == {"return net * RATE"}
    assert written_lines(call, PATH, elsewhere) == written_lines(call, PATH, b"torn") == {"RATE"}


def test_a_patch_is_divided_by_file() -> None:
    """The lines of a patch belong to the file in the header above them."""
    assert lines("price.py", payload={"input": PATCH}) == {"new = 2"}
    assert lines("more.py", payload={"arguments": orjson.dumps({"patch": PATCH}).decode()}) == {"nor this"}


@pytest.mark.parametrize("line", [b"", b"torn {", b"[]", b"null", b'"*** Begin Patch"', b"[" * 300 + b"]" * 300])
def test_other_lines_have_no_edits(line: bytes) -> None:
    """A line without an edit yields no written lines and no error."""
    assert written_lines(line, PATH) == frozenset()


def test_unescaped_line_feeds_do_not_hide_an_edit() -> None:
    """A record whose line feeds are not escaped is read like any other."""
    record = orjson.dumps({"input": {"path": PATH, "file_text": "new = 2\nmore = 3"}})

    assert written_lines(record.replace(b"\\n", b"\n"), PATH) == {"new = 2", "more = 3"}
