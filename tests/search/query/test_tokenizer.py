"""Do the index and the query see the same terms, whatever the text?"""

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
def test_identifiers_are_found_whole_and_by_parts(name: str, found: set[str]) -> None:
    """A name is found as it is written, in the other common spelling, and by the words inside it."""
    assert terms(f"see {name}, please") - {"see", "pleas"} == found


@given(st.lists(st.text("abAB_0.é—\xa0\u2028", min_size=1, max_size=12), max_size=8))
def test_a_name_is_taken_apart_wherever_it_stands(words: list[str]) -> None:
    """What stands around a name does not matter to what it is found by."""
    assert terms(" ".join(words)) == set[str]().union(*map(terms, words))


def test_endings_do_not_matter() -> None:
    """English words are found in other forms."""
    assert terms("retrying connections") == terms("retried connection")


@pytest.mark.parametrize("text", ["Café Übergröße", unicodedata.normalize("NFD", "Café Übergröße")])
def test_accents_do_not_matter(text: str) -> None:
    """A word with accents, however encoded, is found without them."""
    assert terms(text) == terms("cafe ubergrosse")


@pytest.mark.parametrize(
    ("text", "query"), [("日本語の検索機能", "検索"), ("全文搜索引擎", "搜索"), ("검색기능을", "기능")]
)
def test_two_characters_find_cjk(text: str, query: str) -> None:
    """Chinese, Japanese and Korean text is found by any two characters that stand together."""
    assert terms(query) <= terms(f"v2 {text} ok")
    assert not terms(query[::-1]) & terms(text)


def test_a_phrase_in_cjk_is_made_of_its_pairs() -> None:
    """A longer query in CJK has no term that only a text of exactly this run would have."""
    assert terms("本語の検") <= terms("日本語の検索機能")


def test_pairs_of_one_character() -> None:
    """A single character stands for itself."""
    assert pairs("検") == ["検"]


def test_emoji_keep_words_apart() -> None:
    """Words beside emoji are found, and so are the emoji, with or without a skin tone."""
    assert terms("ship🚀it 🎉done") == terms("ship it done") | terms("🚀") | terms("🎉")
    assert terms("👍") < terms("👍🏽")
    assert len(terms("👍")) == 1


def test_full_width_letters_are_letters() -> None:
    """Full-width letters and digits are found by plain ones."""
    assert terms("ＡＰＩ２") == terms("api2")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_costs_little(text: str) -> None:
    """No text crashes the tokenizer or takes more than its length."""
    started = time.process_time()
    terms(text)

    assert time.process_time() - started < 2


@given(st.text(st.characters(codec=None)))
def test_every_text_has_terms(text: str) -> None:
    """Every text can be analysed, twice with the same result, and no term is empty."""
    found = terms(text)

    assert found == terms(text)
    assert "" not in found


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_what_is_said_is_found_among_other_words(said: str, more: str) -> None:
    """The terms of a text are among those of a longer text that contains it, set apart."""
    assert terms(said) <= terms(f"{more}\n{said}\n{more}")


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
def test_paths_begin_with_their_name(path: str, folder: str, expected: str) -> None:
    """A path is indexed backwards, normalised, in lower case; a relative one inside its folder."""
    assert path_label(path, folder) == expected


def test_labels_forgive() -> None:
    """Case, space around and a slash at the end make no difference."""
    assert label(" /Code/App/ ") == label("/code/app")
