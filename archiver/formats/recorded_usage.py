"""Records of token usage in the lines of a transcript.

Only lines that contain the name of a usage field are decoded, because most lines of a transcript contain none.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct, json

from ...core.tokens import Completeness, TokenCounts, UsageRecord
from ..lines import Record, decode
from .json_values import count_of, first_string, instant, mapping, mappings, string, total
from .transcript_format import is_unique

VERSION: Final = 2
"""Version of the rules by which usage is read. If it changes, all raw copies are read again for their usage."""
_CHARACTERS: Final = 8
"""Maximum characters of a text per output token. The most that 1,236 replies with a final count had is 6.6."""
_SYNTHETIC: Final = "<synthetic>"
"""Model of the messages that Claude Code writes itself."""


class UsageContext(Struct):
    """Facts that earlier lines of a transcript recorded and that later usage records need.

    Attributes:
        model: Model of the current turn.
        thread: ID of the session in which the running total of tokens began: the origin of a fork.
    """

    model: str = ""
    thread: str = ""


def usage_records(
    agent: str, session: str, lines: Iterable[tuple[int, bytes]], context: UsageContext | None = None
) -> Iterator[UsageRecord]:
    """Yield the records of token usage on these lines, each with its number.

    A reply without an ID is identified by its line. Short IDs, such as `m1`, occur in other sessions too, so they get
    the session's ID in front.

    Args:
        agent: Name of the agent. An agent that is not in `COUNTED` has no records.
        session: The agent's session ID.
        lines: Numbers and bytes of the lines, in order.
        context: Facts of the lines before these. It is updated.
    """
    context = UsageContext(thread=session) if context is None else context
    for number, data in lines:
        if not may_have_usage(agent, data):
            continue
        records, records_of = decode(data), _AGENTS[agent][1]
        for record in records if isinstance(records, list) else []:
            for used in records_of(record, context):
                if used.counts.total:
                    message = used.message or str(number)
                    is_unique_reply = bool(used.request) or is_unique(message)
                    yield used._replace(message=message if is_unique_reply else f"{session}:{message}", line=number)


def may_have_usage(agent: str, data: bytes) -> bool:
    """Return whether a line can contain usage, or a fact of `UsageContext`. This does not decode the line."""
    return agent in _AGENTS and any(marker in data for marker in _AGENTS[agent][0])


def _claude_code(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of a reply. A progress record contains the beginning of a sub-agent's reply.

    The count of output tokens in a progress record is not final. The sub-agent's own record has a larger one.
    Without `stop_reason`, the count of any record can be that at the start of the stream.
    """
    outer, is_progress = record, record.get("type") == "progress"
    if is_progress:
        record = mapping(mapping(record.get("data")).get("message"))
    message = mapping(record.get("message"))
    model = string(message.get("model"))
    if record.get("type") != "assistant" or model == _SYNTHETIC:
        return
    used = mapping(message.get("usage"))
    writes = mapping(used.get("cache_creation"))
    short, long = (count_of(writes.get(f"ephemeral_{time}_input_tokens")) for time in ("5m", "1h"))
    counts = TokenCounts(
        input=count_of(used.get("input_tokens")),
        output=count_of(used.get("output_tokens")),
        cache_read=count_of(used.get("cache_read_input_tokens")),
        cache_write_5m=short if short or long else count_of(used.get("cache_creation_input_tokens")),
        cache_write_1h=long,
    )
    yield UsageRecord(
        string(message.get("id")),
        string(record.get("requestId")),
        counts,
        model=model,
        at=instant(record.get("timestamp") or outer.get("timestamp")),
        branch=string(outer.get("gitBranch")),
        completeness=Completeness.PROGRESS if is_progress else Completeness.WHOLE,
        written=_written(message),
    )


def _written(message: Record) -> int:
    """Return a lower bound of the tokens of a message's text and of the input of its calls. Thinking is not counted."""
    blocks = mappings(message.get("content"))
    texts = (string(block.get("text")) for block in blocks if block.get("type") == "text")
    inputs = (block.get("input") for block in blocks if block.get("type") == "tool_use")
    return (sum(map(len, texts)) + sum(len(json.encode(arguments)) for arguments in inputs)) // _CHARACTERS


