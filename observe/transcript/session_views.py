"""Views of one archive's sessions for people: header, pages, opened calls, outline, edits and matches of a text."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.lines import is_media_label, one_line
from ...archiver.redaction import Redactor
from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Exchange, Fact, Kind, Speaker, Turn, now
from ...core.errors import InvalidInput, UnknownIds
from ...core.home import Home
from ...core.text import without_tag_lines
from ...core.transcript_page import (
    Call,
    CallDetail,
    CardFact,
    ClippedText,
    FileEdits,
    FoundText,
    Outcome,
    OutlinePrompt,
    SessionHeader,
    Step,
    StepKind,
    SubagentAnswer,
)
from ...search.present.details import SessionNames, Sessions
from ...search.present.transcript_reader import TranscriptReader
from .call_details import CallDetails
from .clipping import clip_text
from .steps import placed
from .transcript_pages import SessionFile, TranscriptPages, session_name

_PROMPT: Final = 200
"""Maximum characters of a prompt in the outline."""
_AROUND: Final = 90
"""Maximum characters before and after a match."""
_MATCHES: Final = 200
"""Maximum number of matches."""
_FILES: Final = 200
"""Maximum number of files in the list of edits."""
_RUNNING: Final = 3_600_000
"""Milliseconds after its last entry during which a session counts as running."""
_ADDED: Final = re.compile(r"\n*agentId: \S+ \(for resuming[^\n]*\n(?s:<usage>.*</usage>)?\s*\Z")
"""Text that Claude Code adds to the answer of a sub-agent."""
_LAUNCHED: Final = "Async agent launched successfully"
"""Beginning of the result of a call whose sub-agent answers later."""
_WORD: Final = re.compile(r"\w+")
_LONG_WORD: Final = 4
"""Minimum characters of a word that identifies a turn."""


class SessionViews:
    """Views of the sessions of one archive. Sessions are named by their number in the store."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home, self._store = home, store
        self._raw = RawArchive(home.archive)
        self.pages = TranscriptPages(store, self._raw)

    @cached_property
    def reader(self) -> TranscriptReader:
        """Reader of lines of the raw copies."""
        key = self._home.key()
        return TranscriptReader(self._store, self._raw, self._redactor, SuppressionList(self._store, key))

    @cached_property
    def details(self) -> CallDetails:
        """Opened calls, texts, records and pictures."""
        return CallDetails(self._store, self.pages, self.reader, self._redactor)

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(self._home.key())

    def number(self, name: str) -> int:
        """Return the number of the session with this ID or ID prefix.

        Raises:
            UnknownIds: No session has this ID.
            InvalidInput: Several session IDs begin with it.
        """
        numbers = self._store.sessions.beginning_with(name)
        if not numbers:
            raise UnknownIds([name], [])
        if len(numbers) > 1:
            raise InvalidInput(f"Several session IDs begin with {name}", hint="Open the session from the list.")
        return numbers[0]

    def header(self, number: int) -> SessionHeader:
        """Return the description of a session."""
        session, store = self._store.sessions.load(number), self._store
        card = store.summaries.of_session(number)
        facts = card.observation if card else None
        parent = store.sessions.find(session.agent, session.parent_id) if session.parent_id else None
        names = SessionNames(store)
        lines = [evidence.start_line for evidence in facts.evidence] if facts else []
        done = Sessions(store).done_later(number, facts.facts) if facts else {}
        return SessionHeader(
            id=session_name(store, number),
            session_id=session.native_id,
            title=names.title(number) or "Untitled session",
            kind=session.kind,
            agent=session.agent,
            project=session.project,
            cwd=session.cwd,
            branch=session.branch,
            models=tuple(session.models),
            started=session.started,
            ended=session.ended,
            exchanges=len(store.summaries.conversation(number)),
            facts=tuple(
                _card_fact(_marked(text, done.get(text, "")), lines[at] if at < len(lines) else None)
                for at, text in enumerate(facts.facts if facts else ())
            ),
            parent=session_name(store, parent) if parent is not None else "",
            parent_title=names.title(parent) if parent is not None else "",
            pull_request=session.links.get(Fact.PULL_REQUEST, ""),
            subagents=len(store.sessions.subagents(session)),
        )

    def has_ended(self, number: int) -> bool:
        """Return whether the last entry of a session is older than `_RUNNING`."""
        ended = self._store.sessions.load(number).ended
        return ended is not None and now() - ended > _RUNNING

    def brief(self, number: int) -> SessionHeader:
        """Return the description of a session without its card, title and counts, for a part of a page."""
        session = self._store.sessions.load(number)
        return SessionHeader(
            id=session_name(self._store, number),
            session_id=session.native_id,
            title="",
            kind=session.kind,
            agent=session.agent,
            project=session.project,
            cwd=session.cwd,
            branch=session.branch,
            models=(),
            started=session.started,
            ended=session.ended,
            exchanges=0,
        )

    def subagent(self, detail: CallDetail) -> tuple[ClippedText, ClippedText]:
        """Return the prompt and the last answer of the sub-agent that a call started.

        Without an archived session of the sub-agent, or if it ends before the answer, they are those of the call.
        """
        prompt, answer = replace(detail.input, text=detail.input.text.partition("\n")[2] or detail.input.text), ""
        if detail.call.subagent is not None:
            number = self.number(detail.call.subagent.session)
            first, last = self._store.exchanges.first_of_session(number), self._store.exchanges.last_of_session(number)
            prompt = clip_text(first.prompt) if first and first.prompt else prompt
            answer = last.answer if last else ""
        return prompt, clip_text(answer) if answer else _answer_in(detail)

    def answer_of(self, number: int) -> SubagentAnswer | None:
        """Return the answer that a sub-agent gave to its parent, or None if no archived call started the session.

        The result of a call that started several sub-agents is no answer of one of them.
        """
        started = self._store.subagent_calls.starting(number)
        stored = self._store.exchanges.load([started.exchange]) if started else {}
        for entry in stored.values():
            files = [file.source.id for file in self.pages.files(entry.session)]
            calls = (turn for turn in placed(entry.exchange.turns) if started and turn.turn.call == started.call)
            call = next(calls, None)
            if started is None or call is None or entry.source not in files:
                return None
            part = files.index(entry.source) + 1
            place = self.call_at(entry.session, part, call.turn.line, call.position)
            detail = self.details.call(entry.session, part, *place)
            answer = _answer_in(detail) if started.subagents == 1 else ClippedText("")
            line = detail.call.result_line or detail.call.line
            parent = session_name(self._store, entry.session)
            return SubagentAnswer(parent, part, line, detail.result_position, answer, detail.call.outcome)
        return None

    def place_of(self, item: str, line: int, text: str = "") -> tuple[int, int] | None:
        """Return the part of its session and the line on which an exchange or observation contains a text.

        The turn with most words of the text contains it. If no turn has half of them, it is on `line`. The value is
        None for an item without a conversation.
        """
        key = ids.key(item)
        stored = self._store.items.load([key] if key is not None else [])
        exchanges = self._store.exchanges.load([entry.exchange for entry in stored.values()])
        for entry in exchanges.values():
            number = next(iter(stored.values())).session
            sources = [file.source.id for file in self.pages.files(number)]
            part = sources.index(entry.source) + 1 if entry.source in sources else 1
            return part, _line_with(entry.exchange, text) or line or entry.exchange.span.start_line
        return None

    def outline(self, number: int) -> list[OutlinePrompt]:
        """Return the prompts of a session in order."""
        before = self.pages.exchanges_before(self.pages.files(number))
        return [
            OutlinePrompt(
                before[part - 1] + exchange.ordinal + 1, part, turn.line, _first_words(turn.text), turn.at,
                rewound=not turn.active, compacted=any(entry.kind is Kind.COMPACTION for entry in exchange.turns),
            )
            for part, _, exchange in self._exchanges(number)
            for turn in exchange.turns
            if turn.kind is Kind.PROMPT
        ]  # fmt: skip

    def prompts(self, number: int) -> list[tuple[int, Turn]]:
        """Return what the user typed in a session: prompts and answers, each with the part of the session."""
        return [
            (part, turn)
            for part, _, exchange in self._exchanges(number)
            for turn in exchange.turns
            if turn.kind is Kind.PROMPT or (turn.kind is Kind.RESULT and turn.speaker is Speaker.HUMAN)
        ]

    def edits(self, number: int) -> list[FileEdits]:
        """Return the edits of a session by file, the file with the most edits first. Rewound edits are omitted."""
        edits: dict[str, list[tuple[int, Call]]] = {}
        for part, file, exchange in self._exchanges(number):
            for call in self.pages.edits(file, exchange) if exchange.writes else ():
                edits.setdefault(call.paths[0], []).append((part, call))
        ranked = sorted(edits.items(), key=lambda entry: -len(entry[1]))
        return [FileEdits(path, tuple(calls)) for path, calls in ranked[:_FILES]]

    def call_at(self, number: int, part: int, line: int, position: int) -> tuple[Step, int]:
        """Return the step with the call at a position of a line, and the place of the call in the step.

        Raises:
            InvalidInput: No call is there.
        """
        for step in self.pages.steps_on(number, part, line):
            for index, call in enumerate(step.calls):
                if (call.line, call.position) == (line, position):
                    return step, index
        raise InvalidInput(f"No call is on line {line}", hint="Go back to the session.")

    def find(self, number: int, text: str) -> list[FoundText]:
        """Return the matches of a text in a session, ignoring case. Long tool output is searched at its ends only."""
        pattern = re.compile(r"\s+".join(map(re.escape, text.split())), re.IGNORECASE)
        if not text.strip():
            return []
        matches = list[FoundText]()
        for part, _, exchange in self._exchanges(number):
            for turn in exchange.turns:
                match = pattern.search(turn.text)
                if match is None:
                    continue
                matches.append(_found(part, turn, match))
                if len(matches) == _MATCHES:
                    return matches
        return matches

    def last_line(self, number: int, part: int) -> int:
        """Return the last archived line of a file of a session."""
        files = self.pages.files(number)
        return files[part - 1].source.lines if 1 <= part <= len(files) else 0

    def _exchanges(self, number: int) -> Iterator[tuple[int, SessionFile, Exchange]]:
        """Yield the exchanges of a session with the part of the session and its file."""
        for part, file in enumerate(self.pages.files(number), 1):
            for exchange in self._store.exchanges.beginning(file.source.id or 0):
                yield part, file, exchange


