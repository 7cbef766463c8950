"""JSON output, derived from the values of `core`.

Keys are the names of the fields. Times are ISO 8601 in UTC, days are in the display time zone, and amounts of money are
US dollars. Enums are written as their values, and paths and errors as text. Texts are inert: tags of tool syntax and
roles are escaped, and invisible characters are removed. `_FORMATS` lists all differences between the fields of a value
and the keys of its JSON object.
"""

import shlex
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import INSTANT, Exchange, Turn, show_day, show_instant
from ..core.deletion import Deletion, DeletionResult, ErasureCheck
from ..core.document import CodeLine, CodeLines, Symbol, Symbols
from ..core.errors import SourceUnreadable
from ..core.memory import Edge, MemoryEvent, StoredMemory
from ..core.query import Grouping
from ..core.reports import DOLLAR, MONEY, ConsistencyReport, HealthReport
from ..core.results import (
    BUDGET,
    AnswerReceipt,
    CommandList,
    ComputedList,
    Detail,
    FixList,
    Hit,
    OpenItemList,
    OutputMatch,
    OutputMatches,
    Results,
    Timeline,
    TranscriptExcerpt,
    ZeroResultExplanation,
)
from .environment import SESSIONS
from .quote import inert
from .truncation import clip, fit_items, fit_json, fit_timeline, fit_transcript, json_cost, truncated_line

_QUERY_CHARACTERS: Final = 300
"""Maximum characters of the query that a reply repeats."""
_TYPICAL_TOKENS: Final = 1_000
"""Provisional value of the field `tokens` while the cost of the reply, which includes this field, is computed."""

_COST: Final = 20
"""Maximum tokens of the field `tokens`."""

Object = dict[str, Any]
_Item = TypeVar("_Item")
_ID: Final = {"id": "id"}


class ObjectFormat(NamedTuple):
    """Differences between the fields of a value and the keys of its JSON object.

    `left_out` fields are omitted. The fields inside `merged` fields are moved to the top level. The keys in `added` are
    computed from an attribute or a function.
    """

    left_out: AbstractSet[str] = frozenset()
    merged: AbstractSet[str] = frozenset()
    added: Mapping[str, str] = {}
    computed: Mapping[str, Callable[[Any], object]] = {}


def also_in(sessions: Sequence[str]) -> Object:
    """Return the number of other sessions with the same text, and the IDs of the first three sessions."""
    return {"sessions": len(sessions), "ids": [inert(name) for name in sessions[:SESSIONS]]}


def _summary(hit: Hit) -> str:
    return inert("; ".join(hit.facts) or hit.title)


def _similarity(hit: Hit) -> float | None:
    return None if hit.similarity is None else round(hit.similarity, 4)


def _date(hit: Hit) -> str | None:
    """Return the day of a hit in the display time zone, as date filters read it."""
    return None if hit.at is None else show_day(hit.at)


def _score(hit: Hit) -> float:
    return round(hit.score, 4)


def _without(explanation: ZeroResultExplanation) -> Object:
    return dict(explanation.without)


def _other_sessions(value: Detail | TranscriptExcerpt) -> Object:
    return also_in(value.also_in)


def _exchanges(transcript: TranscriptExcerpt) -> list[Object]:
    """Return the exchanges. The call that started a sub-agent, or its result if the call is not shown, names it."""
    exchanges, subagents = to_json(transcript.exchanges), to_json(transcript.subagents)
    for turn in (turn for exchange in exchanges for turn in exchange["turns"]):
        if turn["call"] in subagents:
            turn["subagents"] = subagents.pop(turn["call"])
    return cast("list[Object]", exchanges)


def _number(exchange: Exchange) -> int:
    return exchange.ordinal + 1


def _nearest(rows: FixList) -> list[Object]:
    hits = rows.nearest.hits if rows.nearest else ()
    return [to_json({"id": hit.id, "title": hit.title}) for hit in hits]


def _until(deletion: Deletion) -> str | None:
    return None if deletion.until is None else show_instant(deletion.until)


def _done(_: DeletionResult) -> bool:
    return True


