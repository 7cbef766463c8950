"""Records of small Codex rollouts, and helpers that read rollouts."""

from typing import Any

from palaver.archiver.formats import Event
from palaver.archiver.formats.codex import Codex
from palaver.core.conversation import Kind, Speaker, Turn

from .. import reading

SESSION = "019d0000-0000-7000-8000-000000000001"
PARENT = "019d0000-0000-7000-8000-000000000002"
TIME = "2026-03-01T10:00:00.000Z"
CALL = "call_Zx81kPq02LmNv7TyRw3sBd4e"
PATCH = "*** Begin Patch\n*** Update File: a.py\n\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
CODEX = Codex()


def line(kind: str, payload: dict[str, Any], /, **fields: Any) -> dict[str, Any]:
    """Return a record with its envelope: time, type and payload."""
    return {"timestamp": TIME, "type": kind, "payload": payload, **fields}


def meta(**fields: Any) -> dict[str, Any]:
    """Return a session header."""
    return line(
        "session_meta", {"id": SESSION, "cwd": "/home/demo/shop", "cli_version": "0.140.0", "source": "cli", **fields}
    )


def item(kind: str, /, **fields: Any) -> dict[str, Any]:
    """Return a response item: content that the model received or wrote."""
    return line("response_item", {"type": kind, **fields})


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    """Return an event message: content that was displayed to the user."""
    return line("event_msg", {"type": kind, **fields})


def completed_item(kind: str, /, **fields: Any) -> dict[str, Any]:
    """Return the event of a completed item, as in paginated histories."""
    return event("item_completed", item={"type": kind, "id": f"{kind}-019d0000-0000-7000-8000-00000000abcd", **fields})


def message_item(*texts: str, role: str = "user") -> dict[str, Any]:
    """Return a message as a response item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text} for text in texts])


def prompt_event(message: str, **fields: Any) -> dict[str, Any]:
    """Return a prompt as an event message."""
    return event("user_message", message=message, images=[], **fields)


def user_prompt(message: str) -> list[dict[str, Any]]:
    """Return a prompt as recorded by Codex: as a response item and as an event message."""
    return [message_item(message), prompt_event(message)]


def agent_reply(text: str) -> list[dict[str, Any]]:
    """Return a reply as recorded by Codex: as an event message and as a response item."""
    return [event("agent_message", message=text), message_item(text, role="assistant")]


def tool_call(name: str, arguments: object, call: str = CALL) -> dict[str, Any]:
    """Return a tool call."""
    return item("function_call", name=name, arguments=arguments, call_id=call)


def tool_output(output: object, call: str = CALL) -> dict[str, Any]:
    """Return the output of a tool."""
    return item("function_call_output", output=output, call_id=call)


def events(*records: object) -> list[Event]:
    """Return the events of a rollout with a session header."""
    return reading.events(CODEX, meta(), *records)


def turns(*records: object, shorten: bool = True) -> list[Turn]:
    """Return the turns of a rollout with a session header."""
    return reading.turns(CODEX, meta(), *records, shorten=shorten)


def summary(*records: object) -> list[tuple[Kind, str]]:
    """Return the kind and the text of each turn."""
    return [(turn.kind, turn.text) for turn in turns(*records)]


def authors(*records: object) -> list[tuple[Speaker, Kind, str]]:
    """Return the speaker, kind and text of each turn."""
    return [(turn.speaker, turn.kind, turn.text) for turn in turns(*records)]
