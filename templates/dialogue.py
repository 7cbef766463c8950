"""An exchange as a reader follows it: who spoke, which tool was called, what it answered."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import Exchange, Kind, Speaker, Turn

ROOM = 8_000
"""Characters that all tool results of one reply share."""
LEAST = 300
"""Characters that a tool result gets however many there are."""
_ASIDE = 500
"""Characters shown of what the host injected or the model thought: seldom what a reader is looking for."""


class Excerpt(Struct, frozen=True):
    """The beginning of a text, and how many characters of it were left out."""

    text: str
    hidden: int
    line: int
    failed: bool = False


class Step(Struct, frozen=True):
    """One thing that happened. `label` is set where the voice changes; `form` is prose, call, result or aside.

    `left` is True on a branch that the person rewound and left.
    """

    form: str
    said: Excerpt
    label: str = ""
    tool: str = ""
    result: Excerpt | None = None
    left: bool = False


_LABELS = {
    (Speaker.HUMAN, Kind.PROMPT): "User",
    (Speaker.HOST, Kind.PROMPT): "Task",
}
_FORMS = {Kind.CALL: "call", Kind.RESULT: "result", Kind.PROMPT: "prose", Kind.PROSE: "prose"}


def share(exchanges: Sequence[Exchange], *, whole: bool) -> int | None:
    """How many characters each tool result may take; None when the reader asked for exactly this line (`whole`)."""
    if whole:
        return None
    results = sum(turn.kind is Kind.RESULT for exchange in exchanges for turn in exchange.turns)
    return max(LEAST, ROOM // max(results, 1))


def steps(exchange: Exchange, limit: int | None) -> tuple[Step, ...]:
    """The turns of an exchange in order, each result beside its call and no longer than `limit` characters."""
    answers = {turn.call: turn for turn in exchange.turns if turn.kind is Kind.RESULT and turn.call}
    asked = {turn.call for turn in exchange.turns if turn.kind is Kind.CALL}
    shown = (turn for turn in exchange.turns if turn.kind is not Kind.RESULT or turn.call not in asked)
    return tuple(_labelled(_step(turn, answers, limit) for turn in shown))


def _step(turn: Turn, answers: dict[str, Turn], limit: int | None) -> Step:
    form = _FORMS.get(turn.kind, "aside")
    room = {"call": limit, "result": limit, "aside": limit and _ASIDE}.get(form)
    answer = answers.get(turn.call) if form == "call" else None
    return Step(
        form=form,
        said=_excerpt(turn, room),
        label=turn.kind.value.capitalize() if form == "aside" else _LABELS.get((turn.speaker, turn.kind), "Assistant"),
        tool=turn.tool,
        result=None if answer is None else _excerpt(answer, limit),
        left=not turn.active,
    )


def _labelled(plain: Iterable[Step]) -> Iterator[Step]:
    """Says each voice once, and again where a left branch begins or ends."""
    voice = ("", False)
    for step in plain:
        now = (step.label, step.left)
        yield step if now != voice or step.form == "aside" else replace(step, label="")
        voice = now


def _excerpt(turn: Turn, limit: int | None) -> Excerpt:
    # A call's text begins with its tool, so that the tool can be searched; a step names it already.
    text = turn.text.removeprefix(turn.tool).removeprefix(": ") if turn.kind is Kind.CALL else turn.text
    hidden = 0 if limit is None else max(len(text) - limit, 0)
    return Excerpt(text[: len(text) - hidden], hidden, turn.line, turn.failed)
