"""Pages of a session, built from the stored exchanges. The raw copy is read only within their byte ranges."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.raw_copy import Copy, RawArchive
from ...archiver.copies.result_files import FOLDER, ResultFiles
from ...archiver.formats.recorded_usage import usage_records
from ...archiver.lines import one_line
from ...archiver.reading.exchanges import TextChange, changes_in
from ...archiver.store import Source, Store, StoredExchange
from ...archiver.store.exchange_table import ExchangeSpan
from ...core import ids
from ...core.conversation import Exchange, Session, Turn
from ...core.errors import InvalidInput
from ...core.text import without_tag_lines
from ...core.tokens import Completeness, TokenCounts, usage_by_reply
from ...core.transcript_page import Call, ExchangeSteps, Outcome, Step, StepKind, Subagent, TranscriptPage
from .changes import count_lines
from .raw_lines import RawLines
from .run_summary import summarize_run
from .steps import TurnGroup, group_turns, step_of, steps_of
from .tool_calls import EDIT, relative

_WEIGHT: Final = 60
"""Maximum weight of the steps on a page. A step weighs 1, a text 1 more per `_TEXT` characters.

A page of this weight has fewer than 900 elements.
"""
_TEXT: Final = 400
_LEAD: Final = 30
"""Maximum weight of the steps before a requested line, from the prompt on."""
_HEADING: Final = 120
"""Maximum characters of the heading of an exchange."""
_PROMPT_START: Final = 200
_PERSISTED: Final = "<persisted-output>"
"""Beginning of an output that Claude Code stores in a file."""
_RESULT_FILE: Final = re.compile(rf"{FOLDER}[/\\]([^/\\\s]+)")
_RESULT_BYTES: Final = 1 << 20
"""Maximum bytes of a result file that are shown."""


class SessionFile(Struct, frozen=True):
    """File of a session with stored exchanges, and the session."""

    source: Source
    session: Session


class _Draft(Struct):
    """Steps of one exchange that were chosen for a page."""

    stored: StoredExchange
    groups: list[TurnGroup]
    following: TurnGroup | None
    """First group of the exchange that is on the later page, or None."""
    continued: bool


class TranscriptPages:
    """Pages of sessions, by the number of the session in the store."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def files(self, number: int) -> list[SessionFile]:
        """Return the files of a session that have exchanges, in the order of their first exchange."""
        session, main = self._store.sessions.load(number), self._store.sources.main(number)
        sources = self._store.sources.with_exchanges(number) or ([main] if main else [])
        return [SessionFile(source, session) for source in sources]

    def file(self, number: int, part: int) -> SessionFile:
        """Return a file of a session. `part` is its number, from 1.

        Raises:
            InvalidInput: The session has no such file.
        """
        return _part_of(self.files(number), part)

    def page(
        self,
        number: int,
        part: int | None = None,
        line: int | None = None,
        start: int | None = None,
        before: int | None = None,
    ) -> TranscriptPage:
        """Return a page of a session. Without a line, it ends at the end of the file.

        Args:
            number: Number of the session in the store.
            part: Number of the file, from 1. Without it, the last file.
            line: Line that the page contains, with the prompt before it unless that is far away.
            start: Line at which the page begins.
            before: Line before which the page ends.

        Raises:
            InvalidInput: The session has no such file.
        """
        files = self.files(number)
        parts = len(files)
        part = parts if part is None else part
        file = _part_of(files, part)
        spans = self._store.exchanges.spans(file.source.id or 0)
        if line is not None:
            drafts = self._from(spans, line, _LEAD) or self._before(spans, None)
        elif start is not None:
            drafts = self._from(spans, start, 0)
        else:
            drafts = self._before(spans, before)
        copied = self._store.repetitions.copied_start(file.source.id or 0)
        page = TranscriptPage(
            part, parts, (), file.source.lines,
            earlier=_earlier(drafts, spans), later=_later(drafts, spans),
            copied_from=session_name(self._store, copied[0]) if copied else "", copied_lines=copied[1] if copied else 0,
        )  # fmt: skip
        before = self.exchanges_before(files)[part - 1]
        completed = self._completed(drafts, file)
        return replace(page, exchanges=tuple(replace(one, number=before + one.number) for one in completed))

    def exchanges_before(self, files: Sequence[SessionFile]) -> list[int]:
        """Return, for each file of a session, the number of exchanges in the files before it."""
        spans = (self._store.exchanges.spans(file.source.id or 0) for file in files)
        return [0, *accumulate(own[-1].ordinal + 1 if own else 0 for own in spans)][:-1]

    def stored_result(self, file: SessionFile, output: str) -> bytes:
        """Return the beginning of the result file that the output of a call names, or an empty byte string."""
        named = _RESULT_FILE.search(output) if output.startswith(_PERSISTED) else None
        results = ResultFiles(file.source.path, Copy(self._raw.root, file.source.archived))
        if named is None or named[1] not in results.names():
            return b""
        with results.open(named[1]) as copy:
            return copy.read(_RESULT_BYTES)

    def _load(self, span: ExchangeSpan) -> tuple[StoredExchange, list[TurnGroup]] | None:
        stored = self._store.exchanges.load([span.key]).get(span.key)
        # Another process may have just deleted the exchange.
        return None if stored is None else (stored, group_turns(stored.exchange.turns))

    def _from(self, spans: Sequence[ExchangeSpan], line: int, lead: int) -> list[_Draft]:
        """Return the groups that begin on or after a line.

        With `lead`, begin with the group that contains the line, or with the exchange if the groups before weigh at
        most `lead` together.
        """
        drafts, weight = list[_Draft](), 0
        for span in spans:
            loaded = self._load(span) if span.span.end_line >= line else None
            if loaded is None:
                continue
            stored, groups = loaded
            begins = [group.last_line if lead else group.line for group in groups]
            first = next((at for at, begin in enumerate(begins) if begin >= line), len(groups))
            if lead and not drafts and sum(map(_weight, groups[:first])) <= lead:
                first = 0
            end = first
            while end < len(groups) and (weight < _WEIGHT or not _can_cut(groups, end)):
                weight += _weight(groups[end])
                end += 1
            if first < end:
                drafts.append(_Draft(stored, groups[first:end], next(iter(groups[end:]), None), first > 0))
            if weight >= _WEIGHT:
                break
        return drafts

    def _before(self, spans: Sequence[ExchangeSpan], before: int | None) -> list[_Draft]:
        """Return the last groups that begin before a line or, without a line, the last groups of the file."""
        drafts, weight = list[_Draft](), 0
        for span in reversed(spans):
            loaded = self._load(span) if before is None or span.span.start_line < before else None
            if loaded is None:
                continue
            stored, groups = loaded
            end = sum(before is None or group.line < before for group in groups)
            first = end
            while first > 0 and (weight < _WEIGHT or not _can_cut(groups, first)):
                first -= 1
                weight += _weight(groups[first])
            if first < end:
                drafts.insert(0, _Draft(stored, groups[first:end], next(iter(groups[end:]), None), first > 0))
            if weight >= _WEIGHT:
                break
        return drafts[1:] if _begins_better_later(drafts) else drafts

    def _completed(self, drafts: Sequence[_Draft], file: SessionFile) -> list[ExchangeSteps]:
        """Return the exchanges with what only the raw copy contains: tokens and the line counts of edits."""
        raw = RawLines(self._raw, file.source.archived)
        for draft in reversed(drafts):
            raw.load(draft.stored.exchange.span)
        links = SubagentLinks(self._store, file, raw)
        return [self._exchange(draft, file, raw, links) for draft in drafts]

    def _exchange(self, draft: _Draft, file: SessionFile, raw: RawLines, links: "SubagentLinks") -> ExchangeSteps:
        exchange = draft.stored.exchange
        steps = [step_of(group, exchange.cwd or file.session.cwd) for group in draft.groups]
        usage, is_partial = _usage(exchange, file, raw)
        return ExchangeSteps(
            number=exchange.ordinal + 1,
            start_line=exchange.span.start_line,
            end_line=exchange.span.end_line,
            heading=heading_of(exchange),
            steps=tuple(links.linked(_counted(step, exchange, raw)) for step in steps),
            started=exchange.started,
            seconds=_seconds(exchange),
            usage=usage if usage.total else None,
            is_partial=is_partial,
            continued=draft.continued,
            continues=draft.following is not None,
            id=ids.show("exchange", draft.stored.key),
        )

    def edits(self, file: SessionFile, exchange: Exchange) -> Iterator[Call]:
        """Yield the successful edits of an exchange: one for each file, with the lines added and removed in it.

        Rewound edits are omitted.
        """
        raw, cwd = RawLines(self._raw, file.source.archived), exchange.cwd or file.session.cwd
        raw.load(exchange.span)
        for step in steps_of(exchange.turns, cwd):
            for call in step.calls if not step.rewound else ():
                if call.kind == EDIT and call.outcome is Outcome.DONE:
                    yield from _edits_by_file(call, _changes_of(call, exchange.turns, raw), cwd)

    def step(self, number: int, part: int, line: int, position: int) -> Step:
        """Return the step that begins at a position of a line, with the line counts of all edits.

        `number` is the store's ID of the session, `part` the number of its file, and `position` the place of the step
        among those of the line.

        Raises:
            InvalidInput: No step begins there.
        """
        steps = self.steps_on(number, part, line)
        first = next((step for step in steps if (step.line, step.position) == (line, position)), None)
        if first is None:
            raise InvalidInput(f"No step begins on line {line}", hint="Go back to the session.")
        return first

    def steps_on(self, number: int, part: int, line: int) -> list[Step]:
        """Return the steps with a line, with the line counts of their edits and the sessions of sub-agents."""
        for file in self.files(number)[part - 1 : part]:
            for span in self._store.exchanges.spans(file.source.id or 0):
                loaded = self._load(span) if span.span.start_line <= line <= span.span.end_line else None
                if loaded is not None:
                    raw, exchange = RawLines(self._raw, file.source.archived), loaded[0].exchange
                    raw.load(span.span)
                    links = SubagentLinks(self._store, file, raw)
                    groups = [group for group in loaded[1] if group.line <= line <= group.last_line]
                    steps = [links.linked(step_of(group, exchange.cwd or file.session.cwd)) for group in groups]
                    return [_counted(step, exchange, raw) for step in steps]
        return []


