"""Selection of the open items and next steps of session cards that a reader understands without the session."""

import re
from typing import Final

from .observation import NEXT, OPEN

_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_NAME: Final = re.compile(r"\w[/._]\w|\d{2}|`|--\w|[a-z][A-Z]")
"""Pattern for a part of a path, a number, an option, or a name in code."""
_WORDS_MIN: Final = 2
"""Minimum number of telling words, or names, of an item that states its subject."""
_EMPTY: Final = frozenset(
    "about after again ahead also approach before commit continue could each first from going have into just like more"
    " need next once option prefer proceed push ready should some still that their them then there these they thing"
    " things this those want what when whenever where whether which will with work would your yours".split()
)
"""Words that name no subject, as in "push whenever ready" and "which approach would you prefer"."""
_QUESTION: Final = "Question to the user: "
_INTERRUPTED: Final = "The user interrupted the work on "
_FAILED: Final = re.compile(r"The last (?:check|command), .+, failed\Z")
_COMMAND: Final = re.compile(r"The last command, .+, failed\Z")


def is_open_item(fact: str) -> bool:
    """Return whether a fact of a card is an open item or a next step that names its subject.

    The last command of a session, such as a failed look-up, is no work. A question to the user needs its question mark.
    """
    if not fact.startswith((OPEN, NEXT)):
        return False
    text = _text(fact)
    if _COMMAND.match(text) or (text.startswith(_QUESTION) and "?" not in text):
        return False
    stated = text.removeprefix(_QUESTION).removeprefix(_INTERRUPTED)
    words = {word.lower() for word in _WORD.findall(stated)} - _EMPTY
    return len(words) + len(_NAME.findall(stated)) >= _WORDS_MIN


def is_end_state(fact: str) -> bool:
    """Return whether a fact states where a session stopped: its next step, a question, an interruption, a failed check.

    A later session on the same branch starts from there, so it replaces this fact.
    """
    text = _text(fact)
    return fact.startswith(NEXT) or text.startswith((_QUESTION, _INTERRUPTED)) or _FAILED.match(text) is not None


def _text(fact: str) -> str:
    return fact.removeprefix(OPEN).removeprefix(NEXT)
