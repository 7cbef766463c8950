"""Replies that a server sends in pieces. Reading ends early if the text repeats itself, as small models' texts do."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from .model_errors import ModelBusy, ReplyInvalid

_UNIT_MAX: Final = 160
"""Maximum characters of a piece of text that counts as repeated."""
_REPEATED: Final = 640
"""Minimum characters that consist of repetitions of one piece only."""
_STEP: Final = 64
"""Number of new characters after which the text is checked again."""


def assembled(chunks: Iterable[bytes]) -> str:
    """Return the events of a chat completion as one completion, in JSON.

    Raises:
        ModelBusy: The stream ended before the reply.
        ReplyInvalid: The text repeats itself. The rest was not read, so the server stops writing it.
    """
    text, checked = "", 0
    reason: str | None = None
    usage: dict[str, Any] | None = None
    for event in _events(chunks):
        if event.get("error"):
            raise ModelBusy(f"the model failed: {str(event['error'])[:300]}", maybe_charged=True)
        usage = event.get("usage") or usage
        choices: list[dict[str, Any]] = event.get("choices") or []
        for choice in choices:
            delta: dict[str, Any] = choice.get("delta") or {}
            text += str(delta.get("content") or "")
            reason = choice.get("finish_reason") or reason
        if len(text) - checked >= _STEP:
            checked = len(text)
            if repeats_itself(text):
                raise ReplyInvalid("the reply repeats itself", text)
    if reason is None:
        raise ModelBusy("the answer could not be read: it ended early", maybe_charged=True)
    completion: dict[str, Any] = {"choices": [{"message": {"content": text}, "finish_reason": reason}], "usage": usage}
    return orjson.dumps(completion).decode()


def repeats_itself(text: str) -> bool:
    """Return whether a text ends with one short piece again and again, such as white space or one sentence."""
    end = text[-_REPEATED:]
    return len(end) == _REPEATED and any(end[unit:] == end[:-unit] for unit in range(1, _UNIT_MAX + 1))


def _events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each event."""
    left = b""
    for chunk in chunks:
        *lines, left = (left + chunk).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data.startswith(b"{"):
                yield orjson.loads(data)