class SubagentLinks:
    """Sessions of the sub-agents that a session started, by their calls."""

    def __init__(self, store: Store, file: SessionFile, raw: RawLines) -> None:
        self._store, self._file, self._raw = store, file, raw
        self._known: dict[int, Session] | None = None
        self._prompts: dict[int, str] = {}

    def linked(self, step: Step) -> Step:
        """Return the step with the session of each sub-agent."""
        if step.kind is not StepKind.SUBAGENT:
            return step
        return replace(step, calls=tuple(map(self._linked, step.calls)))

    def _linked(self, call: Call) -> Call:
        if self._known is None:
            self._known = self._store.sessions.subagents(self._file.session)
        number = self._named_in(self._raw.on(call.result_line)) or self._with_prompt(call)
        if number is None:
            return call
        session = self._known.pop(number)
        return replace(call, subagent=Subagent(session_name(self._store, number), _seconds(session)))

    def _named_in(self, result: bytes) -> int | None:
        """Return the sub-agent whose ID the result contains."""
        named = (
            number
            for number, session in (self._known or {}).items()
            if session.native_id.removeprefix("agent-").encode() in result
        )
        return next(named, None) if result else None

    def _with_prompt(self, call: Call) -> int | None:
        """Return the first sub-agent that began with the prompt in a call."""
        record = " ".join(self._raw.on(call.line).decode(errors="replace").replace("\\n", " ").split())
        for number in self._known or {}:
            if number not in self._prompts:
                first = self._store.exchanges.first_of_session(number)
                prompt = " ".join(first.prompt.split()) if first else ""
                self._prompts[number] = prompt[:_PROMPT_START].replace('"', '\\"')
            if self._prompts[number] and self._prompts[number] in record:
                return number
        return None


