"""Reads the lines of a Claude Code transcript, of every version, into turns and notes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from ....core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ...files.clipping import clean, clip, one_line
from ...files.lines import Line, Record, records
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Facts, Mark, identity
from .claude_code_prompts import Said, sort_out
from .claude_code_queue import QUEUED, Queue
from .claude_code_rewinds import Rewinds
from .claude_code_tools import INPUT_LIMIT, Call, block_text, call, content_text, describe, outcome

_TITLES = {"custom-title": ("customTitle", 4), "agent-name": ("agentName", 3), "ai-title": ("aiTitle", 2)}
_SUMMARY_RANK = 1
_SYNTHETIC = "<synthetic>"
_AWAY_HINT = "(disable recaps in /config)"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_NO_CONTENT = "(no content)"
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}

BOOKKEEPING = "bookkeeping"
EMPTY = "empty"
FILE_HISTORY = "file-history"
HOOK_OUTPUT = "hook-output"
CONTEXT = "context"
PROGRESS = "progress"
REPEATED = "repeated"
"""A title or link that was already known."""

_SKIPPED_TYPES = {
    "progress": PROGRESS,
    "file-history-snapshot": FILE_HISTORY,
    "file-history-delta": FILE_HISTORY,
    "last-prompt": BOOKKEEPING,
    "mode": BOOKKEEPING,
    "permission-mode": BOOKKEEPING,
    "bridge-session": BOOKKEEPING,
    "frame-link": BOOKKEEPING,
    "started": BOOKKEEPING,
    "result": BOOKKEEPING,
    "relocated": BOOKKEEPING,
    "worktree-state": BOOKKEEPING,
}
# Progress was up to a third of all lines, in versions that wrote its fields in this order and will not change any more.
_PROGRESS, _PROGRESS_WITHIN = b'"type":"progress","data":{', 800
_GLUED = b'}{"'

_ENVELOPE_FACTS = (Fact.SESSION, Fact.CWD, Fact.BRANCH, Fact.VERSION, Fact.AGENT_ID)
_SKIPPED_SYSTEM = {
    "api_error",
    "bridge_status",
    "informational",
    "microcompact_boundary",
    "model_refusal_fallback",
    "stop_hook_summary",
    "turn_duration",
}

Events: TypeAlias = "list[Turn | Note]"
Given: TypeAlias = "Sequence[Turn | Note] | str"
"""What one record gives: turns and notes, or the reason why nothing."""


class ClaudeReader:
    """Reads one file.

    What it remembers of earlier lines never reaches over the start of an exchange, except for facts of the whole
    session: reading may begin at any exchange and gives the same turns.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session = session
        self._shorten = shorten
        self._facts = Facts(session)
        self._envelope: tuple[object, ...] = ()
        self._titles: dict[int, str] = {}
        self._calls: dict[str, Call] = {}
        self._queue = Queue()
        self._rewinds = Rewinds()
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "summary": self._summary,
            "queue-operation": self._queue_operation,
            "pr-link": self._pull_request,
            "continued-in": self._continued,
            **dict.fromkeys(_TITLES, self._title),
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; a queued prompt comes once it is known whether it is seen again."""
        for count, line in enumerate(lines):
            if count == 0 and line.number > 1:
                self._rewinds.partial = True
            events = self._line(line)
            if self._queue.settled:
                yield from self._queue.take_settled()
            yield from events
        self._queue.settle(0)
        yield from self._queue.take_settled()

    def _line(self, line: Line) -> Sequence[Turn | Note | Skipped]:
        if not self._rewinds.partial and _is_progress(line.data):
            return [Skipped(line.number, PROGRESS)]
        found = records(line)
        if isinstance(found, str):
            return [Skipped(line.number, found)]
        events: Events = []
        reason = ""
        for record in found:
            given = self._record(record, line.number)
            if isinstance(given, str):
                reason = reason or given
            else:
                events += given
        held = self._queue.holds(line.number, accounted=bool(events))
        return events if events or held else [Skipped(line.number, reason)]

    def _record(self, record: Record, line: int) -> Given:
        kind = record.get("type")
        if not isinstance(kind, str):
            return "unknown-type"
        self._rewinds.see(record)
        reason = _SKIPPED_TYPES.get(kind)
        if reason is not None:
            return reason
        handler = self._handlers.get(kind)
        if handler is None:
            return f"unknown-type:{one_line(kind)}"
        return handler(record, Mark(line, instant(record.get("timestamp")), string(record.get("uuid"))))

    def _user(self, record: Record, mark: Mark) -> Given:
        content = mapping(record.get("message")).get("content")
        blocks = [mapping(block) for block in listing(content)]
        results = [block for block in blocks if _is_result(block)]
        if results:
            return self._results(record, mark, results, [block for block in blocks if not _is_result(block)])
        said = self._author(record, clean(content_text(content)))
        if not said.text:
            return EMPTY
        origin = string(mapping(record.get("forkedFrom")).get("sessionId"))
        return [*self._say(record, mark, said), *self._facts.learn(mark.line, Fact.PARENT, origin)]

    def _author(self, record: Record, text: str) -> Said:
        """Who wrote a text, by the line's flags first and by its wording second."""
        if record.get("isCompactSummary") is True:
            return Said(Speaker.HOST, Kind.COMPACTION, text)
        said = sort_out(text)
        if said.kind is not Kind.PROMPT:
            return said
        origin = mapping(record.get("origin")).get("kind", "human")
        injected = record.get("isMeta") is True or origin != "human" or record.get("toolUseResult") is not None
        if not injected and self._session.kind is SessionKind.SUBAGENT:
            return said._replace(speaker=Speaker.HOST)
        # Before version 2 sub-agents talked inside their parent's file; their tasks are not the person's.
        if injected or record.get("isSidechain") is True:
            return Said(Speaker.HOST, Kind.INJECTED, said.text)
        return said

    def _say(self, record: Record, mark: Mark, said: Said) -> Events:
        self._queue.seen_again(said.text)
        notes: Events = []
        if said.kind is Kind.PROMPT:
            notes = self._open(record, mark.line)
        text = clip(said.text, INPUT_LIMIT) if self._shorten and said.kind is Kind.INJECTED else said.text
        return [mark.turn(said.speaker, said.kind, text, tool=said.tool), *notes, *self._told(record, mark.line)]

    def _open(self, record: Record, line: int) -> Events:
        """Forget what belongs to the exchange that ends here."""
        self._queue.settle(line)
        self._calls.clear()
        self._envelope = ()
        self._facts.forget(Fact.CWD, Fact.BRANCH)
        return self._rewinds.prompt(record, line)

    def _results(self, record: Record, mark: Mark, results: Sequence[Record], others: list[Record]) -> Given:
        extra = record.get("toolUseResult") if len(results) == 1 else None
        events: Events = [self._result(mark, block, extra) for block in results]
        beside = clean(content_text(others))
        if beside:
            text = clip(beside, INPUT_LIMIT) if self._shorten else beside
            events.append(mark.turn(Speaker.HOST, Kind.INJECTED, text))
        return [*events, *self._told(record, mark.line)]

    def _result(self, mark: Mark, block: Record, extra: object) -> Turn:
        made_by = string(block.get("tool_use_id"))
        made = self._calls.pop(made_by, None)
        end = outcome(block, made, extra, shorten=self._shorten)
        return mark.turn(
            end.speaker,
            Kind.RESULT,
            end.text,
            tool=made.tool if made else "",
            call=made_by,
            failed=end.failed,
            reads=end.reads,
            writes=end.writes,
        )

    def _assistant(self, record: Record, mark: Mark) -> Given:
        message = mapping(record.get("message"))
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
        group = string(message.get("id")) or string(record.get("requestId"))
        events: Events = []
        for block in map(mapping, blocks):
            turn = self._reply(record, mark, block, group)
            if turn is not None:
                events.append(turn)
        if events:
            events += self._told(record, mark.line)
        model = string(message.get("model"))
        if model == _SYNTHETIC:
            return events or EMPTY
        events += self._facts.learn(mark.line, Fact.MODEL, model)
        events += self._facts.learn(mark.line, Fact.USAGE, _usage(message))
        return events or EMPTY

    def _reply(self, record: Record, mark: Mark, block: Record, group: str) -> Turn | None:
        kind = string(block.get("type"))
        if kind in _CALLS:
            made, made_by = call(block), string(block.get("id"))
            self._calls[made_by] = made
            text = describe(made.tool, mapping(block.get("input")), shorten=self._shorten)
            return mark.turn(Speaker.ASSISTANT, Kind.CALL, text, group=group, tool=made.tool, call=made_by)
        if _is_result(block):
            return self._result(mark, block, None)._replace(group=group)
        if kind == "thinking":
            text, said = clean(string(block.get("thinking"))), Kind.THINKING
        else:
            text, said = clean(block_text(block)), Kind.PROSE
        if not text or text == _NO_CONTENT:
            return None
        broken = record.get("isApiErrorMessage") is True
        if broken or mapping(record.get("message")).get("model") == _SYNTHETIC:
            return mark.turn(Speaker.HOST, Kind.INJECTED, text, failed=broken)
        return mark.turn(Speaker.ASSISTANT, said, text, group=group)

    def _system(self, record: Record, mark: Mark) -> Given:
        subtype, text = string(record.get("subtype")), clean(string(record.get("content")))
        if subtype == "compact_boundary":
            details = mapping(record.get("compactMetadata"))
            known = [string(details.get("trigger")), f"{whole(details.get('preTokens'))} tokens before"]
            text = f"{text or 'Conversation compacted'} ({', '.join(filter(None, known))})"
            return self._say(record, mark, Said(Speaker.HOST, Kind.COMPACTION, text))
        if subtype == "away_summary" and text:
            return self._say(record, mark, Said(Speaker.HOST, Kind.RECAP, text.removesuffix(_AWAY_HINT).strip()))
        if subtype == "local_command" and text:
            said = self._author(record, text)
            bare = said.kind is Kind.PROMPT and not text.startswith("<")
            return self._say(record, mark, Said(Speaker.HOST, Kind.INJECTED, text) if bare else said)
        if subtype in _SKIPPED_SYSTEM or subtype in {"away_summary", "local_command"}:
            return BOOKKEEPING
        return f"unknown-type:system/{one_line(subtype)}"

    def _attachment(self, record: Record, mark: Mark) -> Given:
        attached = mapping(record.get("attachment"))
        kind, name = string(attached.get("type")), clean(string(attached.get("filename")))
        text = clean(content_text(attached.get("prompt")))
        if kind == "queued_command" and text:
            said = self._author({**record, "origin": attached.get("origin")}, text)
            if attached.get("commandMode", "prompt") != "prompt" and said.kind is Kind.PROMPT:
                said = Said(Speaker.HOST, Kind.INJECTED, said.text)
            return self._say(record, mark, said)
        if kind == "file" and name:
            turn = mark.turn(Speaker.HOST, Kind.INJECTED, f"Attached: {name}", reads=(name,))
            return [turn, *self._told(record, mark.line)]
        if kind == "edited_text_file" and name:
            return self._say(record, mark, Said(Speaker.HOST, Kind.INJECTED, f"Changed outside the session: {name}"))
        return HOOK_OUTPUT if kind.startswith("hook_") else CONTEXT

    def _queue_operation(self, record: Record, mark: Mark) -> Given:
        if record.get("operation") == "popAll":
            self._queue.withdraw()
            return BOOKKEEPING
        text = clean(content_text(record.get("content")))
        if record.get("operation") == "remove":
            self._queue.take_up(sort_out(text).text)
        if record.get("operation") != "enqueue" or not text:
            return BOOKKEEPING
        said = sort_out(text)
        if said.kind is not Kind.PROMPT or text.startswith('{"task_id"'):
            return QUEUED
        if text.startswith("/") and len(text.split()) == 1:
            said = Said(Speaker.HOST, Kind.INJECTED, text)
        turn = mark.turn(said.speaker, said.kind, said.text)
        # It has no id of its own, and stands in every copy of the file.
        told = identity("", f"{turn.at} {text}".encode()) if turn.at is not None else ""
        self._queue.hold(turn._replace(record=told))
        return QUEUED

    def _summary(self, record: Record, mark: Mark) -> Given:
        title, about = one_line(clean(string(record.get("summary")))), string(record.get("leafUuid"))
        return [Note(mark.line, Fact.TITLE, title, _SUMMARY_RANK, about)] if title else EMPTY

    def _title(self, record: Record, mark: Mark) -> Given:
        name, rank = _TITLES[record["type"]]
        return self._entitle(mark.line, string(record.get(name)), rank) or REPEATED

    def _entitle(self, line: int, text: str, rank: int) -> Events:
        title = one_line(clean(text))
        if not title or self._titles.get(rank) == title:
            return []
        self._titles[rank] = title
        return [Note(line, Fact.TITLE, title, rank)]

    def _pull_request(self, record: Record, mark: Mark) -> Given:
        place = string(record.get("prUrl")) or f"{string(record.get('prRepository'))}#{record.get('prNumber', '')}"
        return self._facts.learn(mark.line, Fact.PULL_REQUEST, place) or REPEATED

    def _continued(self, record: Record, mark: Mark) -> Given:
        """The field that names the next session has had no stable name: it is the only other id on the line."""
        own = {string(record.get(name)) for name in ("sessionId", "session_id", "uuid", "parentUuid")}
        others = [value for value in map(string, record.values()) if _UUID.fullmatch(value) and value not in own]
        return self._facts.learn(mark.line, Fact.CONTINUES, others[0]) or REPEATED if others else BOOKKEEPING

    def _told(self, record: Record, line: int) -> Events:
        """What the line's envelope says of the session, as far as it is new."""
        envelope = _envelope(record)
        if envelope == self._envelope:
            return []
        self._envelope = envelope
        notes: Events = []
        for fact, value in zip(_ENVELOPE_FACTS, envelope, strict=True):
            if fact is Fact.SESSION and self._session.kind is SessionKind.SUBAGENT:
                # The lines of a sub-agent carry the id of the session that sent it out.
                notes += self._facts.learn(line, Fact.PARENT, "" if value == self._session.native_id else string(value))
            elif fact is not Fact.BRANCH or value != "HEAD":
                notes += self._facts.learn(line, fact, string(value))
        return notes


def _envelope(record: Record) -> tuple[object, ...]:
    """The fields behind `_ENVELOPE_FACTS`."""
    get = record.get
    return (get("sessionId"), get("cwd"), get("gitBranch"), get("version"), get("agentId"))


def _is_progress(data: bytes) -> bool:
    """Whether a line is live output, told without parsing it: the type stands in the outermost object, which ends."""
    at = data.find(_PROGRESS, 0, _PROGRESS_WITHIN)
    return at > 0 and data.count(b"{", 0, at) == 1 and data.endswith(b"}") and _GLUED not in data


def _is_result(block: Record) -> bool:
    """Besides `tool_result` there are `web_search_tool_result` and others of that ending."""
    return string(block.get("type")).endswith("tool_result")


def _usage(message: Record) -> str:
    """Tokens of one reply so far; those read are the new ones, those written to the cache and those found in it."""
    usage, reply = mapping(message.get("usage")), string(message.get("id"))
    given = whole(usage.get("input_tokens")) + whole(usage.get("cache_creation_input_tokens"))
    given += whole(usage.get("cache_read_input_tokens"))
    made = whole(usage.get("output_tokens"))
    return f"{reply} {given} {made}" if reply and (given or made) else ""
