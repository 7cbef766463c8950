"""Tests of the records of token usage in the lines of each agent."""

from typing import Any

import orjson
import pytest

from palaver.archiver.formats.recorded_usage import usage_records
from palaver.core.tokens import TokenCounts, UsageRecord, total_usage


def found(agent: str, *records: Any) -> list[UsageRecord]:
    return [*usage_records(agent, "session-1", enumerate(map(orjson.dumps, records), 1))]


def reply(output: int, request: str = "req-1", usage: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a record of Claude Code while a reply streams."""
    message = {
        "id": "msg-1",
        "model": "claude-opus-5",
        "usage": {"input_tokens": 3, "output_tokens": output, **(usage or {})},
    }
    return {"type": "assistant", "requestId": request, "message": message}


def test_claude_code_records_count_once_with_both_kinds_of_cache_writes() -> None:
    cache = {"cache_read_input_tokens": 500, "cache_creation_input_tokens": 70}
    times = {"cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 50}}
    used = found("claude-code", reply(1, usage=cache), reply(90, usage=cache | times), reply(90, usage=cache | times))

    assert [(each.message, each.request, each.model) for each in used] == [("msg-1", "req-1", "claude-opus-5")] * 3
    assert total_usage(used[1:]) == TokenCounts(3, 90, 500, 20, 50)


def test_a_repeated_request_for_a_message_counts_twice() -> None:
    assert total_usage(found("claude-code", reply(5), reply(7, "req-2"))) == TokenCounts(6, 12)


def test_a_progress_record_does_not_lower_the_count_of_a_sub_agent() -> None:
    progress = {"type": "progress", "data": {"type": "agent_progress", "message": reply(2)}}

    assert total_usage(found("claude-code", progress, reply(80))) == TokenCounts(3, 80)


def test_messages_of_the_program_have_no_usage() -> None:
    record = reply(0)
    record["message"]["model"] = "<synthetic>"

    assert found("claude-code", record, {"type": "user", "message": {"content": 'the "usage" of a word'}}) == []


def test_codex_repeats_a_count_with_the_same_running_total() -> None:
    info = {
        "last_token_usage": {"input_tokens": 900, "cached_input_tokens": 700, "output_tokens": 30},
        "total_token_usage": {"total_tokens": 5_000},
    }
    record = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    assert total_usage(found("codex", record, record)) == TokenCounts(200, 30, 700)
    assert found("codex", record)[0].message == "session-1:5000"


@pytest.mark.parametrize(
    ("agent", "record", "expected"),
    [
        (
            "gemini",
            {"id": "g1", "tokens": {"input": 100, "cached": 60, "output": 7, "thoughts": 3}},
            (40, 10, 60, 0, 0),
        ),
        (
            "pi",
            {"id": "p1", "message": {"usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}}},
            (1, 2, 3, 4, 0),
        ),
        (
            "opencode",
            {
                "info": {
                    "id": "o1",
                    "tokens": {"input": 1, "output": 2, "reasoning": 5, "cache": {"read": 3, "write": 4}},
                }
            },
            (1, 7, 3, 4, 0),
        ),
    ],
)
def test_other_agents_record_each_reply(agent: str, record: Any, expected: tuple[int, ...]) -> None:
    [used] = found(agent, record)

    assert used.counts.by_type == expected


def test_a_record_without_id_counts_for_itself() -> None:
    record = {"type": "assistant", "message": {"usage": {"output_tokens": 5}}}

    assert total_usage(found("claude-code", record)) == TokenCounts(output=5)


@pytest.mark.parametrize("line", [b'{"usage"', b"", b'["usage"]', b'{"type":"assistant","message":{"usage":[1]}}'])
def test_damaged_lines_have_no_usage(line: bytes) -> None:
    assert [*usage_records("claude-code", "session-1", [(1, line)])] == []


def test_an_agent_without_counts_has_no_usage() -> None:
    assert found("cursor", reply(5)) == []
