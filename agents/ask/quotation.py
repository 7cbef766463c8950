"""Quotation from the transcript lines of an entry, for a question that the text of the entry does not answer."""

from collections.abc import Iterator, Sequence

from ...core.conversation import Kind
from ...core.errors import PalaverError
from ...core.results import Detail, TranscriptExcerpt
from .claims import Claim, is_statement, sentences_of
from .metered_archive import MeteredArchive
from .relevance import Relevance

_ENOUGH = 0.5
"""No quotation is added if a sentence of the entry contains at least this share of the question's words."""
_BETTER = 0.2
"""Minimum by which a quotation's share of the question's words must exceed the best share in the entry."""
_LINES = 60
"""Maximum number of transcript lines that are read for a quotation."""


def quoted_claim(
    archive: MeteredArchive, detail: Detail, claims: Sequence[Claim], relevance: Relevance
) -> Claim | None:
    """Read the transcript lines of an entry, and return the most relevant sentence of a prompt or answer.

    Return None if the entry itself is about as relevant, or if the lines cannot be read.
    """
    best = max(relevance.share(text) for text in (detail.observation.title, *(each.text for each in claims)))
    if best >= _ENOUGH or not detail.end_line:
        return None
    last = min(detail.end_line, detail.start_line + _LINES - 1)
    try:
        excerpt = archive.read(detail.path, detail.start_line, last)
    except PalaverError:
        return None
    quote = max(_said(excerpt), key=lambda claim: relevance.share(claim.text), default=None)
    if quote is None or relevance.share(quote.text) < best + _BETTER:
        return None
    return quote


def _said(excerpt: TranscriptExcerpt) -> Iterator[Claim]:
    """Yield each sentence of the prompts and answers, in quotation marks and with its line."""
    for exchange in excerpt.exchanges:
        for turn in exchange.turns:
            if turn.kind is Kind.PROMPT or turn.is_reply:
                for text in sentences_of(turn.text):
                    if turn.kind is Kind.PROMPT or is_statement(text):
                        yield Claim(f"“{text}”", turn.line, turn.line)
