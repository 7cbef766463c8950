"""Steps of an exchange: its texts, and one step for each run of tool calls between them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field

from ...core.conversation import Kind, Speaker, Turn
from ...core.transcript_page import Outcome, Step, StepKind
from .clipping import clip_text
from .run_summary import summarize_run
from .tool_calls import QUESTION, SUBAGENT, describe_call, kind_of_tool, late_result

_KINDS: Final = {
    Kind.PROSE: StepKind.PROSE,
    Kind.THINKING: StepKind.THINKING,
    Kind.COMPACTION: StepKind.COMPACTION,
    Kind.RECAP: StepKind.RECAP,
    Kind.INJECTED: StepKind.NOTICE,
}


_TEXTS: Final = {StepKind.PROMPT, StepKind.TASK, StepKind.PROSE, StepKind.ANSWER, StepKind.RECAP}


class PlacedTurn(Struct, frozen=True):
    """Turn with its position among the turns of its line, from 0."""

    turn: Turn
    position: int


class TurnGroup(Struct):
    """Turns that become one step. The results of calls follow them, even if other steps come first."""

    kind: StepKind
    turns: list[PlacedTurn] = field(default_factory=list[PlacedTurn])

    @property
    def line(self) -> int:
        """First line of the step."""
        return self.turns[0].turn.line

    @property
    def last_line(self) -> int:
        """Last line of the step, with the results of its calls."""
        return max(entry.turn.line for entry in self.turns)

    @property
    def length(self) -> int:
        """Number of characters of a text, or 0 for calls."""
        return len(self.turns[0].turn.text) if self.kind in _TEXTS else 0


def placed(turns: Iterable[Turn]) -> list[PlacedTurn]:
    """Return the turns with their positions on their lines."""
    counts = Counter[int]()
    entries = list[PlacedTurn]()
    for turn in turns:
        entries.append(PlacedTurn(turn, counts[turn.line]))
        counts[turn.line] += 1
    return entries


def steps_of(turns: Sequence[Turn], cwd: str) -> list[Step]:
    """Return the steps of an exchange. See `group_turns`."""
    return [step_of(group, cwd) for group in group_turns(turns)]


def group_turns(turns: Sequence[Turn]) -> list[TurnGroup]:
    """Return the turns of an exchange, grouped by step, without describing their calls.

    Thinking and text of the agent's program that is next to tool calls belongs to their run, so that the calls between
    two paragraphs are one step. Calls of sub-agents and questions to the user are steps of their own.
    """
    groups, of_call = list[TurnGroup](), dict[str, TurnGroup]()
    run = TurnGroup(StepKind.RUN)
    for entry in placed(turns):
        turn = entry.turn
        if run.turns and turn.active != run.turns[0].turn.active:
            groups += _closed(run)
            run = TurnGroup(StepKind.RUN)
        if turn.kind is Kind.RESULT and (turn.speaker is not Speaker.HUMAN or turn.call in of_call):
            of_call.get(turn.call, run).turns.append(entry)
        if turn.kind is Kind.RESULT and turn.speaker is not Speaker.HUMAN:
            continue
        if turn.kind is Kind.CALL and kind_of_tool(turn.tool) not in {SUBAGENT, QUESTION}:
            run.turns.append(entry)
            of_call[turn.call] = run
        elif turn.kind is Kind.THINKING or (turn.kind is Kind.INJECTED and not turn.failed):
            run.turns.append(entry)
        else:
            groups += _closed(run)
            run = TurnGroup(StepKind.RUN)
            group = TurnGroup(_kind_of(turn), [entry])
            groups.append(group)
            if turn.kind is Kind.CALL:
                of_call[turn.call] = group
    return [*groups, *_closed(run)]


def step_of(group: TurnGroup, cwd: str) -> Step:
    """Return the step of a group of turns. Paths below the working folder `cwd` are relative to it."""
    first = group.turns[0]
    if group.kind not in {StepKind.RUN, StepKind.SUBAGENT}:
        return _text_step(first, group.kind)
    turns = [entry.turn for entry in group.turns]
    results = {turn.call: turn for turn in turns if turn.kind is Kind.RESULT}
    made = {turn.call for turn in turns if turn.kind is Kind.CALL}
    calls = tuple(
        describe_call(entry.turn, entry.position, results.get(entry.turn.call), cwd)
        if entry.turn.kind is Kind.CALL
        else late_result(entry.turn, entry.position)
        for entry in group.turns
        if entry.turn.kind is Kind.CALL or (entry.turn.kind is Kind.RESULT and entry.turn.call not in made)
    )
    return Step(
        group.kind,
        group.line,
        group.last_line,
        first.position,
        at=first.turn.at,
        calls=calls,
        summary=summarize_run(calls),
        rewound=not first.turn.active,
        failed=calls[-1].outcome is Outcome.FAILED,
    )


def _closed(run: TurnGroup) -> list[TurnGroup]:
    """Return a run as a group or, if it has no calls, a group for each of its turns."""
    if any(entry.turn.kind in {Kind.CALL, Kind.RESULT} for entry in run.turns):
        return [run]
    return [TurnGroup(_kind_of(entry.turn), [entry]) for entry in run.turns]


def _text_step(entry: PlacedTurn, kind: StepKind) -> Step:
    turn, clipped = entry.turn, clip_text(entry.turn.text)
    return Step(
        kind, turn.line, turn.line, entry.position, clipped.text, clipped.hidden, turn.at,
        rewound=not turn.active, failed=turn.failed and kind is StepKind.NOTICE,
    )  # fmt: skip


def _kind_of(turn: Turn) -> StepKind:
    """Return the kind of the step that a turn begins."""
    if turn.kind is Kind.PROMPT:
        return StepKind.PROMPT if turn.speaker is Speaker.HUMAN else StepKind.TASK
    if turn.kind is Kind.CALL:
        return StepKind.SUBAGENT if kind_of_tool(turn.tool) == SUBAGENT else StepKind.RUN
    return StepKind.ANSWER if turn.kind is Kind.RESULT else _KINDS[turn.kind]
