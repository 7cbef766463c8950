"""Text windows of the BM25 baseline are readable and complete."""

import orjson

from bench.retrieval.windows import SIZE, windows


def _line(kind: str, *blocks: object, **more: object) -> bytes:
    return orjson.dumps({"type": kind, "message": {"content": [*blocks]}, **more})


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_readable() -> None:
    """Windows contain prose, one line per call and the output of failures, but no other output, thinking or injected
    text.
    """
    lines = [
        _line("user", _text("injected"), isMeta=True),
        _line("user", _text("please fix it")),
        b"not json",
        _line("assistant", {"type": "thinking", "thinking": "hm"}, _text("Looking.")),
        _line("assistant", {"type": "tool_use", "name": "Bash", "input": {"command": "npm\ntest", "limit": 3}}),
        _line("user", {"type": "tool_result", "is_error": True, "content": "Error: no such file"}),
        _line("user", {"type": "tool_result", "content": "all fine"}),
    ]

    assert list(windows(lines)) == ["please fix it\nLooking.\nBash: npm test\nError: no such file"]


def test_cut() -> None:
    """A prompt starts a new window, windows have a maximum length, and no text is lost."""
    lines = [_line("user", _text("one")), _line("user", _text("two")), _line("assistant", _text("x" * (SIZE + 1)))]

    assert list(windows(lines)) == ["one", "two", "x" * SIZE, "x"]
