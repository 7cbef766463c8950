"""What one search found, and whether anything of it is relevant."""

from math import inf

from msgspec import Struct

from ..query.query_analysis import AnalyzedQuery
from .fusion import Event

PRESENT_WORDS, PRESENT_MEANING = 0.25, 0.4
"""From which fraction of words, or which cosine, on a concept counts as present in a conversation. All its words, each
said once, make a fraction of 0.45 in a window of average length and 0.25 in one three times as long.
"""


_LISTED = 0.6
"""Share of the relevance threshold that an event needs to be listed behind relevant ones. On 400 questions of the
training set this keeps 314 of the 315 answers among the first ten.
"""


class Rest(Struct, frozen=True):
    """How well what the engines left out can match at most, a fraction of words and a cosine; None where an engine left
    nothing out.
    """

    words: float | None = None
    meaning: float | None = None

    @property
    def present(self) -> bool:
        """Whether a concept can be present in what was left out."""
        return (self.words or 0) >= PRESENT_WORDS or (self.meaning or 0) >= PRESENT_MEANING


class RankedEvents(Struct, frozen=True):
    """What one search found. An event is clearly about the query from the plain score `floor` on, or from the
    fraction of words `worded` on; `rest` is what the engines did not bring.
    """

    events: list[Event]
    wording: AnalyzedQuery
    floor: float = 0.0
    worded: float = inf
    rest: Rest = Rest()

    def is_clear(self, event: Event) -> bool:
        """Whether an event is clearly about the query."""
        return event.plain >= self.floor or event.words >= self.worded

    @property
    def listed(self) -> list[Event]:
        """Events to show, best first: all where none is clearly about the query, else those that may be."""
        if not self.relevant:
            return self.events
        return [event for event in self.events if self.is_clear(event) or event.plain >= _LISTED * self.floor]

    @property
    def relevant(self) -> bool:
        """Whether anything is clearly about the query, or nothing need be."""
        return self.floor == 0 or any(map(self.is_clear, self.events))