_FORMATS: Final[Mapping[type, ObjectFormat]] = {
    Hit: ObjectFormat(
        {"facts", "parts", "matched", "needs_snippet", "more", "cursor", "also_in", "superseded_by"},
        computed={
            "summary": _summary,
            "date": _date,
            "score": _score,
            "similarity": _similarity,
        },
    ),
    ZeroResultExplanation: ObjectFormat({"weak", "no_known_term"}, computed={"without": _without}),
    Detail: ObjectFormat({"left_out"}, {"observation"}, computed={"also_in": _other_sessions}),
    TranscriptExcerpt: ObjectFormat(
        {"subagents", "stated_tokens"}, computed={"also_in": _other_sessions, "exchanges": _exchanges}
    ),
    Exchange: ObjectFormat({"start_byte", "end_byte", "cwd", "branch"}, {"span"}, computed={"ordinal": _number}),
    Turn: ObjectFormat({"at", "record", "group", "reads", "writes"}),
    CommandList: ObjectFormat({"task"}),
    FixList: ObjectFormat(computed={"nearest": _nearest}),
    OpenItemList: ObjectFormat({"unmatched"}),
    StoredMemory: ObjectFormat({"key", "decayed", "strikes"}, {"memory", "stats"}, {**_ID, "protected": "protected"}),
    AnswerReceipt: ObjectFormat({"tokens"}, added={"answer_tokens": "tokens"}),
    Edge: ObjectFormat({"inferred"}, added={"source": "source_id", "target": "target_id"}),
    MemoryEvent: ObjectFormat({"memory"}),
    ConsistencyReport: ObjectFormat(added={"ok": "ok"}),
    HealthReport: ObjectFormat(added={"healthy": "healthy"}),
    ErasureCheck: ObjectFormat(added={"passed": "passed"}),
    Deletion: ObjectFormat(computed={"until": _until}),
    DeletionResult: ObjectFormat(computed={"done": _done}),
}


