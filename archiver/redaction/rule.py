"""Rule for one kind of secret."""

from typing import Literal

from msgspec import Struct

Target = Literal["secret", "match", "line"]


class Allowed(Struct, frozen=True):
    """What is no secret after all: `target` (see `Rule`) contains one of the patterns or, in any case, the words."""

    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    target: Target = "secret"


class Rule(Struct, frozen=True):
    """One kind of secret. All patterns are RE2's.

    A text that has none of `signs` (matched in any case) cannot hold a secret of this kind. Of each match of `pattern`
    the secret is the group with number `group`; with 0, the first group that took part, or the whole match. It counts
    if its entropy is above `entropy` bits per character and no `allowed` speaks for the secret, the match or its line.
    With `within`, `pattern` matches only inside the matches of `within`, such as each cell of a table.
    """

    kind: str
    pattern: str
    signs: tuple[str, ...]
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[Allowed, ...] = ()
    within: str = ""