def _line_with(exchange: Exchange, text: str) -> int | None:
    """Return the line of the turn with most words of a text, or None if no turn has half of them."""
    words = {word for word in _WORD.findall(text.casefold()) if len(word) >= _LONG_WORD}
    shares = [
        (sum(word in content for word in words), turn.kind is not Kind.THINKING, -turn.line)
        for turn in exchange.turns
        if turn.kind is not Kind.INJECTED
        for content in (turn.text.casefold(),)
    ]
    count, _, line = max(shares, default=(0, False, 0))
    return -line if words and count * 2 >= len(words) else None


def _answer_in(detail: CallDetail) -> ClippedText:
    """Return the answer of a sub-agent in the result of its call, or an empty text if it did not answer."""
    if detail.call.outcome is not Outcome.DONE or detail.output.text.startswith(_LAUNCHED):
        return ClippedText("")
    return replace(detail.output, text=_ADDED.sub("", detail.output.text))


def _first_words(prompt: str) -> str:
    """Return the beginning of a prompt on one line. Labels of pictures are left out unless there is nothing else."""
    text = without_tag_lines(prompt[: 4 * _PROMPT])
    words = " ".join(line for line in text.split("\n") if not is_media_label(line))
    return one_line(words if words.strip() else text, _PROMPT)


def _marked(fact: str, later: str) -> str:
    """Return an open item with the title of the later session that worked on it, if there is one."""
    return f"{fact} (a later session worked on this: {later})" if later else fact


def _card_fact(text: str, line: int | None) -> CardFact:
    label, separator, fact = text.partition(": ")
    return CardFact(label, fact, line) if separator and len(label) < 20 else CardFact("", text, line)


def _found(part: int, turn: Turn, match: re.Match[str]) -> FoundText:
    before, after = turn.text[: match.start()][-_AROUND:], turn.text[match.end() :][:_AROUND]
    if len(before) == _AROUND:
        before = f"…{before.partition(' ')[2] or before}"
    if len(after) == _AROUND:
        after = f"{after.rpartition(' ')[0] or after}…"
    kind = {Kind.PROMPT: StepKind.PROMPT, Kind.PROSE: StepKind.PROSE}.get(turn.kind, "")
    return FoundText(
        part, turn.line, str(kind or (turn.tool or turn.kind.value)), _flat(before), _flat(match[0]), _flat(after)
    )


def _flat(text: str) -> str:
    """Return the text on one line, with the spaces at its ends."""
    return re.sub(r"\s+", " ", text)
