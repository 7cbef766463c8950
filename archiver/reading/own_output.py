"""Removal of Palaver's own output from parsed transcripts.

The output stays in the raw archive. It is not indexed, and no observations are extracted from it.
"""

from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path, PurePath

from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Session, SessionKind, Turn
from ...core.recursion import (
    Own,
    is_own_command,
    is_own_folder,
    is_own_prompt,
    is_own_tool,
    is_suspect,
    without_recalled,
)
from .parsing import ParsedLines

_SHELLS = {"bash", "shell", "exec_command", "execute", "powershell", "run_shell_command", "terminal", "run_in_terminal"}
_SHORTENED = {Kind.RESULT, Kind.INJECTED}
"""Kinds of turns that readers shorten to the head and the tail."""


def remove_own_output(parsed: ParsedLines, session: Session, home: Path) -> None:
    """Remove Palaver's own output, and change the outcome of its lines to the reason for the removal.

    A line that also contains other content keeps the outcome `parsed`.
    """
    homes = {home, home.resolve()}
    folder = session.cwd or next((note.value for note in parsed.notes if note.fact is Fact.CWD), "")
    kept: list[Exchange] = []
    for exchange in parsed.exchanges:
        place = _own_place(exchange.cwd or folder, homes)
        if place is None and not any(is_suspect(turn.text, turn.tool) for turn in exchange.turns):
            kept.append(exchange)
            continue
        checked = list(_checked(exchange, place or (Own.RUN if _is_own_run(exchange, session.kind) else None)))
        turns = tuple(turn for turn, own in checked if own is None)
        for line, group in groupby(checked, key=lambda pair: pair[0].line):
            reasons = [own for _, own in group]
            if reasons[0] is not None and None not in reasons:
                parsed.count_as(reasons[0], [line])
        if turns:
            kept.append(exchange if turns == exchange.turns else replace(exchange, turns=turns))
    parsed.exchanges = kept


def _own_place(folder: str, homes: Collection[Path]) -> Own | None:
    """Return the reason for removing all output of a session in this folder, or None for other folders."""
    return Own.RUN if is_own_folder(folder) else Own.FOLDER if _is_inside(folder, homes) else None


def _checked(exchange: Exchange, whole: Own | None) -> Iterator[tuple[Turn, Own | None]]:
    """Yield each turn without Palaver's output. If no text is left, also yield the reason for skipping the turn."""
    own_calls = _own_calls(exchange)
    for turn in exchange.turns:
        if whole is not None:
            yield turn, whole
        elif is_own_tool(turn.tool) or (turn.call and turn.call in own_calls):
            yield turn, Own.TOOL
        else:
            text = without_recalled(turn.text, shortened=turn.kind in _SHORTENED)
            kept = turn if text == turn.text else turn._replace(text=text)
            yield kept, None if text or not turn.text else Own.RECALLED


def _is_own_run(exchange: Exchange, kind: SessionKind) -> bool:
    """Return whether an agent ran only for Palaver in this exchange.

    Either Palaver wrote the prompt of the exchange, or a sub-agent called only Palaver's tools and commands.
    """
    if any(turn.kind is Kind.PROMPT and is_own_prompt(turn.text) for turn in exchange.turns):
        return True
    calls = [turn for turn in exchange.turns if turn.kind is Kind.CALL]
    return kind is SessionKind.SUBAGENT and bool(calls) and all(map(_is_own_call, calls))


def _own_calls(exchange: Exchange) -> set[str]:
    return {turn.call for turn in exchange.turns if turn.kind is Kind.CALL and turn.call and _is_own_call(turn)}


def _is_own_call(turn: Turn) -> bool:
    return is_own_tool(turn.tool) or (turn.tool.lower() in _SHELLS and is_own_command(turn.text.partition(": ")[2]))


def _is_inside(folder: str, homes: Collection[Path]) -> bool:
    """Return whether a folder is Palaver's home or is inside it."""
    return any(folder.startswith(str(home)) and PurePath(folder).is_relative_to(home) for home in homes)
