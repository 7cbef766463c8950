"""What a secret looks like: the rules of gitleaks, read from `gitleaks.json`, and our own."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

VERSION = "6"
"""Changes whenever any rule does, so that what was redacted by older rules can be told and redacted again."""

GITLEAKS = Path(__file__).with_name("gitleaks.json")

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


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule; where findings overlap, the earlier rule names the kind."""
    from .assignments import ASSIGNMENTS
    from .blocks import BLOCKS
    from .credentials import CREDENTIALS
    from .mentions import MENTIONS
    from .tokens import TOKENS

    return (*CREDENTIALS, *_gitleaks(), *TOKENS, *ASSIGNMENTS, *BLOCKS, *MENTIONS)


def _gitleaks() -> Iterator[Rule]:
    import orjson

    data = orjson.loads(GITLEAKS.read_bytes())
    everywhere = _allowed(data["allowed"])
    for rule in data["rules"]:
        yield Rule(
            kind=rule["kind"],
            pattern=rule["pattern"],
            signs=tuple(rule["signs"]),
            group=rule.get("group", 0),
            entropy=rule.get("entropy", 0.0),
            allowed=(everywhere, *map(_allowed, rule.get("allowed", []))),
        )


def _allowed(data: dict[str, Any]) -> Allowed:
    patterns, words = tuple(data.get("patterns", [])), tuple(data.get("words", []))
    return Allowed(patterns, words, data.get("target", "secret"))
