"""Recursion: Palaver's own words left out of what a transcript said.

They stay in the archive and can be read there. But nobody said them, so nothing searches them, and nothing is learned
from them a second time.
"""

from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path, PurePath

from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Session, SessionKind, Turn
from ...core.recursion import Own, is_own_command, is_own_prompt, is_own_tool, is_suspect, without_recalled
from ..files.lines import PARSED
from .parsing import Parsed

_SHELLS = {"bash", "shell", "exec_command", "execute", "powershell", "run_shell_command", "terminal", "run_in_terminal"}
_SHORTENED = {Kind.RESULT, Kind.INJECTED}
"""What readers keep only the head and the tail of."""


def leave_out(found: Parsed, session: Session, home: Path) -> None:
    """Take our own words out of what was parsed, and count their lines under the sign that told.

    A line that says something else besides stays parsed.
    """
    first, homes = found.start.line, {home, home.resolve()}
    place = session.cwd or next((note.value for note in found.notes if note.fact is Fact.CWD), "")
    kept: list[Exchange] = []
    for exchange in found.exchanges:
        inside = _is_inside(exchange.cwd or place, homes)
        if not inside and not any(is_suspect(turn.text, turn.tool) for turn in exchange.turns):
            kept.append(exchange)
            continue
        told = list(_told(exchange, session.kind, inside))
        turns = tuple(turn for turn, own in told if own is None)
        for line, group in groupby(told, key=lambda pair: pair[0].line):
            signs = [own for _, own in group]
            reason = signs[0]
            if reason is not None and None not in signs and found.outcomes[line - first] == PARSED:
                found.outcomes[line - first] = reason
        if turns:
            kept.append(exchange if turns == exchange.turns else replace(exchange, turns=turns))
    found.exchanges = kept


def _told(exchange: Exchange, kind: SessionKind, inside: bool) -> Iterator[tuple[Turn, Own | None]]:
    """Each turn as it is kept, or with the sign that it is ours."""
    whole = Own.FOLDER if inside else Own.RUN if _is_own_run(exchange, kind) else None
    ours = _own_calls(exchange)
    for turn in exchange.turns:
        if whole is not None:
            yield turn, whole
        elif is_own_tool(turn.tool) or (turn.call and turn.call in ours):
            yield turn, Own.TOOL
        else:
            text = without_recalled(turn.text, shortened=turn.kind in _SHORTENED)
            kept = turn if text == turn.text else turn._replace(text=text)
            yield kept, None if text or not turn.text else Own.RECALLED


def _is_own_run(exchange: Exchange, kind: SessionKind) -> bool:
    """A prompt of ours opened it; or a sub-agent was sent out that did nothing but ask us."""
    if any(turn.kind is Kind.PROMPT and is_own_prompt(turn.text) for turn in exchange.turns):
        return True
    calls = [turn for turn in exchange.turns if turn.kind is Kind.CALL]
    return kind is SessionKind.SUBAGENT and bool(calls) and all(map(_is_own_call, calls))


def _own_calls(exchange: Exchange) -> set[str]:
    return {turn.call for turn in exchange.turns if turn.kind is Kind.CALL and turn.call and _is_own_call(turn)}


def _is_own_call(turn: Turn) -> bool:
    return is_own_tool(turn.tool) or (turn.tool.lower() in _SHELLS and is_own_command(turn.text.partition(": ")[2]))


def _is_inside(place: str, homes: Collection[Path]) -> bool:
    """Whether a folder, as an agent named it, is our home or lies in it."""
    return any(place.startswith(str(home)) and PurePath(place).is_relative_to(home) for home in homes)