def _codex(record: Record, context: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of the last reply.

    Codex repeats a count whenever the rate limits change, and a fork repeats the counts of its origin. The running
    total of the thread identifies the reply. A fork also repeats the header of its origin, after its own.
    """
    payload = mapping(record.get("payload"))
    if record.get("type") == "session_meta":
        context.thread = string(payload.get("id")) or context.thread
    elif record.get("type") == "turn_context":
        context.model = string(payload.get("model")) or context.model
    info = mapping(payload.get("info"))
    last, running = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
    if payload.get("type") != "token_count" or not last:
        return
    counts = _with_cached_input(last, "input_tokens", "cached_input_tokens", "output_tokens")
    reply = (context.thread, str(count_of(running.get("total_tokens")))) if running else ("", "")
    yield UsageRecord(*reply, counts, model=context.model, at=instant(record.get("timestamp")))


def _gemini(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    counts = _with_cached_input(mapping(record.get("tokens")), "input", "cached", "output", "thoughts")
    model, at = string(record.get("model")), instant(record.get("timestamp"))
    yield UsageRecord(string(record.get("id")), "", counts, model=model, at=at)


def _pi(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    message = mapping(record.get("message"))
    used = mapping(message.get("usage"))
    counts = _counts(used, "input", "output", "cacheRead", "cacheWrite")
    reply = first_string(message, "responseId") or string(record.get("id"))
    at = instant(record.get("timestamp") or message.get("timestamp"))
    yield UsageRecord(reply, "", counts, model=string(message.get("model")), at=at)


def _opencode(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    info = mapping(record.get("message") or record.get("info"))
    used = mapping(info.get("tokens"))
    cache = mapping(used.get("cache"))
    counts = TokenCounts(
        count_of(used.get("input")),
        total(used, "output", "reasoning"),
        count_of(cache.get("read")),
        count_of(cache.get("write")),
    )
    at = instant(mapping(info.get("time")).get("created"))
    yield UsageRecord(string(info.get("id")), "", counts, model=string(info.get("modelID")), at=at)


def _copilot(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of each model in the record that ends a session."""
    if record.get("type") != "session.shutdown":
        return
    for model, metrics in mapping(mapping(record.get("data")).get("modelMetrics")).items():
        used = mapping(mapping(metrics).get("usage"))
        counts = _with_cached_input(used, "inputTokens", "cacheReadTokens", "outputTokens")
        written = min(count_of(used.get("cacheWriteTokens")), counts.input)
        counts = TokenCounts(counts.input - written, counts.output, counts.cache_read, written)
        yield UsageRecord(string(record.get("id")), model, counts, model=model, at=instant(record.get("timestamp")))


def _qwen(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    used = mapping(record.get("usageMetadata"))
    counts = _with_cached_input(used, "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount")
    # Some models count thoughts apart from the reply; the total contains both.
    received = count_of(used.get("totalTokenCount")) - count_of(used.get("promptTokenCount"))
    counts = TokenCounts(counts.input, max(counts.output, received), counts.cache_read)
    reply, at = string(record.get("uuid")), instant(record.get("timestamp"))
    yield UsageRecord(reply, string(record.get("timestamp")), counts, model=string(record.get("model")), at=at)


def _cline(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of a request, which older versions store as JSON in a text."""
    message = mapping(record.get("message"))
    used = mapping(message.get("metrics"))
    counts = _counts(used, "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    if message.get("say") == "api_req_started":
        request = decode(string(message.get("text")).encode("utf-8", "replace"))
        used = request[0] if isinstance(request, list) else Record()
        counts = _counts(used, "tokensIn", "tokensOut", "cacheReads", "cacheWrites")
    model = first_string(mapping(message.get("modelInfo")), "modelId", "id")
    yield UsageRecord(string(record.get("id")), "", counts, model=model, at=instant(message.get("ts")))


def _copilot_chat(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    request = mapping(record.get("message"))
    used = mapping(mapping(request.get("result")).get("metadata"))
    counts = TokenCounts(count_of(used.get("promptTokens")), count_of(used.get("outputTokens")))
    model = first_string(used, "resolvedModel") or string(request.get("modelId")).removeprefix("copilot/")
    reply, at = string(request.get("requestId")), instant(request.get("timestamp"))
    yield UsageRecord(reply, "", counts, model=model, at=at)


def _goose(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    row = mapping(record.get("usage_ledger"))
    counts = _counts(row, "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    at = instant(row.get("created_timestamp"))
    yield UsageRecord(string(record.get("id")), "", counts, model=string(row.get("model")), at=at)


def _amp(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    used = mapping(record.get("usage"))
    counts = _counts(used, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    yield UsageRecord("", "", counts, model=string(used.get("model")), at=instant(used.get("timestamp")))


def _continue(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of a reply. The command line stores the names of the OpenAI API, the extension its own."""
    message = mapping(record.get("message"))
    used = mapping(message.get("usage"))
    sent, received = total(used, "promptTokens", "prompt_tokens"), total(used, "completionTokens", "completion_tokens")
    details = mapping(used.get("promptTokensDetails") or used.get("prompt_tokens_details"))
    read = min(total(details, "cachedTokens", "cached_tokens"), sent)
    counts = TokenCounts(sent - read, received, read)
    yield UsageRecord(string(message.get("id")), "", counts, model=string(used.get("model")))


def _gptme(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of a reply. Older versions store the counts beside the model."""
    about = mapping(record.get("metadata"))
    used = mapping(about.get("usage")) or about
    counts = _counts(used, "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
    yield UsageRecord("", "", counts, model=string(about.get("model")), at=instant(record.get("timestamp")))


def _junie(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    event = mapping(mapping(record.get("event")).get("agentEvent"))
    if event.get("kind") != "LlmResponseMetadataEvent":
        return
    for number, used in enumerate(mappings(event.get("modelUsage"))):
        counts = _counts(used, "inputTokens", "outputTokens", "cacheInputTokens", "cacheCreateTokens")
        at = instant(record.get("timestampMs"))
        yield UsageRecord(f"{at}-{number}", "", counts, model=string(used.get("model")), at=at)


def _zed(record: Record, context: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of the replies to a prompt. The header of the thread names the model."""
    if "conversation" in record:
        context.model = string(mapping(mapping(record["conversation"]).get("model")).get("model"))
    used, prompt = mapping(record.get("usage")), mapping(mapping(record.get("message")).get("User"))
    counts = _counts(used, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    yield UsageRecord(string(prompt.get("id")), "", counts, model=context.model)


def _openhands(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of each reply, which versions before 1.0 record in each of its events."""
    for metrics in mapping(mapping(record.get("usage")).get("usage_to_metrics")).values():
        for used in mappings(mapping(metrics).get("token_usages")):
            counts = _with_cached_input(used, "prompt_tokens", "cache_read_tokens", "completion_tokens")
            written = min(count_of(used.get("cache_write_tokens")), counts.input)
            counts = TokenCounts(counts.input - written, counts.output, counts.cache_read, written)
            yield UsageRecord(string(used.get("response_id")), "", counts, model=string(used.get("model")))
    reply = mapping(mapping((mapping(record.get("message")) or record).get("tool_call_metadata")).get("model_response"))
    counts = _with_cached_input(mapping(reply.get("usage")), "prompt_tokens", "cached_tokens", "completion_tokens")
    yield UsageRecord(string(reply.get("id")), "", counts, model=string(reply.get("model")))


def _hermes(record: Record, _: UsageContext) -> Iterator[UsageRecord]:
    """Yield the usage of a whole session."""
    used = mapping(record.get("usage"))
    counts = _counts(used, "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    at = instant(used.get("ended_at"))
    yield UsageRecord(string(record.get("id")), "", counts, model=string(used.get("model")), at=at)


def _counts(used: Record, *names: str) -> TokenCounts:
    """Return the counts in these fields: input, output, tokens read from the cache, and tokens written to it."""
    return TokenCounts(*(count_of(used.get(name)) for name in names))


def _with_cached_input(used: Record, input_field: str, cached_field: str, *output_fields: str) -> TokenCounts:
    """Return the counts of an agent whose input tokens include those read from the cache."""
    read = min(count_of(used.get(cached_field)), count_of(used.get(input_field)))
    return TokenCounts(count_of(used.get(input_field)) - read, total(used, *output_fields), read)


_RecordUsage: TypeAlias = Callable[[Record, UsageContext], Iterator[UsageRecord]]
_AGENTS: Final[dict[str, tuple[tuple[bytes, ...], _RecordUsage]]] = {
    "amp": ((b'"usage"',), _amp),
    "claude-code": ((b'"usage"',), _claude_code),
    "cline": ((b'"api_req_started"', b'"metrics"'), _cline),
    "codex": ((b'"token_count"', b'"turn_context"', b'"session_meta"'), _codex),
    "continue-dev": ((b'"usage"',), _continue),
    "copilot": ((b'"session.shutdown"',), _copilot),
    "copilot-chat": ((b'"promptTokens"', b'"outputTokens"'), _copilot_chat),
    "cowork": ((b'"usage"',), _claude_code),
    "gemini": ((b'"tokens"',), _gemini),
    "goose": ((b'"usage_ledger"',), _goose),
    "gptme": ((b'_tokens"',), _gptme),
    "junie": ((b'"LlmResponseMetadataEvent"',), _junie),
    "hermes": ((b'"usage"',), _hermes),
    "kilo-code": ((b'"api_req_started"', b'"metrics"'), _cline),
    "openclaw": ((b'"usage"',), _pi),
    "opencode": ((b'"tokens"',), _opencode),
    "openhands": ((b'"usage"', b'"model_response"'), _openhands),
    "pi": ((b'"usage"',), _pi),
    "qwen-code": ((b'"usageMetadata"',), _qwen),
    "roo-code": ((b'"api_req_started"', b'"metrics"'), _cline),
    "zed": ((b'"usage"', b'"conversation"'), _zed),
}
"""Texts of which a line with usage contains one, and the function that reads the record, by agent."""
COUNTED: Final = frozenset(_AGENTS)
"""Agents whose token counts are read."""
