"""Renouncing: what a person wants nothing learned from. What was said stays, and is known by its marks wherever it
stands: in a fork, in what that was made from, in a copy, or in a database that is made anew.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from ...core.observation import Observation
from ..store import RENOUNCED, Renunciation, Store, StoredExchange
from .oblivion import Oblivion


class Renouncing:
    """Knows it in one archive; the caller opens the transaction. Raises `KeyLost` as `Oblivion` does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _oblivion(self) -> Oblivion:
        return Oblivion(self._store, self._store.home.key())

    def renounce(
        self, exchanges: Collection[int], observations: Collection[int], forgetting: int, origins: Sequence[str] = ()
    ) -> None:
        """Delete these observations, and extract nothing from these exchanges, until the deletion is undone.

        What of them is not of these `origins` may be learned; none of it where no origin is named.
        """
        for stored in self._store.exchanges.load([*exchanges]).values():
            self._add(stored, Renunciation(forgetting, tuple(origins)))
        self._store.forgotten_items.keep(forgetting, [*exchanges], observations)
        self._store.observations.renounce(exchanges, observations)

    def heed(
        self, stored: StoredExchange, observations: Iterable[Observation], extractor: str
    ) -> tuple[list[Observation], str]:
        """What of this may be learned from an exchange, and by whom it counts as learned."""
        if not self._store.renunciations.exist():
            return [*observations], extractor
        self.carry_over()
        renounced = self._known(stored)
        kept = [each for each in observations if all(by.origins and each.origin not in by.origins for by in renounced)]
        return kept, RENOUNCED if renounced else extractor

    def take_back(self, forgetting: int) -> int:
        """Let what was renounced with this forgetting be learned from again.

        From how many exchanges nothing is all the same, because they were renounced with another one as well.
        """
        self.carry_over()
        exchanges = self._store.exchanges.load(self._store.renunciations.exchanges()).values()
        by = {each.key: {found.forgetting for found in self._known(each)} for each in exchanges}
        self._store.renunciations.drop(forgetting)
        self._store.observations.unobserve([key for key, numbers in by.items() if numbers == {forgetting}])
        return sum(forgetting in numbers and len(numbers) > 1 for numbers in by.values())

    def carry_over(self) -> None:
        """Know by its marks what earlier versions knew by its place, as far as that is there now."""
        placed = self._store.renunciations.placed()
        stored = self._store.exchanges.load([key for key, _ in placed])
        for key, by in placed:
            self._add(stored[key], by)
        for key in stored:
            self._store.renunciations.unplace(key)

    def heed_anew(self, source: int) -> None:
        """Have what was learned from a source by who did not know that it was renounced, as a database that was
        restored, learned anew.
        """
        if self._store.renunciations.exist():
            stored = self._store.exchanges.load(self._store.renunciations.unheeded(source)).values()
            self._store.observations.unobserve([each.key for each in stored if self._known(each)])

    def _add(self, stored: StoredExchange, by: Renunciation) -> None:
        self._store.renunciations.add(by.forgetting, self._marks(stored), by.origins)
        self._store.tombstones.register_anew()

    def _known(self, stored: StoredExchange) -> set[Renunciation]:
        return self._store.renunciations.of(self._marks(stored))

    def _marks(self, stored: StoredExchange) -> set[int]:
        """The marks of an exchange: those of its records, of its lines in its copy where it has none."""
        records = {turn.record for turn in stored.exchange.turns if turn.record}
        if records:
            return set(map(self._oblivion.record, records))
        archived = self._store.sources.load(stored.source).archived
        return {self._oblivion.place(archived, turn.line) for turn in stored.exchange.turns}
