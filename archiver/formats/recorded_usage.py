"""Records of token usage in the lines of a transcript.

Only lines that contain the name of a usage field are decoded, because most lines of a transcript contain none.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...core.tokens import TokenCounts, UsageRecord
from ..lines import Record, decode
from .json_values import count_of, first_string, mapping, string, total

_SYNTHETIC: Final = "<synthetic>"
"""Model of the messages that Claude Code writes itself."""


def usage_records(agent: str, session: str, lines: Iterable[tuple[int, bytes]]) -> Iterator[UsageRecord]:
    """Yield the records of token usage on these lines, each with its number. `session` is the agent's session ID.

    A record without an ID of the reply gets one that is unique for the session and the line.
    """
    marker, usage_of = _AGENTS.get(agent, (b"", None))
    if usage_of is None:
        return
    for number, data in lines:
        if marker not in data:
            continue
        records = decode(data)
        for record in records if isinstance(records, list) else []:
            used = usage_of(record)
            if used is not None and used.counts.total:
                message = used.message if used.request or not used.message.isdigit() else f"{session}:{used.message}"
                yield used._replace(message=message or f"{session}:{number}", line=number)


def _claude_code(record: Record) -> UsageRecord | None:
    """Return the usage of a reply. A progress record contains the beginning of a sub-agent's reply.

    The count of output tokens in a progress record is not final. The sub-agent's own record has a larger one.
    """
    if record.get("type") == "progress":
        record = mapping(mapping(record.get("data")).get("message"))
    message = mapping(record.get("message"))
    model = string(message.get("model"))
    if record.get("type") != "assistant" or model == _SYNTHETIC:
        return None
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
    return UsageRecord(string(message.get("id")), string(record.get("requestId")), counts, model=model)


def _codex(record: Record) -> UsageRecord | None:
    """Return the usage of the last reply. The running total identifies it, because repeated records have the same."""
    payload = mapping(record.get("payload"))
    info = mapping(payload.get("info"))
    last, running = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
    if payload.get("type") != "token_count" or not last:
        return None
    counts = _with_cached_input(last, "input_tokens", "cached_input_tokens", "output_tokens")
    return UsageRecord(str(count_of(running.get("total_tokens"))), "", counts)


def _gemini(record: Record) -> UsageRecord | None:
    counts = _with_cached_input(mapping(record.get("tokens")), "input", "cached", "output", "thoughts")
    return UsageRecord(string(record.get("id")), "", counts, model=string(record.get("model")))


def _pi(record: Record) -> UsageRecord | None:
    message = mapping(record.get("message"))
    used = mapping(message.get("usage"))
    counts = TokenCounts(
        count_of(used.get("input")),
        count_of(used.get("output")),
        count_of(used.get("cacheRead")),
        count_of(used.get("cacheWrite")),
    )
    reply = first_string(message, "responseId") or string(record.get("id"))
    return UsageRecord(reply, "", counts, model=string(message.get("model")))


def _opencode(record: Record) -> UsageRecord | None:
    info = mapping(record.get("message") or record.get("info"))
    used = mapping(info.get("tokens"))
    cache = mapping(used.get("cache"))
    counts = TokenCounts(
        count_of(used.get("input")),
        total(used, "output", "reasoning"),
        count_of(cache.get("read")),
        count_of(cache.get("write")),
    )
    return UsageRecord(string(info.get("id")), "", counts, model=string(info.get("modelID")))


def _with_cached_input(used: Record, input_field: str, cached_field: str, *output_fields: str) -> TokenCounts:
    """Return the counts of an agent whose input tokens include those read from the cache."""
    read = min(count_of(used.get(cached_field)), count_of(used.get(input_field)))
    return TokenCounts(count_of(used.get(input_field)) - read, total(used, *output_fields), read)


_AGENTS: Final[dict[str, tuple[bytes, Callable[[Record], UsageRecord | None]]]] = {
    "claude-code": (b'"usage"', _claude_code),
    "codex": (b'"token_count"', _codex),
    "gemini": (b'"tokens"', _gemini),
    "opencode": (b'"tokens"', _opencode),
    "pi": (b'"usage"', _pi),
}
"""Name of the usage field and the function that reads it, by agent."""
