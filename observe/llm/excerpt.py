"""Excerpts of an exchange or a session for a language model.

An exchange is shown as prompts, answers, one line per tool call, and the errors of failed calls. A session is shown as
prompts, the last answer to each, and recaps by the agent's program. Leaving out the output of successful calls saves
nine tenths of the tokens. It also keeps text of web pages and programs away from the model.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Speaker, Turn
from ...core.text import visible

ERROR: Final = "error"
"""Speaker label of the output of a failed tool call."""
EXCERPT_CHARS: Final = 24_000
"""Maximum length of an excerpt, far below 100,000 tokens, where some models become more expensive."""
SESSION_CHARS: Final = 48_000
"""Maximum length of the excerpt of a session."""
_PASSAGE_CHARS: Final = {"human": 6_000, "task": 6_000, "assistant": 3_000, "call": 160, ERROR: 800}
"""Maximum length of a passage of each speaker."""
_BEFORE_CHARS: Final = 1_200
"""Maximum length of the answer before the prompt of an exchange."""
_SESSION_PASSAGE_CHARS: Final = (2_400, 1_200, 600, 300)
"""Maximum lengths of a passage of a session. The first length with which the session fits is used."""
_MIN_CHARS: Final = 200
"""Minimum characters of an exchange that is sent to the model. An exchange that changed files is always sent."""


class Passage(Struct, frozen=True):
    """Text of one turn, shortened for the model. Quotes are verified in the original `turn`."""

    line: int
    voice: str
    text: str
    turn: Turn


class Excerpt(Struct, frozen=True):
    """Excerpt of an exchange: its passages in order.

    `left_out` passages are omitted before the passage with index `gap`. `root` is the folder of the session with a
    slash, which is omitted from the paths in the passages.
    """

    passages: tuple[Passage, ...]
    gap: int = 0
    left_out: int = 0
    root: str = ""


def shorten(exchange: Exchange, folder: str = "") -> Excerpt:
    """Return the excerpt of an exchange. A long exchange is shortened to its beginning and its end.

    Paths in `folder` are shown relative to it.
    """
    root = _root(folder)
    return _fit(tuple(_passages(exchange, root)), EXCERPT_CHARS, root)


def last_answer(exchange: Exchange) -> str:
    """Return the last text of the assistant in an exchange, shortened, or an empty text."""
    answers = [turn for turn in exchange.active_turns if _voice(turn) == "assistant"]
    return _truncate(visible(answers[-1].text).strip(), _BEFORE_CHARS) if answers else ""


def shorten_session(exchanges: Sequence[Exchange], folder: str = "") -> Excerpt:
    """Return the excerpt of a session. Paths in `folder` are shown relative to it.

    A long session has shorter passages, and a very long one is cut in the middle.
    """
    root = _root(folder)
    every = tuple(passage for exchange in exchanges for passage in _session_passages(exchange, root))
    for chars in _SESSION_PASSAGE_CHARS:
        every = tuple(Passage(each.line, each.voice, _truncate(each.text, chars), each.turn) for each in every)
        if sum(len(each.text) for each in every) <= SESSION_CHARS:
            break
    return _fit(every, SESSION_CHARS, root)


def is_worth_asking(exchange: Exchange, excerpt: Excerpt) -> bool:
    """Return whether an exchange is sent to the model: it changed files, or is longer than a status message."""
    chars = sum(len(passage.text) for passage in excerpt.passages if passage.voice not in {"call", ERROR})
    return bool(exchange.writes) or chars >= _MIN_CHARS


def _passages(exchange: Exchange, root: str) -> Iterator[Passage]:
    turns = exchange.active_turns
    failed = {turn.call for turn in turns if turn.kind is Kind.RESULT and turn.failed and turn.call}
    for turn in turns:
        voice = _voice(turn)
        if not voice:
            continue
        text = _shown(turn, root)
        if voice == "call":
            text = " ".join(text.split())
        text = _truncate(text, _PASSAGE_CHARS[voice])
        if turn.call in failed and voice == "call":
            text += " [failed]"
        if text:
            yield Passage(turn.line, voice, text, turn)


def _session_passages(exchange: Exchange, root: str) -> Iterator[Passage]:
    turns = exchange.active_turns
    answers = [turn for turn in turns if _voice(turn) == "assistant"]
    for turn in turns:
        recap = turn.kind in {Kind.COMPACTION, Kind.RECAP}
        is_last_answer = bool(answers) and (turn is answers[-1] or bool(turn.group and turn.group == answers[-1].group))
        voice = "recap" if recap else _voice(turn)
        if recap or voice in {"human", "task"} or (voice == "assistant" and is_last_answer):
            text = _shown(turn, root)
            if text:
                yield Passage(turn.line, voice, text, turn)


def _shown(turn: Turn, root: str) -> str:
    text = visible(turn.text).strip()
    return text.replace(root, "") if root else text


def _root(folder: str) -> str:
    """Return a folder with a slash at its end, or an empty text for no folder and for the root of all files."""
    return f"{folder.rstrip('/')}/" if folder.strip("/") else ""


def _fit(every: tuple[Passage, ...], chars: int, root: str) -> Excerpt:
    """Return the passages if they fit into a number of characters. Otherwise omit passages in the middle."""
    if sum(len(passage.text) for passage in every) <= chars:
        return Excerpt(every, root=root)
    head = _count_fitting(every, chars // 3)
    tail = _count_fitting(every[: head - 1 if head else None : -1], chars - chars // 3)
    return Excerpt(every[:head] + every[len(every) - tail :], head, len(every) - head - tail, root)


def _voice(turn: Turn) -> str:
    """Return the speaker label for the model, or an empty string for an omitted turn.

    The user's answer to a tool's question is a tool result, but has the label of the user.
    """
    match turn.kind, turn.speaker:
        case (Kind.PROMPT, Speaker.HUMAN) | (Kind.RESULT, Speaker.HUMAN):
            return "human"
        case (Kind.PROMPT, _):
            return "task"
        case (Kind.PROSE, Speaker.ASSISTANT):
            return "assistant"
        case (Kind.CALL, _):
            return "call"
        case (Kind.RESULT, _) if turn.failed:
            return ERROR
        case _:
            return ""


def _truncate(text: str, chars: int) -> str:
    """Return the beginning and the end of a text, which usually contain the question and the conclusion."""
    if len(text) <= chars:
        return text
    end = chars // 3
    return f"{text[: chars - end]} … {text[-end:]}"


def _count_fitting(passages: tuple[Passage, ...], chars: int) -> int:
    """Return the number of leading passages that fit into a number of characters."""
    for count, passage in enumerate(passages):
        chars -= len(passage.text)
        if chars < 0:
            return count
    return len(passages)
