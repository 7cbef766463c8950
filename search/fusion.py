"""Fusion: what words say and what meaning says about an event, as one score.

An event is an exchange with everything learned from it. Words count as the fraction of what the query could score at
most, meaning as cosines; both are absolute, so no engine is stretched to look sure when it is not. A query of rare
words that stand somewhere is decided by them; a paraphrase, whose words are nowhere, is decided by the vectors. What a
person asked is the best key to what they half remember, so prompts count apart from everything else that was said.
What was said just before and after helps a short turn that leaves half its words to its neighbours.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .documents import PROMPT
from .text_index import TextMatch
from .vector_index import Near

WORDS, NEIGHBOURS, PROMPTS, MEANING = 1.0, 0.2, 0.3, 0.4
"""Weights, chosen on the development sets; the table that supports them is in bench/RESULTS.md."""


@dataclass(slots=True)
class Event:
    """What is known of one event for one query."""

    key: int
    best_match: TextMatch | None = None
    """The entry whose words match best; None where no word was found."""
    similarity: float | None = None
    """The best cosine of any vector; None where none was compared."""
    prompt: float = 0.0
    """The similarity of what the person asked; 0 where nothing was compared."""
    around: float = 0.0
    """The best fraction of the exchanges just before and after."""
    _words: dict[int, float] = field(default_factory=dict[int, float])
    _meanings: dict[int, float] = field(default_factory=dict[int, float])

    def add_match(self, match: TextMatch) -> None:
        """Take an entry into account."""
        if self.best_match is None or match.fraction > self.best_match.fraction:
            self.best_match = match
        if match.fraction > self._words.get(match.key, 0.0):
            self._words[match.key] = match.fraction

    def add_vector(self, near: Near) -> None:
        """Take a vector into account."""
        if self.similarity is None or near.similarity > self.similarity:
            self.similarity = near.similarity
        if near.item == self.key and near.part == PROMPT:
            self.prompt = near.similarity
        if near.similarity > self._meanings.get(near.item, 0.0):
            self._meanings[near.item] = near.similarity

    @property
    def words(self) -> float:
        """The best fraction of any entry, 0 to 1."""
        return self.best_match.fraction if self.best_match else 0.0

    @property
    def meaning(self) -> float:
        """The best cosine as far as it counts: 0 where none was compared or all point away."""
        return max(0.0, self.similarity or 0.0)

    @property
    def score(self) -> float:
        """What orders events, 0 to 1."""
        said = WORDS * self.words + NEIGHBOURS * self.around
        meant = PROMPTS * max(0.0, self.prompt) + MEANING * self.meaning
        return (said + meant) / (WORDS + NEIGHBOURS + PROMPTS + MEANING)

    def words_of(self, item: int) -> float:
        """The best fraction of one item's own entries."""
        return self._words.get(item, 0.0)

    def own(self, item: int) -> float:
        """How well one item of the event matches by itself."""
        return self.words_of(item) + self._meanings.get(item, 0.0)


def gather(texts: Iterable[TextMatch], vectors: Iterable[Near]) -> list[Event]:
    """Everything both engines found, by event, best first; equal scores in order of key."""
    events: dict[int, Event] = {}
    for match in texts:
        if (event := events.get(match.event)) is None:
            event = events[match.event] = Event(match.event)
        event.add_match(match)
    for near in vectors:
        if (event := events.get(near.event)) is None:
            event = events[near.event] = Event(near.event)
        event.add_vector(near)
    _look_around(events.values())
    return sorted(events.values(), key=lambda event: (-event.score, event.key))


def _look_around(events: Iterable[Event]) -> None:
    """What was said just before and after: exchanges whose ordinals follow each other in one source."""
    words = {(match.source, match.ordinal): match.fraction for event in events if (match := event.best_match)}
    for event in events:
        if match := event.best_match:
            beside = ((match.source, match.ordinal - 1), (match.source, match.ordinal + 1))
            event.around = max(words.get(place, 0.0) for place in beside)
