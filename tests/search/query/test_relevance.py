"""Relevance of sentences."""

from palaver.search.query.relevance import Relevance, repeats

TEXTS = ["The clock reads tides", "The clock is late", "The clock uses sqlite"]


def test_share_is_between_zero_and_one() -> None:
    """A text with all words of the question has the share 1, and a text with none has 0."""
    relevance = Relevance("why is the clock late", TEXTS)

    assert relevance.share("The clock was late") == 1.0
    assert relevance.share("Tides in the harbour") == 0.0


def test_rare_words_weigh_more() -> None:
    """A word that few of the compared texts contain weighs more than a frequent one."""
    relevance = Relevance("clock sqlite", TEXTS)

    assert relevance.share("sqlite") > relevance.share("clock")


def test_known_words_gain_little() -> None:
    """A word that is already shown adds a tenth of its weight."""
    relevance = Relevance("clock sqlite", TEXTS)

    assert relevance.gain("clock", ["The clock"]) == relevance.share("clock") / 10
    assert relevance.gain("clock", []) == relevance.share("clock")


def test_repetition_counts_the_words_of_the_text() -> None:
    """A text repeats another that contains most of its words, but not the other way round."""
    assert repeats("The clock is late", ["It was late: the clock is an hour late"])
    assert not repeats("The clock is late because its zone is ignored", ["The clock is late"])
