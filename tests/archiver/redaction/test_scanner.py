"""Matches count as secrets according to group, entropy and exceptions."""

import pytest

from palaver.archiver.redaction import scanner
from palaver.archiver.redaction.rules import AllowList, Rule, Target
from palaver.archiver.redaction.scanner import Detector


def found(rule: Rule, text: str) -> list[str]:
    data = text.encode()
    return [data[start:end].decode() for start, end in Detector(rule).find(data)]


def test_secret_is_the_first_group_that_took_part() -> None:
    """Without a group number, the secret is the first group with text. Without groups, it is the whole match."""
    assert found(Rule("x", "a=(b)?(c)?", ()), "a=c") == ["c"]
    assert found(Rule("x", "a=c", ()), "a=c") == ["a=c"]


def test_group_by_number() -> None:
    """A rule may specify the number of the group that contains the secret."""
    assert found(Rule("x", "(a)=(c)", (), group=2), "a=c") == ["c"]


def test_entropy_must_exceed() -> None:
    """A secret counts only if its entropy exceeds the limit."""
    assert scanner.entropy(b"aabb") == 1.0
    assert found(Rule("x", "[ab]+", (), entropy=1.0), "aabb") == []
    assert found(Rule("x", "[ab]+", (), entropy=0.99), "aabb") == ["aabb"]


@pytest.mark.parametrize(("target", "kept"), [("secret", ["1", "2"]), ("match", ["1"]), ("line", [])])
def test_exceptions_apply_to_their_target(target: Target, kept: list[str]) -> None:
    """An exception is searched in the secret, in the match, or in the line around the match."""
    rule = Rule("x", r"key\w*=(\d)", (), allowed=(AllowList(patterns=("board", "TEST"), target=target),))

    assert found(rule, "key=1 keyboard=2 TEST") == kept


def test_words_match_in_any_case() -> None:
    """Words of an allow list match literally, ignoring case."""
    rule = Rule("x", r"key=(\S+)", (), allowed=(AllowList(words=("a.c",)),))

    assert found(rule, "key=1A.C key=abc") == ["abc"]


def test_line_of_a_match_is_limited() -> None:
    """The line of a match extends to the line breaks, up to a maximum length."""
    assert scanner.line(b"ab\ncd\nef", (3, 4)) == (3, 5)
    assert scanner.line(b"x" * 2000, (1000, 1001)) == (1000 - scanner.NEAR, 1001 + scanner.NEAR)
    assert scanner.line(b"x" * 2000 + b"\n", (1000, 1001)) == (1000 - scanner.NEAR, 1001 + scanner.NEAR)
    assert scanner.line(b"abc", (1, 2)) == (0, 2 + scanner.NEAR)


@pytest.mark.parametrize("patterns", [("abc", "bcde"), ("abcde", "bcd"), ("bcde", "abc")], ids="+".join)
def test_overlapping_finds_are_one(patterns: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlapping matches are merged into one secret with the kind of the first rule."""
    made = tuple(Rule(kind, pattern, (pattern,)) for kind, pattern in zip("xy", patterns, strict=True))
    monkeypatch.setattr(scanner, "rules", lambda: made)
    monkeypatch.setattr(scanner, "keyword_index", lambda: scanner.KeywordIndex(made))
    monkeypatch.setattr(scanner, "detectors", lambda: tuple(map(Detector, made)))

    assert scanner.scan(b"-abcde-") == [(1, 6, "x")]
