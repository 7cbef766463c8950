"""What Historian's tools work with: the project's memories, and what was offered to be forgotten."""

from functools import cached_property

from ...core.errors import InvalidInput, PalaverError, ServerNotReady
from ...observe.mnemonics import Forgettable, Mnemonics
from ..toolset import Place


class HistorianDesk:
    """The memories of the project that the server was started in.

    `previewed` is what a call of memory_forget showed, by its query and type: the next such call deletes that alone.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.previewed: dict[tuple[str, str | None], Forgettable] = {}

    @cached_property
    def mnemonics(self) -> Mnemonics:
        """Opened when the first tool asks for it; raises `ServerNotReady`, so that it is tried again."""
        try:
            place = self.place
            return Mnemonics.open(place.home, place.project, place.model, place.judging)
        except InvalidInput:
            raise
        except PalaverError as error:
            raise ServerNotReady(error) from error
