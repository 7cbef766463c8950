"""Records of a Codex rollout freed of the envelopes around them, which changed from version to version."""

from collections.abc import Iterable, Iterator

import orjson

from ...files.lines import Line, Record
from ..json_values import mapping, string
from .codex_tools import searched

_COMPACTED, _HISTORY = b'"type":"compacted"', b',"replacement_history":'
_KIND_WITHIN = 200


def headers(found: Iterable[Record]) -> Iterator[Record]:
    """The session headers among some records; the oldest stood bare on the first line."""
    for record in found:
        if record.get("type") == "session_meta":
            yield mapping(record.get("payload"))
        elif "type" not in record and "instructions" in record:
            yield record


def parent_of(header: Record) -> str:
    """The session that sent a sub-agent out, or that a fork was made from."""
    spawned = mapping(mapping(mapping(header.get("source")).get("subagent")).get("thread_spawn"))
    named = (spawned.get("parent_thread_id"), header.get("parent_thread_id"), header.get("forked_from_id"))
    return next((string(each) for each in named if each), "")


def opened(record: Record) -> tuple[str, Record]:
    """What a record is, and its content without the envelopes around it. The oldest have none."""
    kind, payload = record.get("type"), mapping(record.get("payload"))
    if "payload" not in record:
        return _bare(record), record
    inner = payload.get("type") or ("message" if "role" in payload else "")
    if inner == "item_completed":
        item = mapping(payload.get("item"))
        return f"item/{item.get('type')}", item
    return f"{kind}/{inner}" if kind in ("response_item", "event_msg") else str(kind), payload


def _bare(record: Record) -> str:
    kind = record.get("type")
    if kind is not None:
        return f"response_item/{kind}"
    if "role" in record:
        return "response_item/message"
    return "session_meta" if "instructions" in record else str(record.get("record_type"))


def without_history(line: Line) -> list[Record] | None:
    """A compaction without the copy of the whole conversation that it carries, which may fill most of a file."""
    if _COMPACTED not in line.data[:_KIND_WITHIN]:
        return None
    head, found, _ = line.data.partition(_HISTORY)
    try:
        return [mapping(orjson.loads(head + b"}}"))] if found else None
    except orjson.JSONDecodeError:
        return None


def call_id(payload: Record) -> str:
    """The id that a call and its result share."""
    return string(payload.get("call_id")) or string(payload.get("id"))


def tool_name(payload: Record) -> str:
    """The tool of a call of any kind, with its server where it has one."""
    name = string(payload.get("name")) or string(mapping(payload.get("function")).get("name"))
    namespace = string(payload.get("namespace"))
    if not name:
        return string(payload.get("type")).removesuffix("_call")
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}" if namespace else name


def arguments(payload: Record) -> object:
    """The arguments of a call of any kind."""
    if payload.get("type") == "web_search_call":
        return searched(payload)
    if payload.get("type") == "image_generation_call":
        return string(payload.get("revised_prompt"))
    return payload.get("arguments") or payload.get("input") or payload.get("action")
