"""Parsing of a file into redacted exchanges, notes and an outcome for each line, without access to a store.

- Exclusion leaves out folders that the settings exclude, and exchanges that the user excludes in a prompt.
- Palaver's own output stays in the raw archive. It is not indexed, and no observations are extracted from it.
- A report counts redacted secrets by kind and location, from their placeholders.
"""

import io
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path, PurePath
from typing import BinaryIO

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Note, ResumePoint, Session, SessionKind, Skipped, Speaker, Turn
from ...core.errors import ConfigInvalid
from ...core.home import (
    Own,
    is_own_command,
    is_own_folder,
    is_own_prompt,
    is_own_tool,
    is_suspect,
    without_recalled,
    working_folders,
)
from ...core.reports import KindCount, Secrets, SessionSecrets
from ..formats import Event, FormatReader, TranscriptFormat
from ..lines import PARSED, REPEATED, Line, decode, head, split
from ..redaction import VERSION, FoundSecret, Redactor, placeholders_in, secrets_of
from ..redaction.redactor import TranscriptRedactor, Unindexed, opt_out_in
from ..store import Store
from .exchanges import group_exchanges, mark_rewound


class ParsedLines(Struct):
    """Result of parsing the lines of a file from `start` on.

    `outcomes` has one entry per line: `parsed`, or the reason why the line has no events. `records` maps record IDs to
    lines. `pending` is the size in bytes of an incomplete last line, which begins at `end`. `unindexed` is true if the
    user excluded the session in a prompt.
    """

    start: ResumePoint
    end: int
    pending: int = 0
    unindexed: bool = False
    outcomes: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    records: dict[str, int] = field(default_factory=dict[str, int])
    joined: dict[int, int] = field(default_factory=dict[int, int])
    """Number of lines of each record that is on several lines, by its first line. All of them have one outcome."""

    def set_outcome(self, line: int, reason: str) -> None:
        """Set the outcome of a line, and of the lines on which its record continues."""
        start = line - self.start.line
        count = self.joined.get(line, 1)
        self.outcomes[start : start + count] = [reason] * count

    def with_rewinds(self) -> list[Exchange]:
        """Return the exchanges with the turns marked that the user abandoned by a rewind."""
        exchanges = self.exchanges
        for note in self.notes:
            if note.fact is Fact.REWOUND and note.value:
                exchanges = [mark_rewound(exchange, int(note.value), note.line) for exchange in exchanges]
        return exchanges

    def count_as(self, reason: str, lines: Iterable[int]) -> None:
        """Change the outcome of these lines from `parsed` to `reason`. Other outcomes do not change."""
        for line in lines:
            if self.outcomes[line - self.start.line] == PARSED:
                self.set_outcome(line, reason)


def parse(
    transcript_format: TranscriptFormat,
    session: Session,
    start: ResumePoint,
    file: BinaryIO,
    redactor: Redactor,
    repeated: Collection[str] = (),
    copied: Collection[int] = (),
) -> ParsedLines:
    """Parse a file to its end, except a last line that is still being written.

    Turns are skipped as repeated if `repeated` contains the ID of their record, if `copied` contains their line, or if
    the record also occurs on an earlier line.
    """
    parsed = ParsedLines(start, start.byte)
    lines = _counted(split(file, start_byte=start.byte, start_line=start.line), parsed)
    reader = RepetitionFilter(transcript_format.reader(session), parsed.records, repeated, copied)
    for event in group_exchanges(reader, lines, first_ordinal=start.ordinal):
        match event:
            case Exchange():
                parsed.exchanges.append(event)
            case Note():
                parsed.notes.append(event)
            case Skipped(line, reason):
                parsed.set_outcome(line, reason)
    parsed.unindexed = reader.unindexed
    _redact(parsed, TranscriptRedactor(redactor))
    return parsed


def session_in(transcript_format: TranscriptFormat, path: Path, file: BinaryIO, redactor: Redactor) -> Session:
    """Return the session that the first lines of the file at `path` describe, without secrets."""
    return TranscriptRedactor(redactor).session(transcript_format.identify(path, head(file)))


