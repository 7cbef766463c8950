"""Tests of the records of token usage in the lines of each agent."""

from typing import Any

import orjson
import pytest

from palaver.archiver.formats.recorded_usage import UsageContext, usage_records
from palaver.core.tokens import Completeness, TokenCounts, UsageRecord, total_usage, usage_by_reply


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


def completeness(*records: dict[str, Any]) -> list[Completeness]:
    return [used.completeness for used in usage_by_reply(found("claude-code", *records))]


def test_a_progress_record_is_partial_and_names_the_branch_of_its_session() -> None:
    message = reply(2) | {"timestamp": "2026-03-01T10:00:00.500Z"}
    progress = {"type": "progress", "gitBranch": "main", "data": {"message": message}}
    [used] = found("claude-code", progress)

    assert (used.completeness, used.branch, used.at) == (Completeness.PROGRESS, "main", 1_772_359_200_500)
    assert completeness(progress, reply(80)) == [Completeness.WHOLE]


@pytest.mark.parametrize(
    ("content", "output", "expected"),
    [
        ([{"type": "text", "text": "x" * 800}], 100, Completeness.WHOLE),
        ([{"type": "text", "text": "x" * 808}], 100, Completeness.PARTIAL),
        ([{"type": "tool_use", "name": "Write", "input": {"content": "x" * 800}}], 100, Completeness.PARTIAL),
        ([{"type": "thinking", "thinking": "x" * 808}], 100, Completeness.WHOLE),
        ("x" * 808, 100, Completeness.WHOLE),
    ],
)
def test_a_reply_with_more_text_than_its_count_allows_is_partial(
    content: object, output: int, expected: Completeness
) -> None:
    """Only what the reply itself proves is marked: a token has at most eight characters."""
    record = reply(output)
    record["message"]["content"] = content

    assert completeness(record) == [expected]


def test_the_count_of_the_last_line_of_a_reply_decides_whether_it_is_partial() -> None:
    text, call = reply(1), reply(200)
    text["message"]["content"] = [{"type": "text", "text": "x" * 808}]

    assert completeness(text, call) == [Completeness.WHOLE]
    assert completeness(text, reply(2)) == [Completeness.PARTIAL]


def test_messages_of_the_program_have_no_usage() -> None:
    record = reply(0)
    record["message"]["model"] = "<synthetic>"

    assert found("claude-code", record, {"type": "user", "message": {"content": 'the "usage" of a word'}}) == []


def counted(total: int, output: int = 30) -> dict[str, Any]:
    """Return Codex's record of a reply and of the running total of its thread."""
    info = {
        "last_token_usage": {"input_tokens": 900, "cached_input_tokens": 700, "output_tokens": output},
        "total_token_usage": {"total_tokens": total},
    }
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def codex(kind: str, **payload: str) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


def test_codex_repeats_a_count_with_the_same_running_total() -> None:
    assert total_usage(found("codex", counted(5_000), counted(5_000))) == TokenCounts(200, 30, 700)
    assert found("codex", counted(5_000))[0][:2] == ("session-1", "5000")


def test_a_short_id_is_that_of_its_session() -> None:
    short, long = ({"id": name, "tokens": {"input": 1}} for name in ("m1", "0b1c9f7e-7a51-4b8a-a2e6-7d3c0b5f8204"))

    assert [used.message for used in found("gemini", short, long)] == ["session-1:m1", long["id"]]


def test_a_codex_fork_repeats_the_counts_of_its_origin() -> None:
    origin = found("codex", codex("session_meta", id="a"), counted(930))
    fork = found(
        "codex",
        codex("session_meta", id="b", forked_from_id="a"),
        codex("session_meta", id="a"),
        counted(930),
        counted(1_860),
    )

    assert total_usage([*origin, *fork]) == TokenCounts(400, 60, 1_400)


def test_codex_names_the_model_at_the_start_of_a_turn() -> None:
    used = found(
        "codex", codex("turn_context", model="gpt-5.5"), counted(1), codex("turn_context", model="gpt-6"), counted(2)
    )

    assert [record.model for record in used] == ["gpt-5.5", "gpt-6"]


def test_the_context_of_earlier_lines_can_be_given() -> None:
    context = UsageContext()
    lines = [(at, orjson.dumps(codex("turn_context", model="gpt-5.5"))) for at in (1,)]
    assert [*usage_records("codex", "session-1", lines, context)] == []

    [used] = usage_records("codex", "session-1", [(2, orjson.dumps(counted(7)))], context)
    assert used.model == "gpt-5.5"


