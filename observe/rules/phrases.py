"""Which phrases are looked for? Lists of them as a person can read them, made into patterns.

A list is a regular expression whose alternatives may be spread over lines: line ends, and blanks around `|`, mean
nothing.
"""

import re


def anywhere(listed: str) -> re.Pattern[str]:
    """One of the phrases as whole words, wherever it stands."""
    return re.compile(rf"(?<!\w)(?:{_joined(listed)})(?!\w)", re.IGNORECASE)


def opening(listed: str) -> re.Pattern[str]:
    """One of the phrases as whole words at the very beginning."""
    return re.compile(rf"\A(?:{_joined(listed)})(?!\w)", re.IGNORECASE)


def all_of_it(listed: str) -> re.Pattern[str]:
    """One of the phrases and nothing else but a closing mark."""
    return re.compile(rf"\A(?:{_joined(listed)})[.!:]*\Z", re.IGNORECASE)


def _joined(listed: str) -> str:
    return re.sub(r" ?\| ?", "|", " ".join(listed.split()))
