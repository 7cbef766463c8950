"""The parts of Gemini CLI's messages as text."""

import re

from ...files.lines import Record
from ..json_values import listing, mapping, string

_COMMAND = re.compile(r"\?|/[a-z][\w:-]*(?:\s.*)?", re.DOTALL | re.IGNORECASE)
_ENVELOPES = ("<session_context>", "<hook_context>")


def text_of(content: object) -> str:
    """The text of a message: text, a part, or a list of either; pictures and files as their type and size."""
    if isinstance(content, str):
        return content
    parts = listing(content) or [content]
    return "\n".join(filter(None, (part if isinstance(part, str) else _part(mapping(part)) for part in parts)))


def is_command(text: str) -> bool:
    """Whether a text asks the model nothing: a command to the program, or what the program tells of its own."""
    return _COMMAND.fullmatch(text) is not None or text.startswith(_ENVELOPES)


def output_of(call: Record) -> str:
    """What a call brought: what the model was told, else what the person was shown."""
    answers = [mapping(mapping(part).get("functionResponse")) for part in listing(call.get("result"))]
    told = [_answer(mapping(answer.get("response"))) for answer in answers]
    shown = call.get("resultDisplay")
    return "\n".join(filter(None, told)) or text_of(call.get("result")) or string(shown) or _changes(mapping(shown))


def _answer(response: Record) -> str:
    return string(response.get("output")) or string(response.get("error"))


def _changes(shown: Record) -> str:
    return string(shown.get("fileDiff"))


def _part(part: Record) -> str:
    data = mapping(part.get("inlineData")) or mapping(part.get("fileData"))
    if data:
        size = len(string(data.get("data"))) * 3 // 4096
        return f"[{string(data.get('mimeType')) or 'file'}, {size} KB]"
    return "" if part.get("thought") is True else string(part.get("text"))
