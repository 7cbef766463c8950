"""The JSON of conversations that callers may rely on. Keys are only ever added."""

import shlex
from typing import TypedDict

from ..core.clock import show_day, show_minute
from ..core.conversation import Exchange, Turn
from ..core.results import BUDGET, TranscriptExcerpt
from .budget import CutLine, cut_line, fitting_transcript
from .elsewhere import AlsoInJson, also_in_json
from .priced import PricedJson, priced
from .quote import clean


class TurnJson(TypedDict):
    """One thing said or done in a conversation. `call` pairs a tool's result with its call."""

    line: int
    speaker: str
    kind: str
    text: str
    tool: str
    call: str
    failed: bool
    active: bool


class ExchangeJson(TypedDict):
    """One prompt and what followed it. `ordinal` counts from 1, as the markdown does. The lines and the tokens that the
    agent's model used are those of the whole exchange; the turns stand on those that are shown.
    """

    ordinal: int
    start_line: int
    end_line: int
    shown_start_line: int
    shown_end_line: int
    date: str
    tokens_in: int
    tokens_out: int
    turns: list[TurnJson]


class RestJson(TypedDict):
    """A line of which the reply has the beginning only: how many tokens all that was said on it has, and the command
    that prints them.
    """

    line: int
    tokens: int
    command: str


class TranscriptJson(PricedJson):
    """Layer 3. `next_line` is where to go on where the reply was cut; where it was cut within a line, `rest` tells how
    to get the rest of that one.
    """

    path: str
    session_id: str
    kind: str
    parent_id: str
    agent: str
    version: str
    project: str
    directory: str
    branch: str
    title: str
    pull_request: str
    date: str
    start_line: int
    end_line: int
    total_lines: int
    next_line: int | None
    rest: RestJson | None
    also_in: AlsoInJson
    exchanges: list[ExchangeJson]


def transcript_json(transcript: TranscriptExcerpt, *, budget: int = BUDGET) -> TranscriptJson:
    """Layer 3 as JSON, as many lines as the budget has room for."""

    def shown(part: TranscriptExcerpt) -> TranscriptJson:
        return _transcript(part, cut_line(transcript, part))

    return shown(fitting_transcript(transcript, lambda part: shown(part)["tokens"], budget))


def _transcript(transcript: TranscriptExcerpt, rest: CutLine | None) -> TranscriptJson:
    shape = TranscriptJson(
        path=clean(transcript.path),
        session_id=clean(transcript.session_id),
        kind=transcript.kind.value,
        parent_id=clean(transcript.parent_id),
        agent=transcript.agent,
        version=clean(transcript.version),
        project=clean(transcript.project),
        directory=clean(transcript.cwd),
        branch=clean(transcript.branch),
        title=clean(transcript.title),
        pull_request=clean(transcript.pull_request),
        date=show_day(transcript.started),
        start_line=transcript.start_line,
        end_line=transcript.end_line,
        total_lines=transcript.total_lines,
        next_line=transcript.next_line,
        rest=_rest(transcript, rest) if rest else None,
        also_in=also_in_json(transcript.also_in),
        exchanges=[_exchange(exchange, transcript.shown(exchange.span)) for exchange in transcript.exchanges],
        tokens=0,
    )
    return priced(shape)


def _rest(transcript: TranscriptExcerpt, rest: CutLine) -> RestJson:
    command = f"palaver read {shlex.quote(transcript.path)} {rest.line} {rest.option}"
    return RestJson(line=rest.line, tokens=rest.tokens, command=clean(command))


def _exchange(exchange: Exchange, shown: tuple[int, int]) -> ExchangeJson:
    return ExchangeJson(
        ordinal=exchange.ordinal + 1,
        start_line=exchange.span.start_line,
        end_line=exchange.span.end_line,
        shown_start_line=shown[0],
        shown_end_line=shown[1],
        date=show_minute(exchange.started),
        tokens_in=exchange.tokens_in,
        tokens_out=exchange.tokens_out,
        turns=[_turn(turn) for turn in exchange.turns],
    )


def _turn(turn: Turn) -> TurnJson:
    return TurnJson(
        line=turn.line,
        speaker=turn.speaker.value,
        kind=turn.kind.value,
        text=clean(turn.text),
        tool=clean(turn.tool),
        call=clean(turn.call),
        failed=turn.failed,
        active=turn.active,
    )
