"""Ranked events of a search, and the relevance threshold."""

from math import inf

from msgspec import Struct

from ..query.query_analysis import AnalyzedQuery
from .fusion import Event

PRESENT_WORDS, PRESENT_SEMANTIC = 0.25, 0.4
"""Minimum text score and minimum cosine. An event that reaches one of them counts as containing the concept.

If each word of the concept occurs once, the text score is 0.45 in a window of average length. In a window three times
as long, it is 0.25.
"""
RELEVANT_SIMILARITY = 0.7
"""Value of `RankedEvents.similarity` at the relevance threshold. The toolset `fabric` uses it as the default."""
_LISTED = 0.6
"""Share of the relevance threshold that an event must reach to be listed after relevant events.

On 400 questions of the train split, 314 of the 315 correct answers in the top 10 are still listed.
"""
_MATCHING = 0.6
"""Share of the best score that an event must reach so that its session matches.

On 337 questions about 98 sessions, every correct session in the first ten is still listed, among 6 sessions on average
instead of 10.
"""


class RankedEvents(Struct, frozen=True):
    """Events of one search, best first.

    Attributes:
        threshold: Minimum plain score of a relevant event.
        words_threshold: Minimum text score that makes an event relevant regardless of its other scores.
        truncated: True if an engine reached its limit, so that more events can match.
        evidence_threshold: Minimum evidence that at least one event must have. Otherwise, no event is relevant.
    """

    events: list[Event]
    query: AnalyzedQuery
    threshold: float = 0.0
    words_threshold: float = inf
    truncated: bool = False
    evidence_threshold: float = 0.0

    def is_relevant(self, event: Event) -> bool:
        """Return whether an event is relevant by its plain score or its text score."""
        return event.plain >= self.threshold or event.words >= self.words_threshold

    @property
    def listed(self) -> list[Event]:
        """Events to show: the events near or above the threshold, or all events if no event is relevant."""
        if not self.relevant:
            return self.events
        return [event for event in self.events if self.is_relevant(event) or event.plain >= _LISTED * self.threshold]

    @property
    def matching(self) -> list[Event]:
        """Events that make their session match the query: each is relevant by itself and near the best score.

        A list of sessions claims that each of them is about the query, so it is shorter than `listed`.
        """
        if not (self.relevant and self.threshold):
            return self.listed
        least = _MATCHING * max(event.score for event in self.events)
        return [
            event
            for event in self.events
            if event.score >= least and self.is_relevant(event) and self._is_proven(event)
        ]

    @property
    def plausible(self) -> bool:
        """True if any event is relevant when its evidence is ignored, or if the threshold is 0."""
        return self.threshold == 0 or any(map(self.is_relevant, self.events))

    @property
    def relevant(self) -> bool:
        """True if any event is relevant and has enough evidence, or if the threshold is 0."""
        return self.threshold == 0 or any(self.is_relevant(event) and self._is_proven(event) for event in self.events)

    def similarity(self, event: Event) -> float:
        """Return the score of an event on a scale of 0 to 1 where 0.7 is the relevance threshold.

        The result does not depend on the other events, so the best of several unrelated events has a low value.
        """
        strength = event.words / self.words_threshold
        if self.threshold:
            strength = max(strength, event.plain / self.threshold)
        else:  # One engine was used, or a quoted phrase matched.
            strength = max(event.words / PRESENT_WORDS, event.semantic / PRESENT_SEMANTIC)
        share = RELEVANT_SIMILARITY
        return share * strength if strength < 1 else share + (1 - share) * min(1.0, max(0.0, event.score))

    def _is_proven(self, event: Event) -> bool:
        if event.evidence is None or event.words >= self.words_threshold:
            return True
        return event.evidence >= self.evidence_threshold
