"""Open items: unfinished entries of a to-do list, and open points in the conclusion."""

import re
from collections.abc import Iterator

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import Evidence
from .phrase_patterns import anywhere
from .salience import is_status
from .sentences import strip_markdown
from .statements import quote_of, statements

_LISTS = {"TodoWrite", "update_plan", "todo_write", "write_todos"}
"""Names of to-do list tools."""
_ITEM = re.compile(r"\[(\w+)\] (.+)")
_OPEN = {"pending", "in_progress"}
_LEFT = anywhere(
    r"""
    next steps? | still (?:needs?|missing|open|to do|has to|have to|fails?) | remains? to | left to do | todo
    | remaining (?:work|steps?|tasks?|issues?) | (?:a|as|in a|for) follow-?up(?! \w+es\b) | follow-?ups?:
    | not (?:yet )?(?:done|implemented|covered|tested|fixed|wired|configured)
    | you(?:['’]ll| will)? need to | out of scope | later (?:phase|step|pr)
    """
)


class OpenItem(Struct, frozen=True):
    """Open item with its evidence."""

    text: str
    evidence: Evidence


def open_items(exchange: Exchange) -> Iterator[OpenItem]:
    """Yield the open items of the last to-do list, then those of the last reply."""
    lists = [turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.tool in _LISTS]
    yield from _unfinished(lists[-1]) if lists else ()
    prose = [turn for turn in exchange.turns if turn.kind is Kind.PROSE]
    for stated in statements(prose[-1]) if prose else ():
        if (
            20 <= len(stated.text) <= 240
            and not (stated.text.endswith("?") or is_status(stated.text))
            and _LEFT.search(stated.text)
        ):
            yield OpenItem(stated.text, Evidence(stated.line, stated.line, stated.quote))


def _unfinished(turn: Turn) -> Iterator[OpenItem]:
    for item in _ITEM.finditer(turn.text):
        if item.group(1) in _OPEN:
            yield OpenItem(strip_markdown(item.group(2)), Evidence(turn.line, turn.line, quote_of(item.group())))