def _part_of(files: Sequence[SessionFile], part: int) -> SessionFile:
    if not 1 <= part <= len(files):
        raise InvalidInput(f"This session has no file {part}", hint=f"It has {len(files)}.")
    return files[part - 1]


def _seconds(timed: Exchange | Session) -> float | None:
    """Return the duration of an exchange or a session in seconds, or None if a time is unknown."""
    if timed.started is None or timed.ended is None:
        return None
    return (timed.ended - timed.started) / 1000


def _can_cut(groups: Sequence[TurnGroup], index: int) -> bool:
    """Return whether a page can end before a group. Groups that begin on one line stay together."""
    return not 0 < index < len(groups) or groups[index].line != groups[index - 1].line


def _begins_better_later(drafts: Sequence[_Draft]) -> bool:
    """Return whether a page should begin with its first whole exchange, because that leaves at least half a page."""
    weight = sum(_weight(group) for draft in drafts[1:] for group in draft.groups)
    return bool(drafts) and drafts[0].continued and weight >= _WEIGHT // 2


def _weight(group: TurnGroup) -> int:
    return 1 + group.length // _TEXT


def _earlier(drafts: Sequence[_Draft], spans: Sequence[ExchangeSpan]) -> int | None:
    if not drafts:
        return None
    has_earlier = drafts[0].continued or spans[0].key != drafts[0].stored.key
    return drafts[0].groups[0].line if has_earlier else None


