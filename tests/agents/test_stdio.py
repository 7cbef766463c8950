"""Tests for agents/server.py: every line gets a reply."""

import json
from typing import Any

import pytest

from .test_server import shake_hands, spawn

SEARCH = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "search", "arguments": %s}}'


@pytest.mark.parametrize(
    ("line", "identity", "code"),
    [
        ("not json", None, -32700),
        ('{"jsonrpc": "2.0", "id": 7, "meth', None, -32700),
        ("[]", None, -32600),
        ('{"jsonrpc": "2.0", "id": 7}', 7, -32600),
        (SEARCH % ('{"query": ' + "[" * 900 + "]" * 900 + "}"), 7, -32700),
        ("[" * 100_000, None, -32700),
    ],
    ids=["words", "half", "array", "no method", "deep argument", "deeper than the parser"],
)
def test_an_invalid_message_gets_an_error(line: str, identity: int | None, code: int) -> None:
    """The reply is a JSON-RPC error with the ID of the request if it is readable, and the server continues."""
    refused, served = replies_to(line, SEARCH % '{"query": "auth"}')

    assert (refused["id"], refused["error"]["code"]) == (identity, code)
    assert served["result"]["isError"] is False


@pytest.mark.parametrize(
    ("arguments", "failed"),
    [('{"query": "auth \\ud83d"}', False), ('{"query": "auth", "limit": ' + "1" * 5000 + "}", True)],
    ids=["lone surrogate", "long number"],
)
def test_unusual_json_is_accepted(arguments: str, failed: bool) -> None:
    """A lone surrogate is replaced, and a number of 5,000 digits is a float. The tool answers both."""
    (answer,) = replies_to(SEARCH % arguments)

    assert (answer["id"], answer["result"]["isError"]) == (7, failed)


def replies_to(*lines: str) -> list[dict[str, Any]]:
    """Return the server's reply to each line."""
    with spawn() as server:
        shake_hands(server, "2025-11-25")
        assert server.stdin is not None
        assert server.stdout is not None
        answers: list[dict[str, Any]] = []
        for line in lines:
            server.stdin.write(line.encode() + b"\n")
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
        server.communicate()
    return answers
