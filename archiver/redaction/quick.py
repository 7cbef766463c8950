"""Quick look: whether a short text can hold a secret at all. Loading the rules takes 30 ms, so this goes first."""

import re

_LONG = 16
"""Characters from which on a word may show by itself that it is a secret: no rule asks for fewer."""
_SHORT = 6
_NAMED = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|=|://")
_PLAIN = re.compile(r"[0-9a-f-]+|[^\W\d_]+")
"""Ids, commits and words, which no rule takes for a secret where no name tells of one."""
_JOINTS = re.compile(r"[/\\.]")


def may_hold(text: str) -> bool:
    """Return whether a text can hold a secret."""
    words = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]
    return any(len(word) >= _LONG and not _PLAIN.fullmatch(word) for word in words) or bool(
        words and _NAMED.search(text)
    )


def name_may_hold(name: str) -> bool:
    """Return whether the name of a project, file or session can hold a secret."""
    return may_hold(_JOINTS.sub(" ", name))