def _later(drafts: Sequence[_Draft], spans: Sequence[ExchangeSpan]) -> int | None:
    if not drafts:
        return None
    last = drafts[-1]
    if last.following is not None:
        return last.following.line
    following = (span.span.start_line for span in spans if span.ordinal > last.stored.exchange.ordinal)
    return next(following, None)


def session_name(store: Store, number: int) -> str:
    """Return the name of a session in addresses, which stays valid when the archive grows.

    It is the agent's ID of the session or, if other sessions have the same, the ID after its scope or its agent.
    """
    short = store.sessions.short_ids([number]).get(number, "")
    return short if "/" in short else store.sessions.load(number).native_id


def heading_of(exchange: Exchange) -> str:
    """Return the first words of the prompt of an exchange."""
    return one_line(without_tag_lines(exchange.prompt[: 4 * _HEADING]), _HEADING) or "Before the first prompt"


def _usage(exchange: Exchange, file: SessionFile, raw: RawLines) -> tuple[TokenCounts, bool]:
    """Return the tokens of an exchange without those of sub-agents, and whether the output of a reply is partial."""
    records = usage_records(file.source.agent, file.session.native_id, raw.within(exchange.span))
    replies = [reply for reply in usage_by_reply(records) if reply.completeness is not Completeness.PROGRESS]
    total = sum((reply.counts for reply in replies), TokenCounts())
    return total, any(reply.completeness is Completeness.PARTIAL for reply in replies)


def _counted(step: Step, exchange: Exchange, raw: RawLines) -> Step:
    """Return a step with the added and removed lines of its edits, from the records of the calls."""
    if not any(call.kind == EDIT for call in step.calls):
        return step
    calls = tuple(_with_counts(call, exchange.turns, raw) for call in step.calls)
    return replace(step, calls=calls, summary=summarize_run(calls))


def _with_counts(call: Call, turns: Sequence[Turn], raw: RawLines) -> Call:
    if call.kind != EDIT or call.outcome is not Outcome.DONE:
        return call
    changes = _changes_of(call, turns, raw)
    if not changes:
        return call
    added, removed = count_lines(changes)
    return replace(call, added=added, removed=removed)


def _changes_of(call: Call, turns: Sequence[Turn], raw: RawLines) -> list[TextChange]:
    on_line = [turn for turn in turns if turn.line == call.line]
    return changes_in(raw.on(call.line), on_line[call.position].call)


def _edits_by_file(call: Call, changes: Sequence[TextChange], cwd: str) -> Iterator[Call]:
    """Yield the edit of each file of a call. Counts are omitted if the call does not record the file's lines."""
    for path in call.paths:
        own = [change for change in changes if len(call.paths) == 1 or relative(change.path, cwd) == path]
        added, removed = count_lines(own) if own else (None, None)
        yield replace(call, paths=(path,), added=added, removed=removed)