def folder_in(transcript_format: TranscriptFormat, path: Path, start: bytes) -> str:
    """Return the working folder recorded in the first lines of a file, `start`, or an empty string."""
    session = transcript_format.identify(path, start)
    events = transcript_format.reader(session).read(split(io.BytesIO(start)))
    return session.cwd or next(
        (event.value for event in events if isinstance(event, Note) and event.fact is Fact.CWD), ""
    )


def _redact(parsed: ParsedLines, redactor: TranscriptRedactor) -> None:
    records = redactor.records(parsed.records)
    parsed.exchanges = redactor.exchanges(parsed.exchanges, records.keys() & parsed.records.keys())
    parsed.records = records
    parsed.notes = redactor.notes(parsed.notes)
    parsed.outcomes = redactor.outcomes(parsed.outcomes)


def _counted(lines: Iterable[Line], parsed: ParsedLines) -> Iterator[Line]:
    for line in lines:
        if not line.complete and not (line.data and isinstance(decode(line.data), list)):
            parsed.pending = line.end - line.start
            return
        parsed.outcomes += [PARSED] * line.line_count
        if line.line_count > 1:
            parsed.joined[line.number] = line.line_count
        parsed.end = line.end
        yield line


class RepetitionFilter(FormatReader):
    """Reader that skips the turns of repeated records.

    Rewind notes on the lines of these turns are omitted too, because a repeated record is not a rewind by the user.
    """

    def __init__(
        self,
        reader: FormatReader,
        records: dict[str, int],
        repeated: Collection[str] = (),
        copied: Collection[int] = (),
        *,
        first_line: int = 1,
    ) -> None:
        """Prepare to read. The line of each record that is not repeated is added to `records`.

        Args:
            reader: Reader of the transcript.
            records: Line numbers by record ID.
            repeated: IDs of records that another file contains.
            copied: Lines that another file contains under other IDs.
            first_line: Line from which on repeated records are skipped.
        """
        self._reader, self._records, self._repeated, self._copied = reader, records, repeated, copied
        self._first_line = first_line
        self.unindexed = False
        """True if the user excluded the session in a prompt."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line, with a `Skipped` event in place of each repeated turn."""
        repeated_line = 0
        for event in self._reader.read(lines):
            if isinstance(event, Turn) and event.speaker is Speaker.HUMAN and event.kind is Kind.PROMPT:
                self.unindexed |= opt_out_in(event.text) is Unindexed.SESSION
            if isinstance(event, Turn) and self._is_repeated(event):
                repeated_line = event.line
                yield Skipped(event.line, REPEATED)
            elif not (isinstance(event, Note) and event.fact is Fact.REWOUND and event.line == repeated_line):
                yield event

    def _is_repeated(self, turn: Turn) -> bool:
        """Return whether the turn's record occurred on another line of this or another file."""
        if turn.line in self._copied or turn.record in self._repeated:
            return True
        if not turn.record or turn.line < self._first_line:
            return False
        return self._records.setdefault(turn.record, turn.line) != turn.line


class Exclusion:
    """Folders that are excluded by shell patterns. In these patterns, `*` also matches slashes.

    A pattern that begins with `/` or `~` matches whole paths. Any other pattern matches names at any depth. Everything
    below an excluded folder is excluded too. Patterns are case-sensitive.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Check the patterns. Raise `ConfigInvalid` for a pattern that could never match."""
        self._names = [pattern.rstrip("/\\") for pattern in patterns if not _is_path(pattern)]
        self._paths = [str(Path(pattern).expanduser()) for pattern in patterns if _is_path(pattern)]
        for name in self._names:
            if not name or "/" in name or "\\" in name:
                raise ConfigInvalid(
                    f"exclude: {name!r} is neither a name nor an absolute path",
                    hint='Write a bare name such as "secret-*", or a path that begins with / or ~.',
                )

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def covers(self, folder: str) -> bool:
        """Return whether a folder, one of its parents, or the repository of its worktree is excluded.

        Windows paths are recognised on every system.
        """
        return bool(self) and any(map(self._covers, working_folders(folder)))

    def _covers(self, folder: str) -> bool:
        parts = folder.replace("\\", "/").rstrip("/").split("/")
        if any(fnmatchcase(part, name) for part in parts if part for name in self._names):
            return True
        wholes = ("/".join(parts[: end + 1]) for end in range(len(parts)))
        return any(fnmatchcase(prefix, path) for prefix in wholes for path in self._paths)


