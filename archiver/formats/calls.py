"""Calls: what was asked of tools in one exchange, until they answer."""

from msgspec import Struct, field

from ...core.conversation import Kind, Speaker, Turn
from ..files.clipping import clean, one_line
from .actions import UNKNOWN, Action, action, said
from .marks import Mark


class Calls(Struct):
    """The calls whose results are still to come, by the id that both share."""

    shorten: bool
    """Whether long inputs and results are kept to their head and tail."""
    _waiting: dict[str, Action] = field(default_factory=dict[str, Action])

    def call(self, mark: Mark, call: str, tool: str, given: object, *, group: str = "") -> Turn:
        """A call as a turn."""
        made = self._waiting[call] = action(tool, given, shorten=self.shorten)
        return mark.turn(Speaker.ASSISTANT, Kind.CALL, made.text, tool=made.tool, call=call, group=group)

    def result(self, mark: Mark, call: str, text: str, *, failed: bool, tool: str = "") -> Turn:
        """What a call brought. `tool` names it where the call is unknown; a call that failed touched no file."""
        made = self._waiting.pop(call, UNKNOWN)
        text = said(text, made, failed=failed, shorten=self.shorten)
        reads, writes = ((), ()) if failed else (made.reads, made.writes)
        tool = made.tool or one_line(clean(tool), 100)
        return mark.turn(
            Speaker.TOOL, Kind.RESULT, text, tool=tool, call=call, failed=failed, reads=reads, writes=writes
        )

    def clear(self) -> None:
        """The exchange ends: a result that comes later belongs to no call of the next one."""
        self._waiting.clear()
