"""Rule for one kind of secret."""

from typing import Literal

from msgspec import Struct

Target = Literal["secret", "match", "line"]


class AllowList(Struct, frozen=True):
    """Exceptions to a rule.

    `target` selects the part of the text to check: the secret, the whole match, or the line of the match. If this part
    matches one of the patterns or contains one of the words (ignoring case), the match is not a secret.
    """

    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    target: Target = "secret"


class Rule(Struct, frozen=True):
    """Rule for one kind of secret. All patterns use RE2 syntax.

    A text without a match of `keywords` (ignoring case) is skipped. The secret is the group `group` of a match of
    `pattern`. If `group` is 0, the secret is the first group that is not empty, or the whole match. A secret is
    reported if its entropy is above `entropy` bits per character and no list in `allowed` excludes it. With `within`,
    `pattern` is searched only inside matches of `within`, for example in each cell of a table.
    """

    kind: str
    pattern: str
    keywords: tuple[str, ...]
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[AllowList, ...] = ()
    within: str = ""
