"""Tests of the tokenizer that the index and queries share."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.query.tokenizer import analyzer, expand, label, pairs, path_label

HOSTILE = {
    "parentheses": "(" * 50_000,
    "nested": "(" * 5_000 + "a" + ")" * 5_000,
    "negations": "NOT " * 20_000,
    "field": "key:1 OR id:* AND body:/.*/",
    "range": "at:[* TO *]",
    "phrase": '"open',
    "NUL": "ab\0cd",
    "lone surrogate": "ab \ud800 cd",
    "only marks": '+-&&||!(){}[]^"~*?:\\/',
    "one long word": "a" * 200_000,
    "humps": "aB" * 100_000,
    "almost a hump": "a" * 100_000 + "_1A",
    "underscores": "a_" * 100_000,
    "emoji": "👩‍👩‍👧‍👦" * 1_000,
    "CJK": "検索" * 50_000,
}


def terms(text: str) -> set[str]:
    return set(analyzer().analyze(expand(text)))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("getUserName", {"getusernam", "get", "user", "name"}),
        ("get_user_name", {"getusernam", "get", "user", "name"}),
        ("MAX_RETRIES", {"maxretri", "max", "retri"}),
        ("HTTPServer2", {"httpserver2", "http", "server", "2"}),
        ("E0502", {"e0502"}),
        ("src/http2/frame.rs:214", {"src", "http2", "frame", "rs", "214"}),
    ],
)
def test_identifiers_are_found_whole_and_in_parts(name: str, found: set[str]) -> None:
    """An identifier has terms for its spelling in snake_case and camelCase, and for its parts."""
    assert terms(f"see {name}, please") - {"see", "pleas"} == found


@given(st.lists(st.text("abAB_0.é—\xa0\u2028", min_size=1, max_size=12), max_size=8))
def test_the_context_of_a_name_does_not_change_its_terms(words: list[str]) -> None:
    """A name has the same terms in any context."""
    assert terms(" ".join(words)) == set[str]().union(*map(terms, words))


def test_endings_do_not_matter() -> None:
    """Other inflections of an English word have the same term."""
    assert terms("retrying connections") == terms("retried connection")


@pytest.mark.parametrize("text", ["Café Übergröße", unicodedata.normalize("NFD", "Café Übergröße")])
def test_accents_do_not_matter(text: str) -> None:
    """Accented words are found without their accents, in any encoding."""
    assert terms(text) == terms("cafe ubergrosse")


@pytest.mark.parametrize(
    ("text", "query"), [("日本語の検索機能", "検索"), ("全文搜索引擎", "搜索"), ("검색기능을", "기능")]
)
def test_two_characters_find_cjk(text: str, query: str) -> None:
    """Chinese, Japanese and Korean text is found by any two adjacent characters."""
    assert terms(query) <= terms(f"v2 {text} ok")
    assert not terms(query[::-1]) & terms(text)


def test_a_phrase_in_cjk_has_only_pairs() -> None:
    """A long query in CJK consists of pairs of characters, so parts of it also match."""
    assert terms("本語の検") <= terms("日本語の検索機能")


def test_a_single_cjk_character_is_a_term() -> None:
    """A single character is its own term."""
    assert pairs("検") == ["検"]


def test_emoji_separate_words() -> None:
    """Words next to emoji are found, and so are emoji, with or without a skin tone."""
    assert terms("ship🚀it 🎉done") == terms("ship it done") | terms("🚀") | terms("🎉")
    assert terms("👍") < terms("👍🏽")
    assert len(terms("👍")) == 1


def test_full_width_letters_are_letters() -> None:
    """Full-width letters and digits have the same terms as plain letters and digits."""
    assert terms("ＡＰＩ２") == terms("api2")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_analysed_in_linear_time(text: str) -> None:
    """No text crashes the tokenizer or needs more than linear time."""
    started = time.process_time()
    terms(text)

    assert time.process_time() - started < 2


@given(st.text(st.characters(codec=None)))
def test_every_text_has_terms(text: str) -> None:
    """Every text can be analysed, the result is reproducible, and no term is empty."""
    found = terms(text)

    assert found == terms(text)
    assert "" not in found


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_terms_of_a_text_are_among_those_of_a_longer_text(part: str, rest: str) -> None:
    """The terms of a longer text include the terms of a text within it, if whitespace separates them."""
    assert terms(part) <= terms(f"{rest}\n{part}\n{rest}")


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/Code/app/src/Auth.ts", "", "auth.ts/src/app/code/"),
        ("src/auth.ts", "/code/app", "auth.ts/src/app/code/"),
        ("./src//auth.ts", "", "auth.ts/src"),
        ("../lib/a.py", "/code/app", "a.py/lib/code/"),
        ("src\\auth.ts", "", "auth.ts/src"),
        ("auth.ts", "", "auth.ts"),
    ],
)
def test_paths_are_indexed_in_reverse(path: str, folder: str, expected: str) -> None:
    """A path is indexed from its name to its root, in lower case. A relative path includes its folder."""
    assert path_label(path, folder) == expected


def test_labels_are_normalised() -> None:
    """Case, surrounding whitespace and a final slash do not matter."""
    assert label(" /Code/App/ ") == label("/code/app")
