"""Fusion: what words say and what meaning says about an event, as one score.

An event is an exchange with everything learned from it. Words count as the fraction of what the query could score at
most, meaning as cosines; both are absolute, so no engine is stretched to look sure when it is not. A query of rare
words that stand somewhere is decided by them; a paraphrase, whose words are nowhere, is decided by the vectors. What a
person asked is the best key to what they half remember, so prompts count apart from everything else that was said. What was
said just before and after helps a short turn that leaves half its words to its neighbours.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .documents import PROMPT
from .text_index import TextMatch
from .vector_index import Near

WORDS, NEIGHBOURS, PROMPTS, MEANING = 1.0, 0.3, 0.4, 0.4
"""Weights, chosen on the development sets; the table that supports them is in bench/RESULTS.md."""


@dataclass(slots=True)
class Event:
    """What is known of one event for one query."""

    key: int
    texts: list[TextMatch] = field(default_factory=list[TextMatch])
    vectors: list[Near] = field(default_factory=list[Near])
    around: float = 0.0
    """The best fraction of the exchanges just before and after."""

    @property
    def words(self) -> float:
        """The best fraction of any entry, 0 to 1."""
        return max((match.fraction for match in self.texts), default=0.0)

    @property
    def prompt(self) -> float:
        """The similarity of what the person asked; 0 where nothing was compared."""
        return max((near.similarity for near in self.vectors if self._is_prompt(near)), default=0.0)

    @property
    def similarity(self) -> float | None:
        """The best cosine of any vector; None where none was compared."""
        return max((near.similarity for near in self.vectors), default=None)

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

    def _is_prompt(self, near: Near) -> bool:
        return near.item == self.key and near.part == PROMPT

    @property
    def best_match(self) -> TextMatch | None:
        """The entry whose words match best; None where no word was found."""
        return max(self.texts, key=lambda match: match.fraction, default=None)

    def words_of(self, item: int) -> float:
        """The best fraction of one item's own entries."""
        return max((match.fraction for match in self.texts if match.key == item), default=0.0)

    def own(self, item: int) -> float:
        """How well one item of the event matches by itself."""
        return self.words_of(item) + max((near.similarity for near in self.vectors if near.item == item), default=0.0)


def gather(texts: Iterable[TextMatch], vectors: Iterable[Near]) -> list[Event]:
    """Everything both engines found, by event, best first; equal scores in order of key."""
    events: dict[int, Event] = {}
    for match in texts:
        events.setdefault(match.event, Event(match.event)).texts.append(match)
    for near in vectors:
        events.setdefault(near.event, Event(near.event)).vectors.append(near)
    _look_around(events.values())
    return sorted(events.values(), key=lambda event: (-event.score, event.key))


def _look_around(events: Iterable[Event]) -> None:
    places = {(event.texts[0].source, event.texts[0].ordinal): event for event in events if event.texts}
    for (source, ordinal), event in places.items():
        beside = (places.get((source, ordinal - 1)), places.get((source, ordinal + 1)))
        event.around = max((neighbour.words for neighbour in beside if neighbour is not None), default=0.0)
