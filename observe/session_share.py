"""Sessions to share with other people: the chosen parts, without secrets and without the names of home folders."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..archiver.copies.raw_copy import RawArchive
from ..archiver.lines import decode
from ..archiver.redaction import FoundSecret, Redactor, placeholders_in
from ..archiver.redaction.home_paths import HomePaths
from ..archiver.redaction.redactor import PLACEHOLDER
from ..archiver.store import Store
from ..archiver.store.exchange_table import ExchangeSpan
from ..archiver.store.session_label_table import SessionLabel
from ..core import ids
from ..core.conversation import Exchange, Kind
from ..core.errors import InvalidInput, InvalidLineRange, UnknownIds
from ..core.home import Home
from ..core.shared_session import (
    LeftOutLines,
    LeftOutReason,
    SharedCall,
    SharedCard,
    SharedExchange,
    SharedImage,
    SharedObservation,
    SharedSession,
    SharedStep,
    ShareOptions,
    ShareReport,
)
from ..core.transcript_page import Call, ClippedText, FileDiff, SessionHeader, StepKind
from .llm.model_settings import PrivateProjects
from .transcript.call_details import pictures_in
from .transcript.image_metadata import without_metadata
from .transcript.raw_lines import RawLines
from .transcript.session_views import SessionViews
from .transcript.steps import PlacedTurn, TurnGroup, group_turns, step_of
from .transcript.transcript_pages import SessionFile, heading_of

Value = TypeVar("Value")
_CALL_TEXT: Final = 16_000
"""Maximum characters of the input, and of the output, of a call."""
_DIFF: Final = 400
"""Maximum lines of the changes of a file by a call."""
_IMAGES: Final = 20 << 20
"""Maximum bytes of all images together."""
_TYPED: Final = {StepKind.PROMPT, StepKind.TASK, StepKind.ANSWER}
_INTERNAL: Final = {StepKind.THINKING, StepKind.NOTICE}


class Scrubber:
    """Remover of secrets and of the names of home folders. It counts what it removed."""

    def __init__(self, redactor: Redactor, home: Path) -> None:
        self._redactor, self._home_paths = redactor, HomePaths(home)
        self._secrets = set[FoundSecret]()

    def text(self, text: str) -> str:
        """Return a text without secrets and names of home folders."""
        redacted = self._redactor.redact(text).text
        if "[secret:" in redacted:
            self._secrets.update(placeholders_in(redacted))
        return self._home_paths.shorten(redacted)

    def value(self, value: Value) -> Value:
        """Return a struct in which every text is scrubbed. Fields that are added later are scrubbed too."""
        plain = msgspec.to_builtins(value, builtin_types=(bytes,))
        return msgspec.convert(self._scrubbed(plain), type(value), builtin_types=(bytes,))

    def _scrubbed(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._scrubbed(item) for name, item in cast("dict[str, object]", value).items()}
        if isinstance(value, list | tuple):
            return [self._scrubbed(item) for item in cast("Sequence[object]", value)]
        return value

    @property
    def home_paths(self) -> int:
        """Number of paths that were shortened."""
        return self._home_paths.count

    @property
    def secrets(self) -> dict[str, int]:
        """Number of different secrets by kind."""
        return dict(sorted(Counter(secret.kind for secret in self._secrets).items()))


class _Tally(Struct):
    """Tally of shared and withheld parts."""

    left_out: list[LeftOutLines] = field(default_factory=list[LeftOutLines])
    withheld: Counter[str] = field(default_factory=Counter[str])
    image_bytes: int = 0


class SessionSharer:
    """Collector of what is shared of the sessions of an archive."""

    def __init__(self, home: Home, store: Store, private_projects: Collection[str], user_home: Path) -> None:
        """Share from the archive in `home`. `user_home` is the home folder of the user."""
        self._store, self._user_home, self._views = store, user_home, SessionViews(home, store)
        self._raw, self._redactor = RawArchive(home.archive), Redactor(home.key())
        self._private = PrivateProjects(store, private_projects)
        self.archive_id = blake2b(b"vault", key=home.key()[:64], digest_size=8).hexdigest()
        """Identity of the archive, which tells nothing about its key."""

    def scrubber(self) -> Scrubber:
        """Return a new scrubber."""
        return Scrubber(self._redactor, self._user_home)

    def number(self, name: str) -> int:
        """Return the number of the session with this ID or ID prefix. Raises `InvalidInput` if there is not one."""
        return self._views.number(name)

    def session(self, number: int, options: ShareOptions) -> SharedSession:
        """Return the session with the store's ID `number` as it is shared.

        Raises:
            InvalidInput: Nothing of the session can be shared.
            InvalidLineRange: The session has no such lines.
        """
        tally, exchanges = _Tally(), list[SharedExchange]()
        for part, file in self._files(number, options):
            exchanges += self._exchanges(part, file, options, tally)
        if not exchanges:
            reasons = ", ".join(dict.fromkeys(str(lines.reason) for lines in tally.left_out)) or "no conversation"
            raise InvalidInput(f"Nothing of this session can be shared: {reasons}", hint="Choose another session.")
        has_private = any(lines.reason is LeftOutReason.PRIVATE_PROJECT for lines in tally.left_out)
        is_part = options.first is not None or options.prompts_only
        header = self._header(number, exchanges[0].heading if has_private or is_part else "")
        scrubber = self.scrubber()
        shared = scrubber.value(SharedSession(header, tuple(exchanges), _report_of(header, exchanges)))
        report = replace(
            shared.report, secrets=scrubber.secrets, home_paths=scrubber.home_paths,
            left_out=tuple(sorted(tally.left_out, key=lambda lines: (lines.part, lines.first))),
            withheld=dict(tally.withheld),
        )  # fmt: skip
        return replace(shared, report=report)

    def card(self, number: int, scrubber: Scrubber) -> SharedCard | None:
        """Return the card and the observations of a session, or None if an exchange of it is private."""
        keys = self._store.summaries.conversation(number)
        if any(map(self._private.includes, self._store.exchanges.load(keys).values())):
            return None
        observations = tuple(
            SharedObservation(ids.show("observation", stored.key), stored.observation)
            for stored in self._store.summaries.summarised(keys)
        )
        return scrubber.value(SharedCard(replace(self._views.header(number), parent="", parent_title=""), observations))

    def has(self, name: str) -> bool:
        """Return whether the archive contains a conversation of the session with this name, and it is not private."""
        try:
            number = self._views.number(name)
        except UnknownIds:
            return False
        except InvalidInput:  # Several sessions have this ID.
            return True
        keys = self._store.summaries.conversation(number)
        return bool(keys) and not any(map(self._private.includes, self._store.exchanges.load(keys).values()))

    def _files(self, number: int, options: ShareOptions) -> Iterator[tuple[int, SessionFile]]:
        """Yield the files of a session with their numbers or, for a range of lines, its main file."""
        main = self._store.sources.main(number)
        for part, file in enumerate(self._views.pages.files(number), 1):
            if options.first is None:
                yield part, file
            elif main is not None and file.source.id == main.id:
                if options.first > file.source.lines:
                    raise InvalidLineRange(f"line {options.first} is past the last line, which is {file.source.lines}")
                yield part, file

    def _header(self, number: int, public_title: str) -> SessionHeader:
        """Return the header of a session.

        `public_title` replaces the title that the user has not given, and the card, because both can state what is not
        shared: an agent's words, other lines, or a private exchange.
        """
        header = replace(self._views.header(number), parent="", parent_title="")
        if not public_title:
            return header
        own = self._store.session_labels.of([number]).get(number, SessionLabel()).title
        return replace(header, title=own or public_title, facts=())

    def _exchanges(
        self, part: int, file: SessionFile, options: ShareOptions, tally: _Tally
    ) -> Iterator[SharedExchange]:
        """Yield the exchanges of a file that are shared, and record the lines that are left out.

        `part` is the number of the file within the session.
        """
        first, last = options.first or 1, min(options.last or file.source.lines, file.source.lines)
        archived = file.source.archived
        deleted = self._views.reader.deleted_lines(archived, first, last) if last >= first else set[int]()
        tally.left_out += _ranges(LeftOutReason.FORGOTTEN, part, deleted)
        for span in self._store.exchanges.spans(file.source.id or 0):
            start, end = max(first, span.span.start_line), min(last, span.span.end_line)
            if start > end:
                continue
            if self._is_private(span):
                tally.left_out += _ranges(LeftOutReason.PRIVATE_PROJECT, part, set(range(start, end + 1)) - deleted)
                continue
            for exchange in self._views.reader.whole(archived, start, end):
                yield from self._exchange(exchange, span, part, file, options, tally)

    def _is_private(self, span: ExchangeSpan) -> bool:
        stored = self._store.exchanges.load([span.key]).get(span.key)
        return stored is None or self._private.includes(stored)

    def _exchange(
        self,
        exchange: Exchange,
        span: ExchangeSpan,
        part: int,
        file: SessionFile,
        options: ShareOptions,
        tally: _Tally,
    ) -> Iterator[SharedExchange]:
        private = {turn.line for turn in exchange.turns if PLACEHOLDER in turn.text}
        tally.left_out += _ranges(LeftOutReason.PRIVATE_TEXT, part, private)
        raw = RawLines(self._raw, file.source.archived)
        raw.load(span.span)
        context = _ExchangeContext(exchange, raw, exchange.cwd or file.session.cwd, options, tally)
        groups = group_turns(exchange.turns)
        steps = [step for group in groups if (step := self._step(group, context)) is not None]
        if steps:
            timed = exchange.started is not None and exchange.ended is not None
            seconds = ((exchange.ended or 0) - (exchange.started or 0)) / 1000 if timed else None
            yield SharedExchange(part, span.ordinal + 1, heading_of(exchange), tuple(steps), exchange.started, seconds)

    def _step(self, group: TurnGroup, context: "_ExchangeContext") -> SharedStep | None:
        """Return a step as it is shared, or None if the options exclude it."""
        options, step = context.options, step_of(group, context.cwd)
        if options.prompts_only and step.kind not in _TYPED:
            return None
        if step.kind in _TYPED:
            images = context.images(step.line) if step.kind is not StepKind.ANSWER else ()
            return SharedStep(step, images=images)
        if step.kind in _INTERNAL and not options.output and not step.failed:
            context.tally.withheld["thoughts" if step.kind is StepKind.THINKING else "notices"] += 1
            return None
        if step.kind is StepKind.COMPACTION and not options.output:
            return SharedStep(replace(step, text="", hidden=0))
        if not step.calls:
            return SharedStep(step)
        turns = {(entry.turn.line, entry.position): entry for entry in group.turns}
        results = {entry.turn.call: entry for entry in group.turns if entry.turn.kind is Kind.RESULT}
        calls = [self._call(call, turns[call.line, call.position], results, context) for call in step.calls]
        counted = tuple(shared.detail.call for shared in calls)
        return SharedStep(replace(step, calls=counted), calls=tuple(calls))

    def _call(
        self, call: Call, own: PlacedTurn, results: dict[str, PlacedTurn], context: "_ExchangeContext"
    ) -> SharedCall:
        result = results.get(own.turn.call) if own.turn.kind is Kind.CALL else None
        detail = self._views.details.detail(call, own.turn, result, context.raw.on(call.line), context.cwd)
        detail = replace(
            detail, input=_shortened(detail.input), output=_shortened(detail.output),
            diffs=tuple(map(_shortened_diff, detail.diffs)),
        )  # fmt: skip
        if context.options.output:
            return SharedCall(detail, context.images(call.result_line or call.line))
        if detail.output.text:
            context.tally.withheld["tool outputs"] += 1
        call = replace(detail.call, reason="", subagent=None)
        return SharedCall(replace(detail, call=call, output=ClippedText("")))


class _ExchangeContext(Struct):
    """Exchange that is shared, with the lines of its raw copy."""

    exchange: Exchange
    raw: RawLines
    cwd: str
    options: ShareOptions
    tally: _Tally

    def images(self, line: int) -> tuple[SharedImage, ...]:
        """Return the images on a line without metadata. Those that cannot be cleaned are withheld."""
        records = decode(self.raw.on(line))
        images = list[SharedImage]()
        for media_type, data in pictures_in(records) if isinstance(records, list) else ():
            cleaned = without_metadata(media_type, data)
            if cleaned is None or self.tally.image_bytes + len(cleaned) > _IMAGES:
                self.tally.withheld["images"] += 1
                continue
            self.tally.image_bytes += len(cleaned)
            images.append(SharedImage(media_type, cleaned))
        return tuple(images)


def _shortened(clipped: ClippedText) -> ClippedText:
    kept = clipped.text[:_CALL_TEXT]
    return ClippedText(kept, clipped.hidden + len(clipped.text) - len(kept))


def _shortened_diff(diff: FileDiff) -> FileDiff:
    return replace(diff, lines=diff.lines[:_DIFF], hidden=diff.hidden + max(0, len(diff.lines) - _DIFF))


def _ranges(reason: LeftOutReason, part: int, lines: set[int]) -> Iterator[LeftOutLines]:
    """Yield the ranges of consecutive lines."""
    for _, group in groupby(enumerate(sorted(lines)), lambda entry: entry[1] - entry[0]):
        numbers = [line for _, line in group]
        yield LeftOutLines(reason, part, numbers[0], numbers[-1])


def _report_of(header: SessionHeader, exchanges: Sequence[SharedExchange]) -> ShareReport:
    steps = [shared for exchange in exchanges for shared in exchange.steps]
    kinds = Counter(shared.step.kind for shared in steps)
    calls = [call for shared in steps for call in shared.calls]
    return ShareReport(
        id=header.session_id,
        title=header.title,
        project=header.project,
        agent=header.agent,
        exchanges=len(exchanges),
        prompts=sum(kinds[kind] for kind in _TYPED),
        answers=kinds[StepKind.PROSE] + kinds[StepKind.RECAP],
        calls=len(calls),
        outputs=sum(bool(call.detail.output.text) for call in calls),
        images=sum(len(shared.images) for shared in steps) + sum(len(call.images) for call in calls),
    )
