"""Results that an agent recorded after the next prompt of the user, so that their calls are in earlier exchanges."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from ...core.conversation import Exchange, Kind, Turn

StoredCalls: TypeAlias = "Callable[[Collection[str]], Mapping[str, Turn]]"


def link_late_results(exchanges: Sequence[Exchange], stored: StoredCalls) -> list[Exchange]:
    """Return consecutive exchanges, in which each late result has the name of its tool.

    `stored` returns the calls with these IDs in the stored exchanges before the first of the given exchanges.
    """
    late = {turn.call for exchange in exchanges for turn in late_results(exchange) if not turn.tool}
    if not late:
        return list(exchanges)
    calls = dict(stored(late))
    linked: list[Exchange] = []
    for exchange in exchanges:
        of_earlier = {turn for turn in late_results(exchange) if not turn.tool and turn.call in calls}
        turns = tuple(
            turn._replace(tool=calls[turn.call].tool) if turn in of_earlier else turn for turn in exchange.turns
        )
        linked.append(replace(exchange, turns=turns) if of_earlier else exchange)
        calls |= {turn.call: turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.call in late}
    return linked


def late_results(exchange: Exchange) -> list[Turn]:
    """Return the results whose calls are not in the same exchange."""
    calls = {turn.call for turn in exchange.turns if turn.kind is Kind.CALL}
    return [turn for turn in exchange.turns if turn.kind is Kind.RESULT and turn.call and turn.call not in calls]
