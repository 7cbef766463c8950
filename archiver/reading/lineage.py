"""Recognition of exchanges that a file copied from another session, or that an agent stored twice.

Forks and resumed sessions begin with a copy of their origin. Many programs give the copied records new IDs or new
times. Therefore, a copy is recognised by its content and its position: the file begins with the exchanges of a
related session. Sessions are related if one was forked from the other, directly or indirectly, or if they share a
record. The files of one session, and sessions that began at the same time, are related too.

Some agents store an exchange in a database and, with less detail, in a file of the same session. The lines of such a
file have no record IDs. Therefore, its exchanges are recognised by the texts of their prompts, in their order. The
exchanges of the database are kept, whichever of the two was archived first.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from ...core.conversation import Exchange, Fact, Kind, Milliseconds, Note, Session, Turn
from ..formats import is_extracted
from ..lines import REPEATED
from ..store import Repetition, Source, Store
from ..store.exchange_table import StoredExchange
from ..store.session_table import SessionTable
from .parsing import ParsedLines

_COMPARED = {Kind.PROMPT, Kind.PROSE, Kind.CALL}
"""Kinds of turns by which a copy is recognised. Every copy contains these turns."""
_CHANGEABLE = {Kind.THINKING, Kind.INJECTED}
"""Kinds of turns that copies can change, and that add nothing if the rest of their exchange is a copy."""


class Match(NamedTuple):
    """Exchange of a copy, with the original exchange and the pairs of equal turns: the original before its copy."""

    copy: Exchange
    original: Exchange
    pairs: list[tuple[Turn, Turn]]
    whole: bool
    """True if all compared turns of both exchanges are equal."""

    @property
    def lines(self) -> set[int]:
        """Lines of the copy up to its first turn that differs, except lines that add content, such as a tool result."""
        end = self.copy.span.end_line + 1
        if not self.whole:
            end = next((turn.line for turn in compared(self.copy)[len(self.pairs) :]), end)
        contained = {(turn.kind, turn.text) for turn in self.original.turns}
        turns = [turn for turn in self.copy.turns if turn.line < end]
        added = {
            turn.line for turn in turns if turn.kind not in _CHANGEABLE and (turn.kind, turn.text) not in contained
        }
        return {turn.line for turn in turns} - added


class Copies(Struct):
    """Copied lines of a file, and lines that files of forks copied from it before it was read."""

    earlier: list[Repetition] = field(default_factory=list[Repetition])
    """Lines that repeat a line of an earlier session."""
    lines: set[int] = field(default_factory=set[int])
    """Lines of exchanges that an earlier session contains. They include lines whose turns are not compared."""
    moved: list[Repetition] = field(default_factory=list[Repetition])
    """Lines of later sessions that belong to this file."""
    later: set[int] = field(default_factory=set[int])
    """Sources of these later sessions."""

    def add_earlier(self, source: int, matches: Iterable[Match]) -> None:
        """Add exchanges that repeat exchanges of an earlier source."""
        for copied in matches:
            self.earlier += [Repetition(source, original.line, copy.line) for original, copy in copied.pairs]
            self.lines |= copied.lines


def compared(exchange: Exchange) -> list[Turn]:
    """Return the turns of an exchange by which a copy is recognised."""
    return [turn for turn in exchange.turns if turn.kind in _COMPARED]


def parent_of(session: Session, notes: Iterable[Note]) -> str:
    """Return the ID of the session from which a session was started or forked, or an empty string."""
    return session.parent_id or next((note.value for note in notes if note.fact is Fact.PARENT), "")


def start_of(exchanges: Iterable[Exchange]) -> Milliseconds | None:
    """Return the earliest time of these exchanges, or None if no time is known."""
    times = (at for exchange in exchanges for at in (exchange.started, exchange.ended) if at is not None)
    return min(times, default=None)


def begin_alike(one: Sequence[Exchange], other: Sequence[Exchange]) -> bool:
    """Return whether two files may begin with the same prompt. Turns may precede the first prompt."""
    return not {exchange.prompt for exchange in one[:2]}.isdisjoint(exchange.prompt for exchange in other[:2])


def match(copy: Iterable[Exchange], original: Iterable[Exchange]) -> list[Match]:
    """Return the exchanges at the start of `copy` that repeat the exchanges at the start of `original`, in order.

    Abandoned exchanges of the original may be missing in the copy. Only the last match can be a part of an exchange.
    """
    matches = list[Match]()
    remaining = deque(filter(_begins_with_prompt, copy))
    for candidate in filter(_begins_with_prompt, original):
        if not remaining:
            break
        copied, turns = remaining[0], compared(candidate)
        pairs = _equal_start(turns, compared(copied))
        whole = len(pairs) == len(turns) == len(compared(copied))
        if not _is_copy(pairs, whole=whole, last=len(remaining) == 1):
            if any(turn.active for turn in candidate.turns):
                break
            continue
        matches.append(Match(copied, candidate, pairs, whole))
        remaining.popleft()
        if not whole:
            break
    return matches


def _begins_with_prompt(exchange: Exchange) -> bool:
    return any(turn.kind is Kind.PROMPT for turn in compared(exchange)[:1])


def _equal_start(originals: Sequence[Turn], copies: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    pairs = list[tuple[Turn, Turn]]()
    for original, copy in zip(originals, copies, strict=False):
        if (original.kind, original.text) != (copy.kind, copy.text):
            break
        pairs.append((original, copy))
    return pairs


def _is_copy(pairs: Sequence[tuple[Turn, Turn]], *, whole: bool, last: bool) -> bool:
    """Return whether equal turns prove a copy. Users type the same prompt twice, so a prompt alone proves nothing.

    A prompt with the same time, or a prompt without a reply that another prompt follows, is a copy.
    """
    if not pairs:
        return False
    original, copy = pairs[0]
    same_time = original.at is not None and original.at == copy.at
    return len(pairs) > 1 or same_time or (whole and not last)


class Beginning(NamedTuple):
    """First compared turns of an exchange, identified by their content and by the prompts before the exchange.

    `at` is the time of its prompt. `lines` contains the lines of these turns, and of the turns between them.
    """

    digest: bytes
    at: Milliseconds | None
    lines: set[int]


def beginnings(exchanges: Iterable[Exchange]) -> Iterator[Beginning]:
    """Yield the beginnings of the exchanges of a whole file. A prompt alone is no beginning if a reply follows it.

    Copies of a file can lack abandoned exchanges, so these do not change the digests of later exchanges.
    """
    before = hashlib.blake2b(digest_size=16)
    for exchange in filter(_begins_with_prompt, exchanges):
        turns, digest = compared(exchange), before.copy()
        for count, turn in enumerate(turns, 1):
            digest.update(f"{turn.kind} {len(turn.text)} {turn.text}".encode("utf-8", "surrogatepass"))
            end = turns[count].line if count < len(turns) else exchange.span.end_line + 1
            lines = {turn.line for turn in exchange.turns if turn.line < end}
            if count > 1:
                yield Beginning(digest.digest(), turns[0].at, lines)
            elif len(turns) == 1:
                yield Beginning(digest.digest() + b"alone", turns[0].at, lines)
        if any(turn.active for turn in exchange.turns):
            before.update(f"{len(turns[0].text)} {turns[0].text}".encode("utf-8", "surrogatepass"))


def origins(store: Store, session: Session) -> set[str]:
    """Return the IDs of a session and of the sessions from which it was started or forked."""
    related = [session, *store.sessions.several(store.sessions.ancestors(session)).values()]
    return {name for relative in related for name in (relative.native_id, relative.parent_id) if name}


class Lineage:
    """Related sessions of one file, in which copies of its lines are searched. False if no session is related."""

    def __init__(
        self, store: Store, session: Session, source: Source, sharing: Collection[int], began: Milliseconds | None
    ) -> None:
        """Find the files of related sessions.

        Args:
            store: Store with the files that were read before.
            session: Session of the file.
            source: The file.
            sharing: Sources that contain some of the same records.
            began: Start of the session, or None if it is unknown or if only the end of the file is read.
        """
        self._session, self._source, self._sharing = session, source, sharing
        self._sources, self._exchanges = store.sources, store.exchanges
        self._earlier = list[int]()
        """Sources of the sessions from which this session was forked, oldest first."""
        self._later = list[int]()
        """Sources of forks and sub-agents."""
        self._others = list[int]()
        """Sources of other files of this session, and of sessions that name no common origin."""
        if sharing or session.parent_id or store.sessions.has_relatives(session, began):
            self._find_relatives(store.sessions, began)

    def __bool__(self) -> bool:
        return bool(self._earlier or self._later or self._others)

    def _find_relatives(self, sessions: SessionTable, began: Milliseconds | None) -> None:
        session, sources = self._session, self._sources
        self._earlier = sources.of_sessions(sessions.ancestors(session))
        self._later = sources.of_sessions(sessions.descendants(session))
        own = sessions.find(session.agent, session.native_id, session.scope)
        own_sources = sources.of_sessions([own]) if own is not None else []
        begun = sessions.begun_at(session, began) if began is not None else []
        others = {*self._sharing, *sources.of_sessions(begun), *own_sources}
        others -= {*self._earlier, *self._later, self._source.id}
        # The files of a session contain less detail than its database. `stored_twice` compares them.
        others -= {number for number in own_sources if sources.load(number).is_contained != self._source.is_contained}
        if not is_extracted(self._source.path):
            self._others = sorted(others - {*sources.extracted(others)})

    def copies(self, exchanges: Sequence[Exchange], *, whole: bool) -> Copies:
        """Return the lines of the file that repeat other files, and the lines of other files that repeat this file.

        `exchanges` are the exchanges of the file as they would be stored. `whole` is true if they begin at its start.
        """
        copies = Copies()
        remaining = self._find_earlier(exchanges, copies) if whole else []
        prompts = [exchange.prompt for exchange in exchanges[:2]]
        copying = {*self._exchanges.beginning_with(self._later, prompts), *self._sharing}
        for source in self._later:
            if source in copying:
                self._find_later(exchanges, source, copies)
        for source in self._others if remaining else ():
            self._compare(remaining, source, copies)
        return copies

    def _find_earlier(self, exchanges: Sequence[Exchange], copies: Copies) -> list[Exchange]:
        """Find lines that the file copied from its origins. Return the exchanges that follow the copied exchanges.

        Each origin contains only what follows the part that it copied itself.
        """
        remaining = list(exchanges)
        for source in self._earlier:
            matches = match(remaining, self._exchanges.beginning(source)) if remaining else []
            copies.add_earlier(source, matches)
            if matches:
                remaining = remaining[remaining.index(matches[-1].copy) + 1 :] if matches[-1].whole else []
        return remaining

    def _find_later(self, exchanges: Sequence[Exchange], source: int, copies: Copies) -> None:
        """Find lines that a later file copied. If only the end of this file is read, its first exchange was copied."""
        stored = list(self._exchanges.beginning(source))
        copies.later.add(source)
        for copied in match(stored, exchanges) or match(stored, exchanges[1:]):
            copies.moved += [Repetition(source, copy.line, original.line) for original, copy in copied.pairs]

    def _compare(self, exchanges: Sequence[Exchange], source: int, copies: Copies) -> None:
        """Compare the file with a file that does not name it as its origin, nor is named by it.

        The original has the earlier times. If the times are equal, the original is the session that continues first
        after the shared exchanges. If one of them does not continue, the original is the file that was changed first.
        Lines that were assigned to a file before stay there when the other file is read again.
        """
        stored, native_id = list(self._exchanges.beginning(source)), self._sources.native_id(source)
        matches = match(exchanges, stored)
        is_related = source in self._sharing or native_id == self._session.native_id
        if not matches or not (is_related or _same_start(matches[0])):
            return
        original, copy = matches[0].pairs[0]
        continued, stored_continued = (
            _continued_at(exchanges, matches[-1].copy),
            _continued_at(stored, matches[-1].original),
        )
        if continued is None or stored_continued is None:
            continued, stored_continued = self._source.mtime, self._sources.load(source).mtime
        is_first = (copy.at or 0, continued, self._session.native_id) < (original.at or 0, stored_continued, native_id)
        if is_first and (source not in self._sharing or self._source.id is None):
            self._find_later(exchanges, source, copies)
        else:
            copies.add_earlier(source, matches)


def _same_start(first: Match) -> bool:
    """Return whether two sessions began at the same time with the same prompt, the same reply and no other results."""
    original, copy = first.pairs[0]
    results = [
        {turn.text for turn in exchange.turns if turn.kind is Kind.RESULT} for exchange in (first.original, first.copy)
    ]
    is_same = results[0] <= results[1] or results[1] <= results[0]
    return len(first.pairs) > 1 and original.at is not None and original.at == copy.at and is_same


def _continued_at(exchanges: Sequence[Exchange], last: Exchange) -> Milliseconds | None:
    """Return the start of the first exchange after `last`, or None if there is none or if its time is unknown."""
    following = exchanges[[*exchanges].index(last) + 1 :]
    return next((exchange.started for exchange in following if exchange.started is not None), None)


def has_anonymous_prompts(exchanges: Sequence[Exchange]) -> bool:
    """Return whether a prompt of these exchanges has no record ID."""
    return any(turn.kind is Kind.PROMPT and not turn.record for exchange in exchanges for turn in exchange.turns)


def remove_stored_twice(parsed: ParsedLines, stored: Sequence[StoredExchange]) -> list[Repetition]:
    """Remove the exchanges of a file that the session's database contains too, and count their lines as repeated.

    `stored` contains the exchanges of the database, in order. Return the first and the last line of each removed
    exchange, with the line that it repeats.
    """
    lines: list[Repetition] = []
    kept: list[Exchange] = []
    remaining = list(stored)
    for exchange in parsed.exchanges:
        prompt = _words(exchange)
        index = next(
            (number for number, candidate in enumerate(remaining) if _words(candidate.exchange) == prompt), None
        )
        if index is None or not prompt or not has_anonymous_prompts([exchange]):
            kept.append(exchange)
            continue
        same, span = remaining[index], exchange.span
        del remaining[: index + 1]
        line = same.exchange.span.start_line
        lines += [Repetition(same.source, line, span.start_line), Repetition(same.source, line, span.end_line)]
        parsed.count_as(REPEATED, range(span.start_line, span.end_line + 1))
    parsed.exchanges = kept
    return lines


def less_detailed(exchanges: Sequence[Exchange], stored: Sequence[StoredExchange]) -> set[int]:
    """Return the IDs of the files with an exchange that a database of the same session contains too.

    `exchanges` are from the database, `stored` from the files.
    """
    prompts = set(map(_words, exchanges))
    return {
        each.source for each in stored if has_anonymous_prompts([each.exchange]) and _words(each.exchange) in prompts
    }


def _words(exchange: Exchange) -> str:
    return " ".join(exchange.prompt.split())
