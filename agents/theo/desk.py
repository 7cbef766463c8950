"""What Theo's tools work with: each part is opened when the first tool asks for it."""

from functools import cached_property

from ...observe.memory import MemoryCore
from ...observe.traces import Traces
from ...search.library import Documents
from ..desk import Place, opened


class TheoDesk:
    """The memory core, the documents and the traces of one home. `linked_to` is where backfilling goes on."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.linked_to: dict[str | None, int] = {}

    @cached_property
    def core(self) -> MemoryCore:
        """What is held to be true."""
        return opened(lambda: MemoryCore.open(self.place.home, self.place.model, self.place.judging))

    @cached_property
    def documents(self) -> Documents:
        """Files that were taken up."""
        return opened(lambda: Documents.open(self.place.home, self.place.roots, self.place.model))

    @cached_property
    def traces(self) -> Traces:
        """Which lines agents wrote."""
        return opened(lambda: Traces.open(self.place.home))