def to_json(value: object) -> Any:
    """Convert an object of `core` to JSON values: text, numbers, lists and objects."""
    match value:
        case str() | Path():
            return inert(str(value))
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {inert(str(key)): to_json(item) for key, item in items}
        case SourceUnreadable():
            return {"path": inert(str(value.path)), "reason": inert(value.reason), "hint": inert(value.hint)}
        case Exception():
            return inert(str(value))
        case Struct():
            return _object(value, value.__struct_fields__)
        case tuple() if (names := getattr(cast("object", value), "_fields", None)) is not None:
            return _object(cast("object", value), names)
        case AbstractSet():
            return sorted(map(to_json, cast("AbstractSet[object]", value)))
        case list() | tuple():
            return [to_json(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _object(value: object, names: Sequence[str]) -> Object:
    form, conversions = _FORMATS.get(type(value), _PLAIN), _conversions(cast("Hashable", type(value)))
    fields: Object = {}
    for name in names:
        if name in form.left_out or name in form.added or name in form.computed:
            continue
        field = getattr(value, name)
        if name in form.merged:
            part = to_json(field)
            fields |= {key: entry for key, entry in part.items() if key not in form.left_out}
        elif name in conversions and field is not None:
            fields[name] = conversions[name](field)
        else:
            fields[name] = to_json(field)
    fields |= {key: to_json(getattr(value, name)) for key, name in form.added.items()}
    fields |= {key: compute(value) for key, compute in form.computed.items()}
    return fields


_PLAIN: Final = ObjectFormat()


@cache
def _conversions(of: Hashable) -> Mapping[str, Callable[[Any], object]]:
    """Map each field that contains instants or amounts of money to the function that converts its values."""
    computed: dict[str, Callable[[Any], object]] = {}
    for name, kind in get_type_hints(cast("type[Any]", of), include_extras=True).items():
        markers = [mark for part in (kind, *get_args(kind)) for mark in getattr(part, "__metadata__", ())]
        if INSTANT in markers:
            computed[name] = show_instant
        elif MONEY in markers:
            computed[name] = _dollars
    return computed


def _dollars(amount: int | Mapping[str, int]) -> object:
    if isinstance(amount, Mapping):
        return {name: cost / DOLLAR for name, cost in amount.items()}
    return amount / DOLLAR


def results_json(results: Results, *, explain: bool = False, budget: int = BUDGET) -> Object:
    """Return the layer 1 reply, with as many hits as the budget allows.

    `total` is the number of hits in this reply and `found` the number on the whole page. `cut` is the number of hits
    omitted because of the budget. `next` is the cursor of the next page. `weak` contains hits below the relevance
    threshold. `tokens` is the cost of this reply.
    """
    weak = results.explanation.weak if results.explanation and not results.hits else ()

    def shown(hits: tuple[Hit, ...]) -> Object:
        return _results(results, hits, explain=explain, budget=budget)

    return _first_items(results.hits or weak, shown, budget)


def _results(results: Results, hits: tuple[Hit, ...], *, explain: bool, budget: int) -> Object:
    grouped = results.query.by is Grouping.SESSION
    rows = [_hit(hit, explain=explain, grouped=grouped) for hit in hits]
    queries = [
        clip(inert(concept), _QUERY_CHARACTERS // len(results.query.concepts)) for concept in results.query.concepts
    ]
    cut = len(results.hits) - len(hits) if results.hits else 0
    facts = to_json(replace(results, hits=()))
    for name in ("query", "hits", "total", "cursor", "ranking_limit"):
        del facts[name]
    fields: Object = {
        "results": rows if results.hits else [],
        "total": len(hits) if results.hits else 0,
        "query": queries if len(queries) > 1 else "".join(queries),
        "next": ((hits[-1].cursor if hits else "") if cut else results.cursor) or None,
        "cut": cut,
        "found": len(results.hits),
        "ranking_limit": results.ranking_limit and not cut,
        "weak": [] if results.hits else rows,
    }
    # Shorten the facts, because they repeat words and phrases of the query, which can have any length.
    return with_tokens({**fields, **fit_json(facts, budget // 2)})


def _hit(hit: Hit, *, explain: bool, grouped: bool) -> Object:
    fields: Object = to_json(hit)
    if grouped:
        fields["more"] = hit.more
    if hit.also_in:
        fields["also_in"] = also_in(hit.also_in)
    if hit.superseded_by:
        fields["superseded_by"] = hit.superseded_by
    if explain:
        fields["explain"] = {"score": hit.score, "parts": to_json(hit.parts)}
    return fields


def output_json(matches: OutputMatches, *, budget: int = BUDGET) -> Object:
    """Return matches in tool output, as many as the budget allows. `limited` is true if more may exist."""

    def shown(some: tuple[OutputMatch, ...]) -> Object:
        return with_tokens(to_json(matches.first(some)))

    return _first_items(matches.matches, shown, budget)


def computed_list_json(rows: ComputedList, *, budget: int = BUDGET) -> Object:
    """Return commands, fixes or open items, as many as the budget allows."""
    return with_tokens(fit_json(to_json(rows), budget - _COST))


def symbols_json(symbols: Symbols, *, budget: int = BUDGET) -> Object:
    """Return the units of code found by name, as many as the budget allows.

    `limited` is true if there are more.
    """

    def shown(some: tuple[Symbol, ...]) -> Object:
        return with_tokens(to_json(replace(symbols, symbols=some, limited=symbols.limited or some != symbols.symbols)))

    return _first_items(symbols.symbols, shown, budget)


def code_lines_json(lines: CodeLines, *, budget: int = BUDGET) -> Object:
    """Return the matching lines of code, as many as the budget allows. `limited` is true if there may be more."""

    def shown(some: tuple[CodeLine, ...]) -> Object:
        return with_tokens(to_json(replace(lines, lines=some, limited=lines.limited or some != lines.lines)))

    return _first_items(lines.lines, shown, budget)


def timeline_json(timeline: Timeline, *, budget: int = BUDGET) -> Object:
    """Return the entries around a hit, as many as the budget allows."""

    def shown(part: Timeline) -> Object:
        fields = to_json(part)
        return with_tokens({**fields, "results": fields.pop("hits")})

    return shown(fit_timeline(timeline, lambda part: shown(part)["tokens"], budget))


def details_json(details: Sequence[Detail], *, budget: int = BUDGET) -> Object:
    """Return the layer 2 reply, with as many entries as the budget allows and the IDs of all others in `rest`."""
    every = tuple(details)

    def shown(some: tuple[Detail, ...]) -> Object:
        left_out = [detail.id for detail in every[len(some) :]]
        return with_tokens({"observations": to_json(some), "total": len(some), "rest": left_out})

    return _first_items(every, shown, budget)


def transcript_json(transcript: TranscriptExcerpt, *, budget: int = BUDGET) -> Object:
    """Return the layer 3 reply, with as many lines as the budget allows.

    `next_line` is the line at which to continue a truncated reply. If a line does not fit completely, `rest` is the
    command that prints the whole line.
    """

    def shown(part: TranscriptExcerpt) -> Object:
        line = truncated_line(transcript, part)
        command = line and f"palaver read {shlex.quote(part.path)} {line.line} {line.option}"
        truncated = line and {"line": line.line, "tokens": line.tokens, "command": inert(command or "")}
        return with_tokens({**to_json(part), "rest": truncated})

    return shown(fit_transcript(transcript, lambda part: shown(part)["tokens"], budget))


def _first_items(items: tuple[_Item, ...], render: Callable[[tuple[_Item, ...]], Object], budget: int) -> Object:
    """Call `render` with as many of the first items as the budget allows, and return its result."""
    complete = render(items)
    if complete["tokens"] <= budget:
        return complete
    return render(fit_items(items, lambda some: render(some)["tokens"], budget))


def with_tokens(fields: Object) -> Object:
    """Return the object with its cost in tokens. The cost includes this number."""
    counted = {**fields, "tokens": _TYPICAL_TOKENS}
    cost = json_cost(counted)
    if len(str(cost)) != len(str(_TYPICAL_TOKENS)):
        cost = json_cost({**fields, "tokens": cost})
    return {**counted, "tokens": cost}
