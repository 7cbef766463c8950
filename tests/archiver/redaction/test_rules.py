"""Each rule is valid, and its keywords miss no match."""

import hashlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from string import printable
from typing import Any

import pytest

from palaver.archiver.redaction import VERSION, scanner
from palaver.archiver.redaction.rules import Rule, rules

from ...cases import for_each
from .planted import HEX

FINGERPRINT = "269d6c99dbae382a"
"""Digest of the rules of this `VERSION`. Change the version whenever the digest changes."""

PRINTABLE = [each for each in printable if each not in "\x0b\x0c"]
ROOT = Path(__file__).parents[3]
BESIDE = {"airtable-personnal-access-token", "facebook-access-token"}
"""Rules of gitleaks that require the name of the service beside the secret."""
NUMBERED = [(number, rule) for number, rule in enumerate(rules()) if rule.kind not in BESIDE]


def test_changed_rules_have_a_new_version() -> None:
    """Changed rules have a new version, so that texts redacted by older rules are found."""
    assert (VERSION, hashlib.sha256(repr(rules()).encode()).hexdigest()[:16]) == ("8", FINGERPRINT)


@for_each("rule", rules(), label=lambda rule: rule.kind)
def test_rules_are_valid(rule: Rule) -> None:
    """Each rule has keywords, patterns that RE2 supports and a kind that fits into placeholders."""
    assert rule.keywords
    assert re.fullmatch("[a-z0-9-]{1,64}", rule.kind)
    assert list(scanner.Detector(rule).find(b"")) == []
    assert all(scanner.allow_pattern(allowed) for allowed in rule.allowed)


def spelled_for_python(pattern: str) -> str:
    """Return an RE2 pattern in Python's notation, with separate groups for flags."""
    pattern = pattern.replace(r"\z", r"\Z")
    while (at := pattern.find("(?i)", 1)) > 0:
        depth, end = 0, at + 4
        while end < len(pattern) and depth >= 0:
            depth += {"(": 1, ")": -1}.get(pattern[end], 0) if pattern[end - 1] != "\\" else 0
            end += depth >= 0
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    return pattern


def example(parsed: Any, source: random.Random) -> str:
    """Generate a text that a parsed pattern may match. Assertions are ignored."""
    made = ""
    for name, value in parsed:
        match str(name):
            case "LITERAL":
                made += chr(value)
            case "ANY":
                made += "."  # Most patterns use a dot for a literal dot.
            case "NOT_LITERAL":
                made += source.choice("xY7-")
            case "IN":
                made += source.choice(fitting(tuple(value)))
            case "BRANCH":
                made += example(source.choice(value[1]), source)
            case "SUBPATTERN":
                made += example(value[-1], source)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = value
                for _ in range(source.randint(least, min(most, least + 3))):
                    made += example(inner, source)
            case _:
                pass
    return made


@cache
def fitting(members: tuple[Any, ...]) -> list[str]:
    """Return the printable ASCII characters in a parsed character set, or its first member."""
    pattern = "".join(one_of(members))
    return [each for each in PRINTABLE if re.fullmatch(pattern, each)] or [pattern[1]]


def one_of(members: Any) -> Iterator[str]:
    """Return a parsed character set as a pattern."""
    negated = str(members[0][0]) == "NEGATE"
    yield "[^" if negated else "["
    for name, value in members[negated:]:
        match str(name):
            case "LITERAL":
                yield re.escape(chr(value))
            case "RANGE":
                yield f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case _:
                yield {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}.get(str(value), r"\S")
    yield "]"


@for_each("number, rule", NUMBERED, label=lambda numbered: numbered[1].kind)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_keywords_miss_no_match(number: int, rule: Rule) -> None:
    """Every match of a rule contains one of its keywords."""
    whole = rule.within or rule.pattern
    pattern, source = scanner.compiled(whole), random.Random(1)
    parsed = import_module("re._parser").parse(spelled_for_python(whole), re.ASCII)
    texts = [f" {example(parsed, source)} ".encode() for _ in range(50)]
    matched = [text for text in texts if pattern.search(text)]

    assert matched
    assert all(number in scanner.keyword_index().rules(text) for text in matched)


def test_import_is_cheap() -> None:
    """Importing the package does not load RE2 or the rules of gitleaks. The first redaction does."""
    program = "import sys; from palaver.archiver.redaction.rules import rules; "
    program += "print('re2' in sys.modules, rules.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert ran.stdout.split() == ["False", "0"]


@for_each(
    "path",
    [*(ROOT / "archiver" / "redaction").glob("*.*"), *Path(__file__).parent.glob("*.py")],
    label=lambda path: path.name,
)
def test_no_scanner_finds_secrets_in_the_repository(path: Path) -> None:
    """The rules and their tests contain no text that a scanner reports as a token or a key."""
    found = [kind for _, _, kind in scanner.scan(path.read_bytes()) if kind not in {"assignment", "authorization"}]

    assert found == []


def test_scan_without_keyword_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """If RE2 cannot search the keyword set, every rule searches the text."""
    text = ("dop" + "_v1_" + HEX * 4).encode()
    found = scanner.scan(text)

    class Exhausted:
        def Match(self, _: bytes) -> None:  # noqa: N802
            return None

    monkeypatch.setattr(scanner.keyword_index(), "_set", Exhausted())

    assert [kind for _, _, kind in found] == ["digitalocean-pat"]
    assert scanner.scan(text) == found
