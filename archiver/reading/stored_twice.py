"""Removal of exchanges that an agent stored twice: in a database, and with less detail in a file of the same session.

The lines of such a file have no record IDs. Therefore, its exchanges are recognised by the texts of their prompts, in
their order. The exchanges of the database are kept, whichever of the two was archived first.
"""

from collections.abc import Sequence

from ...core.conversation import Exchange, Kind
from ..files.lines import REPEATED
from ..store import Repetition
from ..store.exchange_table import StoredExchange
from .parsing import ParsedLines


def has_anonymous_prompts(exchanges: Sequence[Exchange]) -> bool:
    """Return whether a prompt of these exchanges has no record ID."""
    return any(turn.kind is Kind.PROMPT and not turn.record for exchange in exchanges for turn in exchange.turns)


def remove_stored_twice(parsed: ParsedLines, stored: Sequence[StoredExchange]) -> list[Repetition]:
    """Remove the exchanges of a file that the session's database contains too, and count their lines as repeated.

    `stored` contains the exchanges of the database, in order. Return the first and the last line of each removed
    exchange, with the line that it repeats.
    """
    found: list[Repetition] = []
    kept: list[Exchange] = []
    remaining = list(stored)
    for exchange in parsed.exchanges:
        prompt = _words(exchange)
        place = next((number for number, each in enumerate(remaining) if _words(each.exchange) == prompt), None)
        if place is None or not prompt or not has_anonymous_prompts([exchange]):
            kept.append(exchange)
            continue
        same, span = remaining[place], exchange.span
        del remaining[: place + 1]
        line = same.exchange.span.start_line
        found += [Repetition(same.source, line, span.start_line), Repetition(same.source, line, span.end_line)]
        parsed.count_as(REPEATED, range(span.start_line, span.end_line + 1))
    parsed.exchanges = kept
    return found


def less_detailed(exchanges: Sequence[Exchange], stored: Sequence[StoredExchange]) -> set[int]:
    """Return the IDs of the files with an exchange that a database of the same session contains too.

    `exchanges` are from the database, `stored` from the files.
    """
    prompts = set(map(_words, exchanges))
    return {
        each.source for each in stored if has_anonymous_prompts([each.exchange]) and _words(each.exchange) in prompts
    }


def _words(exchange: Exchange) -> str:
    return " ".join(exchange.prompt.split())
