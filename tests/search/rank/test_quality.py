"""Tests of search quality on six conversations, with the packaged model."""

import pytest

from palaver.core.query import Mode
from palaver.search.model.embedder import load

from ..history import History, Said

CONVERSATIONS = {
    "retries": Said(
        "The upload keeps failing when the network drops, what can we do?",
        "UploadClient now retries three times with exponential backoff and jitter; MAX_RETRIES is in settings.py.",
    ),
    "colour": Said(
        "Make the header readable for people with poor sight",
        "The contrast of the navigation bar was raised to 7:1 and the font is one size larger.",
    ),
    "migration": Said(
        "Why does the nightly job crash since Monday?",
        "Migration 0042 renamed the column customer_ref, but the export still used the old name: ERR_UNKNOWN_COLUMN.",
    ),
    "cache": Said(
        "Which cache do we take?",
        "We decided on Redis rather than Memcached, because sessions must survive a restart.",
    ),
    "licence": Said(
        "May we ship the parser?",
        "Its licence is GPL-3.0, which our closed product cannot include; the MIT one replaces it.",
    ),
    "search": Said("検索が遅い", "索引を作り直して、日本語の全文検索が十倍速くなった。"),
}
WORDS = [
    ("MAX_RETRIES", "retries"),
    ("uploadClient", "retries"),
    ("ERR_UNKNOWN_COLUMN", "migration"),
    ("customer_ref export", "migration"),
    ("redis memcached", "cache"),
    ("GPL-3.0 licence", "licence"),
    ("全文検索", "search"),
    ("navigation bar contrast", "colour"),
]
PARAPHRASES = [
    ("accessibility improvement for visually impaired users", "colour"),
    ("unreliable internet connection during file transfer", "retries"),
    ("scheduled task broken after database schema change", "migration"),
    ("legal problem with an open source dependency", "licence"),
    ("in-memory key value store choice", "cache"),
]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Archive of six conversations, embedded with the packaged model and published."""
    made = History(tmp_path_factory.mktemp("quality"), load())
    for name, exchange in CONVERSATIONS.items():
        made.say(name, exchange)
    made.embed()
    made.publish()
    return made


def first(history: History, question: str, mode: Mode) -> str:
    hits = history.search(question, mode=mode).hits
    return hits[0].session_id if hits else ""


def share(history: History, cases: list[tuple[str, str]], mode: Mode) -> float:
    return sum(first(history, question, mode) == wanted for question, wanted in cases) / len(cases)


@pytest.mark.parametrize("mode", [Mode.TEXT, Mode.BOTH])
def test_words_and_names_are_found(history: History, mode: Mode) -> None:
    """The first hit for rare words, identifiers and error codes is the right conversation."""
    assert share(history, WORDS, mode) == 1


@pytest.mark.parametrize("mode", [Mode.VECTOR, Mode.BOTH])
def test_paraphrases_are_found(history: History, mode: Mode) -> None:
    """Most questions find their answer first, even without its rare words."""
    assert share(history, PARAPHRASES, mode) >= 0.8


def test_the_similarity_of_a_prompt_with_itself_is_one(history: History) -> None:
    """A search for a user's own prompt has a similarity of 1."""
    hit = history.search(CONVERSATIONS["cache"].prompt, mode=Mode.VECTOR).hits[0]

    assert hit.session_id == "cache"
    assert hit.similarity == pytest.approx(1, abs=2e-3)
