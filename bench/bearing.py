"""Judge whether an injected line bears on what a session did afterwards.

A line about a file bears if the session touched this file, or if a prompt or a final answer names it. Any other line
bears if the session touched at least half of the files that it cites, or if prompts and final answers contain words of
the line with at least 40 % of its information. The information of a word is its inverse document frequency: the
logarithm of the number of sessions by the number of sessions with this word.

`python -m bench.context` shows how often the judge agrees with readers, who rated the lines in `context_ratings.json`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from palaver.core.conversation import Exchange

_INFORMATION_MIN: Final = 0.4
_FILES_MIN: Final = 0.5
"""Minimum shares of the information and of the cited files of a line that bears.

Both were chosen on the training split of the rated lines.
"""
_WORD: Final = re.compile(r"[^\W\d_][\w.-]{3,}")


class Followed(Struct, frozen=True):
    """Work of a session after a line was injected.

    Attributes:
        files: Last two path parts of each touched file.
        words: Words of the prompts and final answers.
    """

    files: frozenset[tuple[str, ...]]
    words: frozenset[str]


class BearingJudge:
    """Judge of injected lines. It weights each word by the number of sessions in which the word occurs."""

    def __init__(self, sessions: Iterable[Sequence[Exchange]]) -> None:
        self._sessions, self._with = 0, Counter[str]()
        for exchanges in sessions:
            self._sessions += 1
            self._with.update(followed(exchanges).words)

    def bears(self, text: str, cited: Sequence[str], after: Followed) -> bool:
        """Return whether a line with this text, from an observation that cites these files, bears on the work."""
        touched = sum(any(_is_same(path, file) for file in after.files) for path in cited)
        if cited and touched / len(cited) >= _FILES_MIN:
            return True
        words = _words([text])
        information = sum(map(self._information, words))
        return information > 0 and sum(map(self._information, words & after.words)) / information >= _INFORMATION_MIN

    def _information(self, word: str) -> float:
        return math.log((self._sessions + 1) / max(1, self._with[word]))


def file_bears(path: str, after: Followed) -> bool:
    """Return whether a line about this file was relevant: whether the later work used or named the file."""
    return any(_is_same(path, file) for file in after.files) or _tail(path)[-1].lower() in after.words


def followed(exchanges: Sequence[Exchange], *, without_prompt: bool = False) -> Followed:
    """Return the work of these exchanges, optionally without the words of the first prompt."""
    texts = [text for each in exchanges for text in (each.prompt, each.answer)]
    files = {_tail(path) for each in exchanges for path in (*each.reads, *each.writes)}
    return Followed(frozenset(files), _words(texts[1:] if without_prompt else texts))


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower().strip(".-_") for text in texts for word in _WORD.findall(text))


def _tail(path: str) -> tuple[str, ...]:
    return tuple(path.replace("\\", "/").rsplit("/", 2)[-2:])


def _is_same(path: str, file: tuple[str, ...]) -> bool:
    """Return whether a path can be that of a file. `file` contains the last two parts of the file's path."""
    parts = _tail(path)
    length = min(len(parts), len(file))
    return parts[-length:] == file[-length:]
