"""Answers of `palaver ask` without a language model to questions about 98 real sessions."""

from pathlib import Path

import pytest

from bench.ask import Asked, ask_all
from bench.retrieval.ours import Ours
from bench.retrieval.sets import coding_sessions
from palaver.agents.ask.extractive_answer import ANSWER_TOKENS
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.tokens import count
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ..shared import SHARED

LEAST = {"intent": 0.8, "friction": 0.6}
"""Minimum share of the questions of each kind whose answer cites the correct session."""


def conversation_tokens(home: Home, paths: set[str]) -> int:
    """Recount the tokens of all turns of these transcripts."""
    total = 0
    with Store.open(home.database) as store:
        for path in paths:
            source = store.sources.by_archived(path)
            assert source is not None
            assert source.session is not None
            exchanges = store.exchanges.load(store.summaries.newest_exchanges(source.session)).values()
            total += sum(count(turn.text) for each in exchanges for turn in each.exchange.turns)
    return total


@pytest.mark.timeout(900)
@pytest.mark.skipif(not (SHARED / "bench" / "coding-sessions").is_dir(), reason="no real transcripts here")
def test_answers_cite_the_correct_session_within_the_budget(tmp_path: Path) -> None:
    """Answers cite the correct session often enough, within 2,000 tokens, and the receipts equal a recount."""
    corpus = coding_sessions()
    ours = Ours(corpus, tmp_path)
    questions = [question for question in corpus.questions if LEAST.keys() & set(question.kinds)]
    with ArchiveSearch(ours.home) as archive:
        asked = ask_all(archive, questions)

    for kind, least in LEAST.items():
        found = [each.found for each in asked if kind in each.question.kinds]
        assert sum(found) >= least * len(found), f"{kind}: {sum(found)} of {len(found)}"
    for each in asked:
        assert_receipt_is_true(each, ours.home)


def assert_receipt_is_true(asked: Asked, home: Home) -> None:
    answer = asked.answer
    assert answer.receipt.tokens == count(Renderer().cited_answer(answer)) <= ANSWER_TOKENS
    paths = {source.path for source in answer.sources}
    assert answer.receipt.transcript_tokens == conversation_tokens(home, paths)
