"""Functions that extract the content of Codex records from the objects around it, for every version of Codex."""

from collections.abc import Iterable, Iterator

import orjson

from ...files.lines import Line, Record
from ..json_values import first_string, mapping, string
from .codex_tools import search_terms

_COMPACTED, _HISTORY = b'"type":"compacted"', b',"replacement_history":'
_KIND_WITHIN = 200


def headers(found: Iterable[Record]) -> Iterator[Record]:
    """Yield the session headers among records, without the outer object that newer versions of Codex add."""
    for record in found:
        if record.get("type") == "session_meta":
            yield mapping(record.get("payload"))
        elif "type" not in record and "instructions" in record:
            yield record


def parent_of(header: Record) -> str:
    """Return the ID of the session from which this session was started as a sub-agent or forked."""
    spawned = mapping(mapping(mapping(header.get("source")).get("subagent")).get("thread_spawn"))
    named = string(spawned.get("parent_thread_id")) or first_string(header, "parent_thread_id", "forked_from_id")
    # A fork with a paginated history contains only its own records, and refers to the thread that it continues.
    return named or string(mapping(header.get("history_base")).get("thread_id"))


def unwrapped(record: Record) -> tuple[str, Record]:
    """Return the type of a record, such as `response_item/message`, and its content without the outer objects."""
    kind, payload = record.get("type"), mapping(record.get("payload"))
    if "payload" not in record:
        return _bare_type(record), record
    inner = payload.get("type") or ("message" if "role" in payload else "")
    if inner == "item_completed":
        item = mapping(payload.get("item"))
        return f"item/{item.get('type')}", item
    return f"{kind}/{inner}" if kind in ("response_item", "event_msg") else str(kind), payload


def _bare_type(record: Record) -> str:
    kind = record.get("type")
    if kind is not None:
        return f"response_item/{kind}"
    if "role" in record:
        return "response_item/message"
    return "session_meta" if "instructions" in record else str(record.get("record_type"))


def without_history(line: Line) -> list[Record] | None:
    """Return a compaction record without its copy of the conversation, or None for other lines.

    These copies can make up most of a file.
    """
    if _COMPACTED not in line.data[:_KIND_WITHIN]:
        return None
    head, found, _ = line.data.partition(_HISTORY)
    try:
        return [mapping(orjson.loads(head + b"}}"))] if found else None
    except orjson.JSONDecodeError:
        return None


def call_id(payload: Record) -> str:
    """Return the ID that a call and its result share."""
    return first_string(payload, "call_id", "id")


def called_tool(payload: Record) -> str:
    """Return the tool name in a call record of any type, such as `shell` or `<server>__<tool>`."""
    name = string(payload.get("name")) or string(mapping(payload.get("function")).get("name"))
    namespace = string(payload.get("namespace"))
    if not name:
        return string(payload.get("type")).removesuffix("_call")
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}" if namespace else name


def arguments(payload: Record) -> object:
    """Return the arguments of a call of any type."""
    if payload.get("type") == "web_search_call":
        return search_terms(payload)
    if payload.get("type") == "image_generation_call":
        return string(payload.get("revised_prompt"))
    return payload.get("arguments") or payload.get("input") or payload.get("action")
