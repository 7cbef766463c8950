"""Records of small Claude Code transcripts, and helpers that read transcripts."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from palaver.archiver.formats import Event
from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.lines import split
from palaver.core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn

SESSION = "0d9f1c1e-0000-4000-8000-000000000001"
TIME = "2026-03-01T10:00:00.000Z"
HUMAN, HOST = Speaker.HUMAN, Speaker.HOST
PROMPT, INJECTED = Kind.PROMPT, Kind.INJECTED


def user(content: object, **fields: Any) -> dict[str, Any]:
    """Return a record with the role `user`."""
    return {"type": "user", "message": {"role": "user", "content": content}, "timestamp": TIME, **fields}


def assistant(*blocks: dict[str, Any], id: str = "msg_1", **fields: Any) -> dict[str, Any]:  # noqa: A002
    """Return a record with the role `assistant`."""
    message = {"id": id, "role": "assistant", "model": "model-1", "content": list(blocks)}
    return {"type": "assistant", "message": message, "timestamp": TIME, **fields}


def text(content: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": content}


def tool(name: str, arguments: object, id: str = "toolu_1") -> dict[str, Any]:  # noqa: A002
    """Return a block with a tool call."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(content: object, extra: object = None, id: str = "toolu_1", **fields: Any) -> dict[str, Any]:  # noqa: A002
    """Return a record with the result of a tool."""
    block = {"type": "tool_result", "tool_use_id": id, "content": content, **fields}
    return user([block], **({} if extra is None else {"toolUseResult": extra}))


def queue(operation: str, content: str = "") -> dict[str, Any]:
    """Return a record that changes the queue of prompts."""
    return {"type": "queue-operation", "operation": operation, "content": content, "timestamp": TIME}


def progress(message: dict[str, Any], *, agent: str, task: str = "", **fields: Any) -> dict[str, Any]:
    """Return a record of a running sub-agent that contains one of its messages."""
    data = {"message": message, "type": "agent_progress", "prompt": task, "agentId": agent}
    place = {"sessionId": SESSION, "cwd": "/code/app", "gitBranch": "main", "version": "2.1.40", "isSidechain": False}
    return {**place, "type": "progress", "data": data, "parentToolUseID": "toolu_1", "timestamp": TIME, **fields}


def jsonl(records: Iterable[object]) -> bytes:
    """Return a transcript with one record per line. Bytes are used as raw lines."""
    return b"".join((each if isinstance(each, bytes) else orjson.dumps(each)) + b"\n" for each in records)


def read(
    *records: object,
    kind: SessionKind = SessionKind.MAIN,
    shorten: bool = True,
    start: tuple[int, int] = (1, 0),
    session: str = SESSION,
) -> list[Event]:
    """Return the events of a transcript, starting at a line and byte offset."""
    reader = ClaudeCode().reader(Session("claude-code", session, kind), shorten=shorten)
    return list(reader.read(split(io.BytesIO(jsonl(records)), start_line=start[0], start_byte=start[1])))


def turns(*records: object, kind: SessionKind = SessionKind.MAIN, shorten: bool = True) -> list[Turn]:
    """Return the turns of a transcript."""
    return [event for event in read(*records, kind=kind, shorten=shorten) if isinstance(event, Turn)]


def notes(events: Sequence[Event], fact: Fact) -> list[tuple[int, str]]:
    """Return the line and the value of every note of one fact."""
    return [(event.line, event.value) for event in events if isinstance(event, Note) and event.fact is fact]


def skipped(*records: object) -> list[tuple[int, str]]:
    """Return the line and the reason of every skip."""
    return [(event.line, event.reason) for event in read(*records) if isinstance(event, Skipped)]


def author(content: object, **fields: object) -> tuple[Speaker, Kind, str]:
    """Return the speaker, kind and text of the only turn of a user record."""
    (turn,) = turns(user(content, **fields))
    return turn.speaker, turn.kind, turn.text
