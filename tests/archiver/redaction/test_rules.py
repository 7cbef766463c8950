"""Is each rule whole, and does the look at its signs lose nothing?"""

import hashlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.redaction import VERSION, scanner
from palaver.archiver.redaction.rules import Rule, rules

from .planted import HEX

FINGERPRINT = "unknown"
"""Of the rules of this `VERSION`. When this changes, the version has to."""

ROOT = Path(__file__).parents[3]
NUMBERED = list(enumerate(rules()))


def test_version_names_the_rules() -> None:
    """Rules that changed have another version, so that texts redacted by older ones are found."""
    assert (VERSION, hashlib.sha256(repr(rules()).encode()).hexdigest()[:16]) == ("1", FINGERPRINT)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.kind)
def test_rule_works(rule: Rule) -> None:
    """Each rule has signs and patterns that RE2 can run, names its kind as placeholders can, and is silent on nothing."""
    assert rule.signs
    assert re.fullmatch("[a-z0-9-]{1,64}", rule.kind)
    assert list(scanner.Detector(rule).find(b"")) == []
    assert all(scanner.speaking_for(allowed) for allowed in rule.allowed)


def spelled_for_python(pattern: str) -> str:
    """RE2's notation in Python's: flags in the middle of a group get a group of their own."""
    pattern = pattern.replace(r"\z", r"\Z")
    while (at := pattern.find("(?i)", 1)) > 0:
        depth, end = 0, at + 4
        while end < len(pattern) and depth >= 0:
            depth += {"(": 1, ")": -1}.get(pattern[end], 0) if pattern[end - 1] != "\\" else 0
            end += depth >= 0
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    return pattern


@pytest.mark.parametrize(("number", "rule"), NUMBERED, ids=[rule.kind for rule in rules()])
def test_signs_lose_nothing(number: int, rule: Rule) -> None:
    """Whatever a rule matches has a sign of it."""
    pattern = scanner.compiled(rule.pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            texts = st.from_regex(re.compile(spelled_for_python(rule.pattern), re.ASCII))
        except re.error:
            pytest.skip("Python cannot read the pattern")
    matched = 0

    @settings(max_examples=8, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(texts)
    def check(text: str) -> None:
        nonlocal matched
        encoded = text.encode(errors="surrogatepass")
        if pattern.search(encoded):
            matched += 1
            assert number in scanner.signs().rules(encoded)

    check()
    assert matched


def test_import_is_cheap() -> None:
    """Importing the package reads no rules and loads no RE2; the first text does."""
    program = "import sys; before = {*sys.modules}; import palaver.archiver.redaction as made; "
    program += "print('re2' in sys.modules, any(name.endswith('credentials') for name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert ran.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "archiver" / "redaction").glob("*.*"), *Path(__file__).parent.glob("*.py")],
    ids=lambda path: path.name,
)
def test_no_scanner_finds_us(path: Path) -> None:
    """Neither the rules nor their tests hold anything that a scanner takes for a token or a key."""
    found = [kind for _, _, kind in scanner.scan(path.read_bytes()) if kind not in {"assignment", "authorization"}]

    assert found == []


def test_scan_without_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where RE2 gives up on the set of signs, every rule looks for itself."""
    text = ("dop" + "_v1_" + HEX * 4).encode()
    found = scanner.scan(text)

    class Exhausted:
        def Match(self, text: bytes) -> None:  # noqa: N802
            return None

    monkeypatch.setattr(scanner.signs(), "_set", Exhausted())

    assert [kind for _, _, kind in found] == ["digitalocean-pat"]
    assert scanner.scan(text) == found
