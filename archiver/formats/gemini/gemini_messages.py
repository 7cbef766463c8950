"""Text of Gemini CLI's messages and tool results."""

import re

from ...files.lines import Record
from ..json_values import first_string, joined_text, mapping, mappings, media_label, string

_COMMAND = re.compile(r"\?|/[a-z][\w:-]*(?:\s.*)?", re.DOTALL | re.IGNORECASE)
_ENVELOPES = ("<session_context>", "<hook_context>")


def text_of(content: object) -> str:
    """Return the text of a message, with type and size in place of pictures and files."""
    return joined_text(content, _part_text)


def is_command(text: str) -> bool:
    """Return whether a text is a command to the program, or context that the program added."""
    return _COMMAND.fullmatch(text) is not None or text.startswith(_ENVELOPES)


def result_of(call: Record) -> str:
    """Return the result of a call: the response to the model or, without a response, the displayed text."""
    responses = [mapping(part.get("functionResponse")) for part in mappings(call.get("result"))]
    answers = [first_string(mapping(response.get("response")), "output", "error") for response in responses]
    shown = call.get("resultDisplay")
    answer = "\n".join(filter(None, answers)) or text_of(call.get("result"))
    return answer or string(shown) or string(mapping(shown).get("fileDiff"))


def _part_text(part: Record) -> str:
    data = mapping(part.get("inlineData")) or mapping(part.get("fileData"))
    if data:
        return media_label(string(data.get("mimeType")) or "file", data.get("data"))
    return "" if part.get("thought") is True else string(part.get("text"))