def test_copilot_records_the_tokens_of_each_model_at_the_end() -> None:
    usage = {"inputTokens": 1_000, "outputTokens": 50, "cacheReadTokens": 800, "cacheWriteTokens": 20}
    metrics = {"gpt-5": {"usage": usage}, "gpt-5-mini": {"usage": {"inputTokens": 9, "outputTokens": 1}}}
    used = found("copilot", {"type": "session.shutdown", "id": "end", "data": {"modelMetrics": metrics}})

    assert {record.model: record.counts for record in used} == {
        "gpt-5": TokenCounts(180, 50, 800, 20),
        "gpt-5-mini": TokenCounts(9, 1),
    }
    assert total_usage(used) == TokenCounts(189, 51, 800, 20)


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


@pytest.mark.parametrize(
    ("agent", "record", "counts"),
    [
        (
            "qwen-code",
            {
                "uuid": "a",
                "usageMetadata": {
                    "promptTokenCount": 100,
                    "cachedContentTokenCount": 60,
                    "candidatesTokenCount": 5,
                    "totalTokenCount": 112,
                },
            },
            TokenCounts(40, 12, 60),
        ),
        (
            "cline",
            {
                "message": {
                    "say": "api_req_started",
                    "text": '{"tokensIn":3,"tokensOut":2,"cacheReads":1,"cacheWrites":4}',
                }
            },
            TokenCounts(3, 2, 1, 4),
        ),
        ("roo-code", {"message": {"metrics": {"inputTokens": 3, "outputTokens": 2}}}, TokenCounts(3, 2)),
        (
            "copilot-chat",
            {"message": {"result": {"metadata": {"promptTokens": 9, "outputTokens": 1}}}},
            TokenCounts(9, 1),
        ),
        (
            "goose",
            {"usage_ledger": {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 4}},
            TokenCounts(9, 1, 4),
        ),
        (
            "amp",
            {"usage": {"inputTokens": 9, "outputTokens": 1, "cacheReadInputTokens": 4, "cacheCreationInputTokens": 2}},
            TokenCounts(9, 1, 4, 2),
        ),
        (
            "continue-dev",
            {
                "message": {
                    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
                }
            },
            TokenCounts(5, 1, 4),
        ),
        (
            "continue-dev",
            {"message": {"usage": {"promptTokens": 9, "completionTokens": 1}}},
            TokenCounts(9, 1),
        ),
        (
            "gptme",
            {"metadata": {"usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 4}}},
            TokenCounts(9, 1, 4),
        ),
        ("gptme", {"metadata": {"input_tokens": 9, "output_tokens": 1}}, TokenCounts(9, 1)),
        (
            "openhands",
            {
                "usage": {
                    "usage_to_metrics": {
                        "agent": {
                            "token_usages": [
                                {
                                    "prompt_tokens": 9,
                                    "cache_read_tokens": 4,
                                    "cache_write_tokens": 2,
                                    "completion_tokens": 1,
                                },
                            ]
                        }
                    }
                }
            },
            TokenCounts(3, 1, 4, 2),
        ),
        (
            "openhands",
            {
                "tool_call_metadata": {
                    "model_response": {"id": "r", "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
                }
            },
            TokenCounts(9, 1),
        ),
        (
            "hermes",
            {"usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 4, "reasoning_tokens": 1}},
            TokenCounts(9, 1, 4),
        ),
    ],
)
def test_further_agents_have_their_own_fields(agent: str, record: dict[str, Any], counts: TokenCounts) -> None:
    """Cached tokens are counted apart from other input."""
    assert total_usage(found(agent, record)) == counts


def test_junie_records_the_tokens_of_each_model_of_a_response() -> None:
    usage = [{"model": "a", "inputTokens": 9, "cacheInputTokens": 4, "cacheCreateTokens": 2, "outputTokens": 1}]
    event = {"kind": "LlmResponseMetadataEvent", "modelUsage": [*usage, {"model": "b", "inputTokens": 3}]}
    used = found("junie", {"event": {"agentEvent": event}, "timestampMs": 1_772_359_208_000})

    assert {record.model: record.counts for record in used} == {"a": TokenCounts(9, 1, 4, 2), "b": TokenCounts(3)}
    assert len({record.message for record in used}) == 2


def test_the_header_of_a_zed_thread_names_the_model() -> None:
    usage = {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 4}
    prompt: dict[str, Any] = {"id": "t/0", "message": {"User": {"id": "u1", "content": []}}, "usage": usage}
    [used] = found("zed", {"id": "t", "conversation": {"model": {"provider": "p", "model": "m"}}}, prompt)

    assert (used.message, used.model, used.counts) == ("session-1:u1", "m", TokenCounts(9, 1, 4))
