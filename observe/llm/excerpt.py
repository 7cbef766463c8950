"""What of an exchange a model is shown: words of people and assistants, calls on one line, nothing that tools printed.

Leaving out what tools printed saves nine tenths of the tokens, and what a web page or a program says never speaks to
the model with a voice of its own.
"""

import unicodedata
from collections.abc import Iterator

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Speaker, Turn
from ...core.text import readable, without_ansi

ROOM = 24_000
"""Characters of one excerpt. With our own words far below the 100,000 tokens from which some models cost more."""
_ROOMS = {Kind.PROMPT: 6_000, Kind.PROSE: 3_000, Kind.RESULT: 1_500, Kind.CALL: 160}
_LEAST = 200
"""Characters that must have been said before an exchange is worth a call, unless files changed."""


class Passage(Struct, frozen=True):
    """One turn as the model sees it. `turn` is the source in which a quote must stand."""

    line: int
    voice: str
    text: str
    turn: Turn


class Excerpt(Struct, frozen=True):
    """The passages of an exchange in order. `left_out` passages in the middle had no room, before passage `gap`."""

    passages: tuple[Passage, ...]
    gap: int = 0
    left_out: int = 0


def excerpt(exchange: Exchange) -> Excerpt:
    """Shorten an exchange to what can teach something: the beginning and the end, when not all has room."""
    every = tuple(_passages(exchange))
    if sum(len(passage.text) for passage in every) <= ROOM:
        return Excerpt(every)
    head = _fitting(every, ROOM // 3)
    tail = _fitting(every[: head - 1 if head else None : -1], ROOM - ROOM // 3)
    return Excerpt(every[:head] + every[len(every) - tail :], head, len(every) - head - tail)


def worth_asking(exchange: Exchange, shown: Excerpt) -> bool:
    """Whether something can have been learned here: files changed, or more was said than a status."""
    said = sum(len(passage.text) for passage in shown.passages if passage.voice != "call")
    return bool(exchange.writes) or said >= _LEAST


def _passages(exchange: Exchange) -> Iterator[Passage]:
    turns = tuple(turn for turn in exchange.turns if turn.active) or exchange.turns
    failed = {turn.call for turn in turns if turn.kind is Kind.RESULT and turn.failed and turn.call}
    for turn in turns:
        voice = _voice(turn)
        if not voice:
            continue
        text = visible(turn.text).strip()
        if voice == "call":
            text = " ".join(text.split())
        text = _cut(text, _ROOMS[turn.kind])
        if turn.call in failed and voice == "call":
            text += " [failed]"
        if text:
            yield Passage(turn.line, voice, text, turn)


def _voice(turn: Turn) -> str:
    """Who speaks; empty for what is not shown. A person answers through results of tools that ask."""
    match turn.kind, turn.speaker:
        case (Kind.PROMPT, Speaker.HUMAN) | (Kind.RESULT, Speaker.HUMAN):
            return "human"
        case (Kind.PROMPT, _):
            return "task"
        case (Kind.PROSE, Speaker.ASSISTANT):
            return "assistant"
        case (Kind.CALL, _):
            return "call"
        case _:
            return ""


def visible(text: str) -> str:
    """The text without signs that no reader sees and that could carry a hidden message."""
    plain = without_ansi(readable(text))
    if plain.isascii():
        return "".join(sign for sign in plain if sign.isprintable() or sign in "\n\t")
    return "".join(
        sign for sign in plain if sign in "\n\t" or unicodedata.category(sign) not in {"Cc", "Cf", "Co", "Cn"}
    )


def _cut(text: str, room: int) -> str:
    """The beginning and the end of a text: what was asked, and what was concluded."""
    if len(text) <= room:
        return text
    end = room // 3
    return f"{text[: room - end]} … {text[-end:]}"


def _fitting(passages: tuple[Passage, ...], room: int) -> int:
    """How many passages from the first on have room."""
    for count, passage in enumerate(passages):
        room -= len(passage.text)
        if room < 0:
            return count
    return len(passages)
