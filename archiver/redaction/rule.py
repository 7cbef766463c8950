"""Rule for one kind of secret."""

from typing import Literal

from msgspec import Struct

Target = Literal["secret", "match", "line"]


class AllowList(Struct, frozen=True):
    """Exceptions: no secret if `target` (see `Rule`) matches one of the patterns, or one of the words in any case."""

    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    target: Target = "secret"


class Rule(Struct, frozen=True):
    """One kind of secret. All patterns are RE2 syntax.

    A text without a match of `keywords` (in any case) has no secret of this kind. The secret is the group `group` of a
    match of `pattern`; with 0, the first group that took part, or the whole match. It counts if its entropy is above
    `entropy` bits per character and no `allowed` matches the secret, the match or its line. With `within`, `pattern`
    is only searched inside the matches of `within`, for example in each cell of a table.
    """

    kind: str
    pattern: str
    keywords: tuple[str, ...]
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[AllowList, ...] = ()
    within: str = ""
