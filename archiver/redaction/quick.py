"""Quick check of short texts for possible secrets. It avoids loading all rules, which takes 30 ms."""

import re

from ...core.text import visible

_LONG = 16
"""Minimum length of a word that can be a secret without a name before it."""
_SHORT = 6
_NAMED = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|=|://")
_PLAIN = re.compile(r"[0-9a-f-]+|[^\W\d_]+")
"""Pattern for IDs, commit hashes and words. No rule matches these values unless a name precedes them."""
_JOINTS = re.compile(r"[/\\.]")


def may_contain_secret(text: str) -> bool:
    """Return whether a short text may contain a secret."""
    text = visible(text)
    words = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]
    return any(len(word) >= _LONG and not _PLAIN.fullmatch(word) for word in words) or bool(
        words and _NAMED.search(text)
    )


def name_may_contain_secret(name: str) -> bool:
    """Return whether the name of a project, file or session may contain a secret."""
    return may_contain_secret(_JOINTS.sub(" ", name))
