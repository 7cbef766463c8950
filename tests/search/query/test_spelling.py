"""What is meant by a word that stands nowhere?"""

import pytest

from palaver.search.query.spelling import nearest, spelled_like, stems_like


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
def test_the_word_most_like_it_is_meant(word: str, meant: str) -> None:
    """Whoever mistypes a word gets its first letter right, and few others wrong: it may be a word by itself."""
    assert nearest(word, ["The Kettle, and a kennel.", "remediation/remedy of them, both transform, invoke"]) == meant


def test_names_are_given_best_first() -> None:
    """Of another length, or with another beginning, none is alike."""
    assert spelled_like("soup", ["soups", "soop", "coup", "soup_of_the_day"]) == ["soups", "soop"]


def test_an_ending_hides_no_stem() -> None:
    """A misspelled ending is not taken off; the most frequent first."""
    known = {"remedi": 9, "remediati": 1, "remote": 50, "remedi2": 7}

    assert stems_like("remeditaion", known) == ["remedi", "remediati"]
