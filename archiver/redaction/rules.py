"""Rules for secrets: those of gitleaks, from `gitleaks.json`, and Palaver's own, from `secret_rules.json`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, structs

from ...core.runtime import read_data

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
    `pattern` is searched only inside matches of `within`. If `column` is set, `within` matches a table, and `pattern`
    is searched in each cell below a header that matches `column`.
    """

    kind: str
    pattern: str
    keywords: tuple[str, ...]
    group: int = 0
    entropy: float = 0.0
    allowed: tuple[AllowList, ...] = ()
    within: str = ""
    column: str = ""


VERSION = "8"
"""Version of the rules. Increase it with each change, so that text redacted by older rules is redacted again."""

GITLEAKS = Path(__file__).with_name("gitleaks.json")
_FRAGMENT = re.compile(r"@\{([\w-]+)\}")


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule. If matches overlap, the earlier rule determines the kind."""
    own = _OwnRules(read_data(__file__, "secret_rules.json", dict[str, Any]))
    return (*own.rules("forms"), *own.gitleaks(), *own.rules("contexts"))


class _Gitleaks(Struct):
    """Rules of gitleaks, and exceptions to all of them."""

    allowed: AllowList
    rules: tuple[Rule, ...]


class _OwnRules:
    """Rules of a file with named fragments, exceptions and groups of exceptions."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._fragments = dict[str, str]()
        fragments: Mapping[str, Mapping[str, Any]] = data["fragments"]
        for name, fragment in fragments.items():
            # A fragment uses only fragments before it.
            self._fragments[name] = self._pattern(fragment.get("pattern") or "|".join(fragment["any"]))
        self._exceptions = {name: self._allow_list(entry) for name, entry in data["exceptions"].items()}

    def rules(self, section: str) -> Iterator[Rule]:
        """Yield the rules of a section in order."""
        for rule in self._data[section]:
            excepted = {"patterns": rule["except"]} if "except" in rule else None
            yield Rule(
                kind=rule["kind"],
                pattern=self._pattern(rule["pattern"]),
                keywords=self._patterns(rule["keywords"]),
                group=rule.get("group", 0),
                entropy=rule.get("entropy", 0.0),
                allowed=(*self._named(rule.get("allowed", [])), *([self._allow_list(excepted)] if excepted else [])),
                within=self._pattern(rule.get("within", "")),
                column=self._pattern(rule.get("column", "")),
            )

    def gitleaks(self) -> Iterator[Rule]:
        """Yield the rules of gitleaks with the further exceptions of this file."""
        exceptions: Mapping[str, Sequence[str]] = self._data.get("gitleaks", {})
        gitleaks = read_data(__file__, GITLEAKS.name, _Gitleaks)
        for rule in gitleaks.rules:
            allowed = (gitleaks.allowed, *rule.allowed, *self._named(exceptions.get(rule.kind, [])))
            yield structs.replace(rule, allowed=allowed)

    def _pattern(self, pattern: str) -> str:
        return _FRAGMENT.sub(lambda match: self._fragments[match[1]], pattern)

    def _patterns(self, patterns: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self._pattern, patterns))

    def _named(self, names: Sequence[str]) -> Iterator[AllowList]:
        for name in names:
            if name in self._data["groups"]:
                yield from self._named(self._data["groups"][name])
            else:
                yield self._exceptions[name]

    def _allow_list(self, entry: Mapping[str, Any]) -> AllowList:
        return AllowList(self._patterns(entry["patterns"]), target=entry.get("target", "secret"))
