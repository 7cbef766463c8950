"""What Historian's tools work with: the project's memories, and what was offered to be forgotten."""

from functools import cached_property

from ...observe.mnemonics import Forgettable, Mnemonics
from ..desk import Place, opened


class HistorianDesk:
    """The memories of the project that the server was started in.

    `previewed` is what a call of memory_forget showed, by its query and type: the next such call deletes that alone.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.previewed: dict[tuple[str, str | None], Forgettable] = {}

    @cached_property
    def mnemonics(self) -> Mnemonics:
        """The project's memories; raises `ServerNotReady`."""
        place = self.place
        return opened(lambda: Mnemonics.open(place.home, place.project, place.model, place.judging))