def _is_path(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or pattern[1:3] in {":\\", ":/"}


def remove_excluded(parsed: ParsedLines, session: Session, exclusion: Exclusion) -> None:
    """Remove the exchanges that the settings or the user exclude, and count their lines by reason."""
    folder = session.cwd or next((note.value for note in parsed.notes if note.fact is Fact.CWD), "")
    kept: list[Exchange] = []
    for exchange in parsed.exchanges:
        reason = Unindexed.EXCLUDED if exclusion.covers(exchange.cwd or folder) else _opt_out(exchange)
        if reason is None:
            kept.append(exchange)
        else:
            parsed.count_as(reason, {turn.line for turn in exchange.turns})
    parsed.exchanges = kept


def remove_all(parsed: ParsedLines) -> None:
    """Remove all content of a session that the user excluded, and count its lines as `unindexed-session`."""
    parsed.count_as(Unindexed.SESSION, range(parsed.start.line, parsed.start.line + len(parsed.outcomes)))
    parsed.exchanges, parsed.notes = [], []


def is_excluded(exchange: Exchange) -> bool:
    """Return whether the user excluded this exchange, or its session, in a prompt."""
    return _opt_out(exchange) is not None


def _opt_out(exchange: Exchange) -> Unindexed | None:
    prompts = (turn for turn in exchange.turns if turn.kind is Kind.PROMPT and turn.speaker is Speaker.HUMAN)
    return next(filter(None, (opt_out_in(turn.text) for turn in prompts)), None)


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
        reason_of_folder = _own_place(exchange.cwd or folder, homes)
        if reason_of_folder is None and not any(is_suspect(turn.text, turn.tool) for turn in exchange.turns):
            kept.append(exchange)
            continue
        checked = list(
            _checked(exchange, reason_of_folder or (Own.RUN if _is_own_run(exchange, session.kind) else None))
        )
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


def secrets_in(store: Store) -> Secrets:
    """Count the redacted secrets in all stored data."""
    everywhere: Counter[FoundSecret] = Counter()
    by_source: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for source, exchange in store.exchanges.containing("[secret:"):
        findings = [finding for turn in exchange.turns for finding in placeholders_in(turn.text)]
        everywhere.update(findings)
        by_source[source].update(finding.kind for finding in findings)
    memories = {stored.id: findings for stored in store.memories.all() if (findings := secrets_of(stored.memory))}
    for findings in memories.values():
        everywhere.update(findings)
    different = Counter(finding.kind for finding in everywhere)
    times: Counter[str] = Counter()
    for finding, count in everywhere.items():
        times[finding.kind] += count
    kinds = {kind: KindCount(different[kind], count) for kind, count in times.most_common()}
    sessions = [_session(store, source, kinds) for source, kinds in sorted(by_source.items()) if kinds]
    by_memory = {memory: _counts_by_kind(found) for memory, found in memories.items()}
    return Secrets(VERSION, kinds, sessions, len(store.sources.outdated()), by_memory)


def kinds_in_sources(store: Store, sources: Mapping[int, range]) -> dict[str, int]:
    """Return the number of secrets that were redacted from these lines of sources, by kind, the most frequent first.

    Equal secrets count once. Secrets in the omitted middle of long tool output are not counted.
    """
    findings = {
        finding
        for source, exchange in store.exchanges.containing("[secret:")
        if source in sources
        for turn in exchange.turns
        if turn.line in sources[source]
        for finding in placeholders_in(turn.text)
    }
    return _counts_by_kind(sorted(findings, key=str))


def _counts_by_kind(findings: list[FoundSecret]) -> dict[str, int]:
    return dict(Counter(finding.kind for finding in findings).most_common())


def _session(store: Store, number: int, kinds: Counter[str]) -> SessionSecrets:
    source = store.sources.load(number)
    assert source.session is not None
    session = store.sessions.load(source.session)
    return SessionSecrets(session.native_id, session.project, source.archived, dict(kinds.most_common()))
