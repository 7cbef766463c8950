"""Tests of similar spellings for unknown words."""

import pytest

from palaver.search.query.spelling import nearest, similar_spellings, similar_stems


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("ketle", "kettle"),
        ("Ketle", "kettle"),
        ("remeditaion", "remediation"),
        ("emmeditaion", ""),
        ("helm", ""),
        ("terraform", ""),
        ("invoice", ""),
        ("bot", ""),
        ("zzyx", ""),
    ],
)
def test_a_typo_finds_the_most_similar_word(word: str, meant: str) -> None:
    """A suggestion has the same first letter, and one or two edits depending on the length of the word."""
    assert nearest(word, ["The Kettle, and a kennel.", "remediation/remedy of them, both transform, invoke"]) == meant


def test_only_whole_words_are_compared() -> None:
    """An underscore separates words. Digits do not."""
    assert nearest("ketle", ["tea_kettle"]) == "kettle"
    assert nearest("ketle", ["teakettle 9kettle kettles9"]) == ""


def test_similar_names_come_best_first() -> None:
    """Names of a different length or with a different first letter are not similar."""
    assert similar_spellings("soup", ["soups", "soop", "coup", "soup_of_the_day"]) == ["soups", "soop"]


def test_stems_of_misspelled_endings_are_found() -> None:
    """A misspelled ending that the stemmer keeps is corrected. The most frequent stem comes first."""
    known = {"remedi": 9, "remediati": 1, "remote": 50, "remedi2": 7}

    assert similar_stems("remeditaion", known) == ["remedi", "remediati"]


def test_stems_of_other_words_are_not_similar() -> None:
    """A stem is similar only if the term begins with it or with a misspelling of it, and is not much longer."""
    known = {"column": 90, "copilot": 80, "con": 70, "coupl": 1}

    assert similar_stems("coupon", known) == ["con", "coupl"]
    assert similar_stems("hydration", {"hasdata": 5, "hurt": 4, "hat": 3}) == []
