"""Messages of OpenCode 2, converted to the form of messages and parts that versions 1 use.

OpenCode 2 stores a message in one object, with the content of a reply in its field `content`.
"""

from ...files.lines import Record
from ..json_values import first_string, joined_text, mapping, mappings, string


def converted(kind: str, entry: Record) -> tuple[Record, list[Record]] | None:
    """Return a message of this type as its description and its parts. Return None for other types."""
    if kind == "user":
        files = [
            {"type": "file", "filename": first_string(each, "name", "uri")} for each in mappings(entry.get("files"))
        ]
        return {"role": "user", **entry}, [_text(entry), *files]
    if kind in {"synthetic", "skill"}:
        return {"role": "user", **entry}, [{**_text(entry), "synthetic": True}]
    if kind == "assistant":
        model = string(mapping(entry.get("model")).get("id"))
        parts = [_tool(each) if each.get("type") == "tool" else each for each in mappings(entry.get("content"))]
        return {**entry, "role": "assistant", "modelID": model, "error": _error(entry.get("error"))}, parts
    return None


def failure(error: object) -> str:
    """Return the message of an error, or else its kind."""
    return first_string(mapping(error), "message", "name", "type")


def output_of(content: object) -> str:
    """Return the text of a tool's or a command's output."""
    return joined_text(content, lambda part: first_string(part, "text", "output", "name", "uri"))


def _text(entry: Record) -> Record:
    return {"type": "text", "text": entry.get("text")}


def _error(error: object) -> Record:
    message = failure(error)
    return {"name": message, "data": {"message": message}} if message else {}


def _tool(part: Record) -> Record:
    state = mapping(part.get("state"))
    fields = {"output": output_of(state.get("content")), "error": failure(state.get("error"))}
    return {"type": "tool", "tool": part.get("name"), "callID": part.get("id"), "state": {**state, **fields}}
