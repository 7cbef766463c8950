"""Finding what stands by itself, memories and chunks of documents: the same engines, asked for that alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from ...archiver.store import Store
from ...core.query import Filters, Mode
from ..index.generation import Generations
from ..model.embedding import Embedder
from ..query.query_analysis import unquoted

if TYPE_CHECKING:
    from .engine import Engine
    from .fusion import Event

Held = TypeVar("Held")

_AT_A_TIME = 20
_LEAST_WORDS, _LEAST_MEANING = 0.05, 0.2
"""Below both a thing has nothing to do with a query: paraphrases have cosines from 0.2 on, strangers up to 0.17."""


class Finder:
    """Finds by words and meaning. Loads engines and model when they are first needed."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        self._store, self._generations, self._embedder = store, generations, embedder

    @cached_property
    def _engine(self) -> "Engine":
        from .engine import Engine

        return Engine(self._store, self._generations, self._embedder, dated=False)

    def _found(
        self,
        query: str,
        mode: Mode,
        filters: Filters,
        load: Callable[[Sequence[int]], Mapping[int, Held]],
        admits: Callable[[Held], bool],
        *,
        weak: bool,
    ) -> Iterator[tuple[Held, "Event"]]:
        """What matches and is admitted, best first; what has nothing to do with the query is left out. Nothing at all
        where nothing that is admitted is clearly relevant, unless the `weak` are wanted. A query may be any text, so
        what is quoted in it is only words where nothing has it so.
        """
        found = self._engine.find(query, mode, filters)
        if not found.events and (plain := unquoted(query)) != query:
            found = self._engine.find(plain, mode, filters)
        near = [event for event in found.events if concerns(event)]
        if not (weak or any(map(found.is_clear, near))):
            return
        clear, unsure = weak, list[tuple[Held, "Event"]]()
        for held, event in _still_held(near, load, admits):
            unsure.append((held, event))
            clear = clear or found.is_clear(event)
            if clear:
                yield from unsure
                unsure.clear()


def concerns(event: "Event") -> bool:
    """Whether what stands by itself has anything to do with the query that found it."""
    return event.words >= _LEAST_WORDS or event.meaning >= _LEAST_MEANING


def _still_held(
    events: Sequence["Event"], load: Callable[[Sequence[int]], Mapping[int, Held]], admits: Callable[[Held], bool]
) -> Iterator[tuple[Held, "Event"]]:
    """Those of these events that are held and admitted; loaded as far as they are asked for."""
    left = iter(events)
    while part := list(islice(left, _AT_A_TIME)):
        known = load([event.key for event in part])
        for event in part:
            if event.key in known and admits(known[event.key]):
                yield known[event.key], event
