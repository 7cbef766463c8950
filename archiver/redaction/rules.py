"""All rules for secrets: the rules of gitleaks, from `gitleaks.json`, and Palaver's own rules."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from .assignments import ASSIGNMENTS
from .blocks import BLOCKS
from .credentials import CREDENTIALS
from .mentions import MENTIONS
from .rule import AllowList, Rule
from .vendor_tokens import TOKENS

VERSION = "6"
"""Version of the rules. Increase it with each change, so that text redacted by older rules is redacted again."""

GITLEAKS = Path(__file__).with_name("gitleaks.json")


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule. If matches overlap, the earlier rule determines the kind."""
    return (*CREDENTIALS, *_gitleaks(), *TOKENS, *ASSIGNMENTS, *BLOCKS, *MENTIONS)


def _gitleaks() -> Iterator[Rule]:
    data = orjson.loads(GITLEAKS.read_bytes())
    everywhere = _allowed(data["allowed"])
    for rule in data["rules"]:
        yield Rule(
            kind=rule["kind"],
            pattern=rule["pattern"],
            keywords=tuple(rule["keywords"]),
            group=rule.get("group", 0),
            entropy=rule.get("entropy", 0.0),
            allowed=(everywhere, *map(_allowed, rule.get("allowed", []))),
        )


def _allowed(data: dict[str, Any]) -> AllowList:
    patterns, words = tuple(data.get("patterns", [])), tuple(data.get("words", []))
    return AllowList(patterns, words, data.get("target", "secret"))
