"""Quotation from a transcript, for a question that the entry alone does not answer."""

from collections.abc import Iterator, Sequence

from ...core.conversation import Kind
from ...core.errors import PalaverError
from ...core.results import Detail, TranscriptExcerpt
from .claims import Claim, sentences_of
from .metered_archive import MeteredArchive
from .relevance import Relevance

_ENOUGH = 0.5
"""Share of a question's words at which a sentence of the entry needs no quotation."""
_BETTER = 0.2
"""Minimum share of the words that a quotation must contain in addition."""
_LINES = 60
"""Maximum number of lines that are read."""


def quoted_claim(
    archive: MeteredArchive, detail: Detail, claims: Sequence[Claim], relevance: Relevance
) -> Claim | None:
    """Read the lines of an entry, and return the most relevant sentence that was said there.

    Return None if a sentence of the entry is as relevant, or if the lines cannot be read.
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
    """Yield the sentences of prompts and answers."""
    for exchange in excerpt.exchanges:
        for turn in exchange.turns:
            if turn.kind in (Kind.PROMPT, Kind.PROSE):
                for text in sentences_of(turn.text):
                    yield Claim(f"“{text}”", turn.line, turn.line)
