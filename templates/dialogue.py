"""Dialogue: the turns of an exchange as a list of steps, with each tool result beside its call."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import Exchange, Kind, Speaker, Turn
from ..core.read_cost import ASIDE_MAX
from ..core.results import StartedSubagent


class TurnText(Struct, frozen=True):
    """Beginning of the text of a turn, with the number of omitted characters."""

    text: str
    hidden: int
    line: int
    failed: bool = False


class Step(Struct, frozen=True):
    """One step of a dialogue.

    `form` is prose, call, result or aside (thinking or injected text).
    `label` is the name of the speaker, set only where the speaker changes.
    `rewound` is True on a branch that the user abandoned by rewinding.
    `subagents` are the sub-agents that a call started.
    """

    form: str
    said: TurnText
    label: str = ""
    tool: str = ""
    result: TurnText | None = None
    rewound: bool = False
    subagents: tuple[StartedSubagent, ...] = ()


_LABELS = {
    (Speaker.HUMAN, Kind.PROMPT): "User",
    (Speaker.HOST, Kind.PROMPT): "Task",
    (Speaker.HOST, Kind.PROSE): "Sub-agent",
    (Speaker.HOST, Kind.CALL): "Sub-agent",
}
_FORMS = {Kind.CALL: "call", Kind.RESULT: "result", Kind.PROMPT: "prose", Kind.PROSE: "prose"}


def count_results(exchanges: Iterable[Exchange]) -> int:
    """Count the tool results in these exchanges."""
    return sum(turn.kind is Kind.RESULT for exchange in exchanges for turn in exchange.turns)


def dialogues(
    exchanges: Sequence[Exchange], limit: int | None, subagents: Mapping[str, tuple[StartedSubagent, ...]]
) -> list[tuple[Exchange, tuple[Step, ...]]]:
    """Return each exchange with its steps in order.

    A result is shown beside its call, even if it was recorded in a later exchange. Tool results have at most `limit`
    characters. With None, their length is not limited. `subagents` are the sub-agents by the ID of their call.
    """
    own = [
        _results(exchange, {turn.call for turn in exchange.turns if turn.kind is Kind.CALL}) for exchange in exchanges
    ]
    late = list[set[str]]()
    waiting: dict[str, dict[str, Turn]] = {}
    for exchange, answers in zip(exchanges, own, strict=True):
        found = _results(exchange, waiting.keys())
        late.append(set(found))
        for call, result in found.items():
            waiting.pop(call)[call] = result
        waiting |= {
            turn.call: answers for turn in exchange.turns if turn.kind is Kind.CALL and turn.call not in answers
        }
    shown = [
        [_step(turn, answers, limit, subagents) for turn in _shown(exchange, answers.keys() | apart)]
        for exchange, answers, apart in zip(exchanges, own, late, strict=True)
    ]
    return [(exchange, tuple(_labelled(steps))) for exchange, steps in zip(exchanges, shown, strict=True)]


def _results(exchange: Exchange, calls: Collection[str]) -> dict[str, Turn]:
    """Return the results of these calls in an exchange, by the ID of the call."""
    return {turn.call: turn for turn in exchange.turns if turn.kind is Kind.RESULT and turn.call in calls}


def _shown(exchange: Exchange, apart: Collection[str]) -> Iterator[Turn]:
    """Yield the turns, except the results of the calls `apart`, which are shown beside their calls."""
    return (turn for turn in exchange.turns if turn.kind is not Kind.RESULT or turn.call not in apart)


def _step(
    turn: Turn,
    answers: dict[str, Turn],
    limit: int | None,
    subagents: Mapping[str, tuple[StartedSubagent, ...]],
) -> Step:
    form = _FORMS.get(turn.kind, "aside")
    most = {"call": limit, "result": limit, "aside": limit and ASIDE_MAX}.get(form)
    answer = answers.get(turn.call) if form == "call" else None
    return Step(
        form=form,
        said=_text(turn, most),
        label=turn.kind.value.capitalize() if form == "aside" else _LABELS.get((turn.speaker, turn.kind), "Assistant"),
        tool=turn.tool,
        result=None if answer is None else _text(answer, limit),
        rewound=not turn.active,
        subagents=subagents.get(turn.call, ()),
    )


def _labelled(unlabelled: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with a label only where the speaker changes, or where a rewound branch begins or ends."""
    previous = ("", False)
    for step in unlabelled:
        current = (step.label, step.rewound)
        yield step if current != previous or step.form == "aside" else replace(step, label="")
        previous = current


def _text(turn: Turn, limit: int | None) -> TurnText:
    # The text of a call begins with the name of its tool, which a step already has.
    text = turn.text.removeprefix(turn.tool).removeprefix(": ") if turn.kind is Kind.CALL else turn.text
    hidden = 0 if limit is None else max(len(text) - limit, 0)
    return TurnText(text[: len(text) - hidden], hidden, turn.line, turn.failed)
