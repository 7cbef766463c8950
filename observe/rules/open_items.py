"""What is left to do? Items of a to-do list that were not finished, and what the conclusion says is still open."""

import re
from collections.abc import Iterator

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import Evidence
from .phrases import anywhere
from .statements import quote_of, statements
from .wording import plain
from .worth import is_status

_LISTS = {"TodoWrite", "update_plan", "todo_write", "write_todos"}
"""What the agents call the tool that keeps a list of things to do."""
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
    """Something that is left to do, and where that is said."""

    text: str
    evidence: Evidence


def open_items(exchange: Exchange) -> Iterator[OpenItem]:
    """What an exchange leaves to do: its last list first, then its last words."""
    lists = [turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.tool in _LISTS]
    yield from _unfinished(lists[-1]) if lists else ()
    prose = [turn for turn in exchange.turns if turn.kind is Kind.PROSE]
    for said in statements(prose[-1]) if prose else ():
        if (
            20 <= len(said.text) <= 240
            and not (said.text.endswith("?") or is_status(said.text))
            and _LEFT.search(said.text)
        ):
            yield OpenItem(said.text, Evidence(said.line, said.line, said.quote))


def _unfinished(turn: Turn) -> Iterator[OpenItem]:
    for item in _ITEM.finditer(turn.text):
        if item.group(1) in _OPEN:
            yield OpenItem(plain(item.group(2)), Evidence(turn.line, turn.line, quote_of(item.group())))
