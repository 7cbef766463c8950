"""Second level of search results: full content of items, sessions, and the edits of units of code.

An edit belongs to a unit if the edit wrote lines that occur in the unit, or wrote its declaration. Line numbers are
not compared, because they change. An edit whose text was replaced later is not found.

Sessions have short IDs, titles, details and outlines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.exporter import encodable
from ...archiver.formats.resume_commands import resume_line
from ...archiver.lines import heading_of, is_media_label, one_line, plan_in
from ...archiver.reading.exchanges import read_written_lines
from ...archiver.store.session_label_table import SessionLabel
from ...archiver.store.session_list import SessionFilter
from ...archiver.store.session_table import ambiguous_session
from ...core import ids, tokens
from ...core.conversation import Kind, Origin, SessionKind, Trust
from ...core.document import ChunkKind, DocumentFilter, EditBasis, EditedUnit, Symbol, UnitEdit
from ...core.memory import Family, MemoryState, state_label
from ...core.observation import (
    DETAIL_TOKENS,
    OUTCOME,
    SUMMARY,
    Evidence,
    Observation,
    ObservationType,
    is_open_item,
)
from ...core.reports import many
from ...core.results import Detail, Hit, OpenItem, ReplacedBy, SessionEntry, SessionOutline, read_cost
from ...core.text import TITLE_MAX, shorten, title_of_start
from ..query.tokenizer import terms
from .subagents import Subagents

if TYPE_CHECKING:
    from ...archiver.copies.raw_copy import RawArchive
    from ...archiver.store import Edit, Store, StoredExchange, StoredObservation
    from ...archiver.store.exchange_table import ExchangeLocation
    from ...archiver.store.observation_table import StoredReplacement
    from ...core.conversation import Exchange, Session
    from ...core.document import Chunk, StoredChunk
    from ...core.memory import StoredMemory

_TITLE, _SUBTITLE, _QUOTE, _ANSWER = 80, 400, 120, 1_200
"""Maximum number of characters of a title, of a subtitle, of a quoted prompt, and of an answer."""
_CACHED = 256
"""Maximum number of exchanges that are cached as observations."""
_TYPES = {
    Family.DECISION: ObservationType.DECISION,
    Family.PATTERN: ObservationType.PATTERN,
    Family.ISSUE: ObservationType.BUG_FIX,
    Family.FACT: ObservationType.LEARNING,
}
"""Type of the observation that shows a memory, by the family of the memory."""


class SessionName(NamedTuple):
    """Short ID and title of a session. The title is empty if the session has neither a summary nor its own title."""

    short_id: str
    title: str


class SessionNames:
    """Lookup of the names of sessions by their numbers in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_all(self, numbers: Iterable[int]) -> dict[int, SessionName]:
        """Return the names of these sessions by number."""
        sessions = self._store.sessions.several(numbers)
        summaries, short_ids = self._store.summaries.of_sessions(sessions), self._store.sessions.short_ids(sessions)
        untitled = [number for number in sessions if number not in summaries and sessions[number].title_rank <= 0]
        results = self._store.summaries.single_titles(untitled)
        own = self._requests(sessions)
        own |= {number: label.title for number, label in self._store.session_labels.of(sessions).items() if label.title}
        return {
            number: SessionName(
                short_ids[number],
                own.get(number) or _title(session, summaries.get(number), results.get(number, "")),
            )
            for number, session in sessions.items()
        }

    def _requests(self, sessions: Mapping[int, Session]) -> dict[int, str]:
        """Return the first prompts of the sessions whose title claims a change that they did not make."""
        claimed = [number for number, session in sessions.items() if session.claims_change]
        unchanged = self._store.summaries.without_change(claimed) if claimed else ()
        first = ((number, self._store.exchanges.first_of_session(number)) for number in unchanged)
        return {number: one_line(exchange.prompt, _TITLE) for number, exchange in first if exchange}

    def title(self, number: int) -> str:
        """Return the title of a session, or else its first prompt, even if that is a question."""
        return self.of_all([number])[number].title or self._store.sessions.load(number).title


def _title(session: Session, summary: StoredObservation | None, result: str) -> str:
    """Return the title of a session's summary, its only `result`, or else its own title.

    The session's own title is the agent's, or the first prompt. A question is no title.
    """
    if summary is not None:
        return summary.observation.title.removeprefix(SUMMARY)
    if result:
        return result
    return "" if session.title.endswith("?") else title_of_start(session.title)


class Details:
    """Lookup of details by item key. Each exchange, memory or chunk is converted to an `Observation`."""

    def __init__(self, store: Store) -> None:
        self._store, self._names = store, SessionNames(store)

    def load(self, keys: Sequence[int]) -> list[Detail]:
        """Return the details of these items in the order of the keys. Unknown keys are skipped."""
        observations = self._store.observations.load(keys)
        exchanges = self._store.exchanges.load([key for key in keys if key not in observations])
        parents = {stored.exchange for stored in observations.values()}
        locations = self._store.exchanges.locations(sorted({*exchanges, *parents}))
        names = self._names.of_all({location.session for location in locations.values()})
        memories = self._store.memories.load([key for key in keys if key not in observations.keys() | exchanges.keys()])
        chunks = self._store.documents.load(keys)
        repeated_in = self._store.repetitions.of_exchanges(list(locations))
        replaced = self._store.replacements.of_observations(list(observations))
        later = self._store.observations.load([link.later for link in replaced.values()])
        confirmed = self._store.confirmations.of_observations(list(observations))
        details: list[Detail] = []
        for key in keys:
            if key in observations and observations[key].exchange in locations:
                stored = observations[key]
                location = locations[stored.exchange]
                times = [link.at for link in confirmed.get(key, [])]
                details.append(
                    replace(
                        self._of_observation(stored, location, names[location.session]),
                        also_in=repeated_in.get(stored.exchange, ()),
                        confirmed=len(times),
                        confirmed_at=max((at for at in times if at is not None), default=None),
                        replaced_by=_replaced_by(replaced.get(key), later),
                    )
                )
            elif key in exchanges and key in locations:
                detail = self._of_exchange(exchanges[key], locations[key], names[locations[key].session])
                details.append(replace(detail, also_in=repeated_in.get(key, ())))
            elif key in memories and memories[key].state is not MemoryState.ARCHIVED:
                details.append(_memory_detail(memories[key]))
            elif key in chunks:
                details.append(_chunk_detail(chunks[key]))
        return details

    def _of_observation(self, stored: StoredObservation, location: ExchangeLocation, name: SessionName) -> Detail:
        lines = stored.observation.lines or (location.start_line, location.end_line)
        public = ids.show("observation", stored.key)
        return self._detail(public, "observation", stored.observation, location, name, lines)

    def _of_exchange(self, stored: StoredExchange, location: ExchangeLocation, name: SessionName) -> Detail:
        lines = location.start_line, location.end_line
        public = ids.show("exchange", stored.key)
        return self._detail(public, "exchange", exchange_observation(stored.exchange), location, name, lines)

    def _detail(
        self,
        public: str,
        kind: str,
        observation: Observation,
        location: ExchangeLocation,
        name: SessionName,
        lines: tuple[int, int],
    ) -> Detail:
        costs = self._store.exchanges.costs_in(location.source, *lines)
        return Detail(
            id=public,
            kind=kind,
            observation=observation,
            project=location.project,
            branch=location.branch,
            session_id=location.session_id,
            session_title=name.title,
            path=location.path,
            start_line=lines[0],
            end_line=lines[1],
            tokens=read_cost(costs, single=lines[0] == lines[1]),
            short_session_id=name.short_id,
        )


def _replaced_by(link: StoredReplacement | None, later: Mapping[int, StoredObservation]) -> ReplacedBy | None:
    if link is None or link.later not in later:
        return None
    return ReplacedBy(ids.show("observation", link.later), later[link.later].observation.title, link.line)


def memory_observation(stored: StoredMemory) -> Observation:
    """Return a memory as an observation. The facts contain the statistics of the memory."""
    memory, stats = stored.memory, stored.stats
    outcomes = f"{many(stats.successes, 'success', 'successes')}, {many(stats.failures, 'failure')}"
    mark = "(untrusted) " if memory.origin.trust is Trust.LOW else ""
    mark += "(superseded) " if stored.state is MemoryState.SUPERSEDED else ""
    earned = f"confidence {stats.confidence:.2f}: {outcomes}"
    return Observation(
        type=_TYPES.get(stored.family, ObservationType.GENERAL),
        title=f"{mark}{memory.title or one_line(memory.content, _TITLE)}",
        subtitle=f"{memory.type} in {memory.namespace}",
        narrative=memory.content,
        facts=(earned, f"state: {state_label(stored.state)}", f"importance {memory.importance:.2f}"),
        concepts=memory.tags,
        at=stored.created,
        origin=memory.origin,
    )


def chunk_observation(stored: StoredChunk) -> Observation:
    """Return an observation with the content of a chunk."""
    chunk = stored.chunk
    heading = f"page {chunk.page}" if chunk.page else chunk.header_path
    declared = (f"{chunk.unit}: {chunk.signature}",) if chunk.signature else ()
    facts = (*declared, *(f"{name}: {value}" for name, value in stored.metadata.items()))
    return Observation(
        type=ObservationType.GENERAL,
        title=_chunk_title(stored),
        subtitle=heading,
        narrative=chunk.text,
        facts=facts,
        at=stored.at,
        origin=Origin.DOCUMENT,
    )


def exchange_observation(exchange: Exchange) -> Observation:
    """Return an exchange as an observation with the prompt and the answer."""
    prompt, answer = exchange.prompt, exchange.answer
    said = [turn for turn in exchange.turns if turn.text.strip()]
    # Text before the prompt is inserted by the agent's program, so it is the same in each session.
    asked = next((turn for turn in said if turn.kind is Kind.PROMPT), said[0] if said else None)
    quote = (Evidence(asked.line, asked.line, _beginning(asked.text)),) if asked else ()
    return Observation(
        type=ObservationType.GENERAL,
        title=_title_of(_asked(prompt) or answer) or "Tool use without text",
        subtitle=one_line(prompt, _SUBTITLE) if len(prompt) > TITLE_MAX else "",
        narrative=answer if len(answer) <= _ANSWER else f"{answer[:_ANSWER].rstrip()}…",
        files_read=exchange.reads,
        files_modified=exchange.writes,
        evidence=quote,
        at=exchange.started,
        origin="human" if prompt else "assistant",
    )


class Exchanges:
    """Exchanges as observations. The last ones are cached until the archive changes, because many searches show them.

    Loading an exchange and estimating its tokens takes 0.3 ms.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._seq = store, 0
        self._cached = tokens.Memo[int, Observation](_CACHED)

    def load(self, keys: Sequence[int], seq: int) -> dict[int, Observation]:
        """Return these exchanges. Unknown keys are omitted. `seq` is the number of the last change of the archive."""
        if seq != self._seq:
            self._cached.clear()
            self._seq = seq
        cached = {key: self._cached[key] for key in keys if key in self._cached}
        loaded = self._store.exchanges.load([key for key in keys if key not in cached])
        for key, stored in loaded.items():
            cached[key] = exchange_observation(stored.exchange)
            self._cached.put(key, cached[key])
        return cached


def _title_of(text: str) -> str:
    """Return the beginning of a prompt or an answer without pictures as a title, cut at a clause if possible."""
    line = one_line("\n".join(row for row in text.split("\n") if not is_media_label(row))) or one_line(text)
    return line if len(line) <= TITLE_MAX else shorten(line, TITLE_MAX) or one_line(line, TITLE_MAX)


def _chunk_title(stored: StoredChunk) -> str:
    """Return the title of a chunk: its name or heading and the file name, or else the beginning of its text."""
    chunk, file = stored.chunk, stored.source_file.name
    if name := chunk.name or chunk.header_path.rpartition(" > ")[2]:
        return one_line(f"{name}, {file}", _TITLE)
    return one_line(f"{file}, page {chunk.page}: {chunk.text}" if chunk.page else f"{file}: {chunk.text}", _TITLE)


def _asked(prompt: str) -> str:
    """Return the heading of the plan that a prompt contains, or the prompt itself if there is no such heading."""
    heading = heading_of(plan_in(prompt) or "")
    return heading[1] if heading else prompt


def _beginning(text: str) -> str:
    """Return at most the first `_QUOTE` characters of a text, ending with a whole word if possible."""
    stripped = text.strip()
    return stripped if len(stripped) <= _QUOTE else stripped[:_QUOTE].rsplit(None, 1)[0]


def _memory_detail(stored: StoredMemory) -> Detail:
    memory = stored.memory
    return Detail(
        id=stored.id,
        kind="memory",
        observation=memory_observation(stored),
        project=memory.project or memory.namespace,
        branch="",
        session_id=memory.session_id,
        session_title="",
        path=memory.path,
        start_line=0,
        end_line=0,
        tokens=tokens.count(memory.content),
    )


def _chunk_detail(stored: StoredChunk) -> Detail:
    chunk = stored.chunk
    return Detail(
        id=stored.id,
        kind=chunk.kind,
        observation=chunk_observation(stored),
        project=stored.namespace,
        branch="",
        session_id="",
        session_title="",
        path=str(stored.source_file),
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        tokens=tokens.count(chunk.text),
    )


_EDITS_MAX, _SHOWN = 200, 10
"""Maximum number of edits of a file to read, newest first, and of linked edits or units to show."""
_DISTINCTIVE_MIN = 6
"""Minimum number of letters and digits of a line that can identify a unit. A line such as `else:` cannot."""
_COPIED_MIN = 2
"""Minimum number of matching lines if the edited file has another path, for example in another clone."""


class _UnitName(NamedTuple):
    unit: str
    name: str
    signature: str
    start_line: int

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        """Return the name of the unit of a chunk."""
        return cls(chunk.unit, chunk.name, chunk.signature, chunk.unit_start)


class _FileUnits(Struct, frozen=True):
    """Units of one file, and the unit of each line that occurs in only one unit."""

    units: Mapping[_UnitName, Symbol]
    owners: Mapping[str, _UnitName]

    def edited_by(self, lines: Iterable[str], *, same_file: bool) -> dict[_UnitName, tuple[EditBasis, int]]:
        """Return the units that contain the written lines, each with the basis and the number of matching lines."""
        rows = list(lines)
        counts: dict[_UnitName, int] = {}
        for row in rows:
            if owner := self.owners.get(row):
                counts[owner] = counts.get(owner, 0) + 1
        least = 1 if same_file else _COPIED_MIN
        edited = {owner: (EditBasis.TEXT, count) for owner, count in counts.items() if count >= least}
        if same_file:
            written = [" ".join(row.split()) for row in rows]
            for owner, symbol in self.units.items():
                if owner not in edited and (head := _declaration(symbol)) and any(head in row for row in written):
                    edited[owner] = EditBasis.NAME, 0
        return edited


class UnitHistory:
    """Lookup of the exchanges that edited a unit, and of the units that an exchange edited."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw, self._names = store, raw, SessionNames(store)

    def linked(self, details: Sequence[Detail]) -> tuple[Detail, ...]:
        """Return the details, with edited units added to those of exchanges, and edits added to those of units."""
        return tuple(map(self._linked, details))

    def _linked(self, detail: Detail) -> Detail:
        key = ids.key(detail.id)
        if key is None:
            return detail
        if detail.kind == ChunkKind.CODE:
            return replace(detail, edits=self.edits_of(key))
        if detail.kind in {"exchange", "observation"} and detail.observation.files_modified:
            stored = self._store.observations.load([key]).get(key)
            return replace(detail, units=self.units_of(stored.exchange if stored else key))
        return detail

    def edits_of(self, chunk: int) -> tuple[UnitEdit, ...]:
        """Return the exchanges that edited the unit of a chunk, newest first."""
        stored = self._store.documents.load([chunk]).get(chunk)
        if stored is None or not stored.chunk.name:
            return ()
        unit = _UnitName.of(stored.chunk)
        path, edits = stored.source_file, list[UnitEdit]()
        paths = {path, *self._store.documents.former_paths(path, stored.namespace)}
        units = self._units(path)
        for edit in self._store.edits.of_names(sorted({file.name for file in paths}), _EDITS_MAX):
            edited = units.edited_by(self._lines(edit), same_file=_is_same(edit, paths))
            if unit in edited:
                basis, lines = edited[unit]
                session = self._store.sessions.load(edit.session)
                title = self._names.of_all([edit.session])[edit.session].title
                public = ids.show("exchange", edit.exchange)
                edits.append(UnitEdit(public, session.native_id, title, edit.started, basis, lines))
            if len(edits) == _SHOWN:
                break
        return tuple(edits)

    def units_of(self, exchange: int) -> tuple[EditedUnit, ...]:
        """Return the indexed units that an exchange edited, in the order of their files and lines."""
        edits = self._store.edits.of_exchanges([exchange])
        paths = self._store.documents.paths_named({Path(edit.absolute_path).name for edit in edits})
        edited_units: dict[tuple[Path, _UnitName], EditedUnit] = {}
        for edit in edits if paths else ():
            name, same = Path(edit.absolute_path).name, {path for path in paths if _is_same(edit, paths[path])}
            named = [path for path, former in paths.items() if any(unit.name == name for unit in former)]
            # If the edited file is not indexed, compare files of the same name, such as those of another clone.
            for path in same or named:
                units = self._units(path)
                edited = units.edited_by(self._lines(edit), same_file=path in same)
                for owner, (basis, _) in edited.items():
                    symbol = units.units[owner]
                    location = symbol.source_file, symbol.start_line, symbol.end_line
                    edited_units[path, owner] = EditedUnit(symbol.id, symbol.name, symbol.unit, *location, basis)
        ordered = sorted(edited_units.values(), key=lambda unit: (str(unit.source_file), unit.start_line))
        return tuple(ordered[:_SHOWN])

    def _lines(self, edit: Edit) -> frozenset[str]:
        stored = self._store.exchanges.load([edit.exchange]).get(edit.exchange)
        return read_written_lines(stored.exchange, edit, self._raw)[1] if stored else frozenset()

    def _units(self, path: Path) -> _FileUnits:
        """Return the functions and classes of a file, and the lines that occur in one of them only.

        An edit that wrote such a line changed this function or class.
        """
        symbols = {symbol.id: symbol for symbol in self._store.symbols.of_file(path)}
        units: dict[_UnitName, Symbol] = {}
        owners: dict[str, _UnitName | None] = {}
        for stored in self._store.documents.select(DocumentFilter(source_files=(path,))):
            name = _UnitName.of(stored.chunk)
            if stored.id in symbols:
                units[name] = symbols[stored.id]
            for row in map(str.strip, stored.chunk.text.split("\n")):
                owners[row] = name if owners.get(row, name) == name else None
        distinct = {row: name for row, name in owners.items() if name in units and _is_distinctive(row)}
        return _FileUnits(units, {row: name for row, name in distinct.items() if name is not None})


def _is_same(edit: Edit, paths: Iterable[Path]) -> bool:
    """Return whether an edit changed a file at one of these paths: the present and former paths of the file."""
    return edit.absolute_path in map(str, paths)


def _is_distinctive(row: str) -> bool:
    return sum(map(str.isalnum, row)) >= _DISTINCTIVE_MIN


def _declaration(symbol: Symbol) -> str:
    """Return the beginning of a declaration up to its name, such as `def open`, or an empty text."""
    before, name, _ = symbol.signature.partition(symbol.last_name)
    return f"{before}{name}" if before.strip() and name else ""


_ENTRIES = 8
"""Maximum number of observations in the details of a session."""
_NAMING = 3
"""Minimum number of distinct words in a title or result of a session that names an earlier open item."""
_SAME = 0.6
"""Minimum share of the words of an open item that a later title or result contains if it is the work on this item."""
_LATER_READ = 1_000
"""Number of latest sessions of a project that are searched for work on an open item."""
_COMPARED = 40
"""Number of letters and digits at the beginning of a fact or quote that are compared."""
_LISTED_TITLE = 100
"""Maximum number of characters of the title of an observation in a list."""
_ENTRY_TOKENS, _SUBAGENT_TOKENS, _NO_SUMMARY = 6, 16, 45
"""Tokens of the ID and type of a listed observation, of a sub-agent, and that a session without a summary saves."""


class Sessions:
    """Lookup of sessions, by their numbers in the store or by the first characters of their IDs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, start: str) -> int | None:
        """Return the session whose ID begins with `start`, or None.

        Raises:
            InvalidInput: Several session IDs begin with this text.
        """
        numbers = self._store.sessions.beginning_with(encodable(start.strip()))
        if len(numbers) > 1:
            raise ambiguous_session(self._store.sessions, start)
        return numbers[0] if numbers else None

    def detail(self, number: int) -> Detail | None:
        """Return the details of a session: its summary and its first observations. None if it has no exchange."""
        keys, source = self._store.summaries.conversation(number), self._store.sources.main(number)
        if not keys or source is None:
            return None
        session, places = self._store.sessions.load(number), self._store.exchanges.locations([keys[0], keys[-1]])
        first, last = places[keys[0]], places[keys[-1]]
        name = SessionNames(self._store).of_all([number])[number]
        observation, entries = self._content(name, self._store.summaries.of_session(number), keys)
        subagents, subagents_total = Subagents(self._store).of_session(session)
        return Detail(
            id=name.short_id,
            kind="session",
            observation=observation,
            project=session.project,
            branch=session.branch,
            session_id=session.native_id,
            session_title=session.title,
            path=source.archived,
            start_line=first.start_line if first.path == source.archived else 1,
            end_line=last.end_line if last.path == source.archived else source.lines,
            tokens=read_cost(self._store.exchanges.costs_of(keys), single=False),
            entries=entries,
            subagents=subagents,
            subagents_total=subagents_total,
            resume=resume_line(session, name.short_id, source.path, contained=source.is_contained),
        )

    def costs(self, names: Mapping[int, SessionName], cards: Mapping[int, StoredObservation]) -> dict[int, int]:
        """Return the estimated cost of the details of each session in `names`. `cards` are their summaries."""
        subagents = self._store.sessions.count_subagents(names)
        return {
            number: self._cost(number, name, cards.get(number), subagents.get(number, 0))
            for number, name in names.items()
        }

    def _cost(self, number: int, name: SessionName, card: StoredObservation | None, subagents: int) -> int:
        keys = self._store.summaries.conversation(number)
        if not keys:
            return 0
        observation, entries = self._content(name, card, keys)
        listed = sum(tokens.count(entry.title) + _ENTRY_TOKENS for entry in entries) + _SUBAGENT_TOKENS * subagents
        return min(observation.tokens + listed - (0 if observation.facts else _NO_SUMMARY), DETAIL_TOKENS)

    def _content(
        self, name: SessionName, card: StoredObservation | None, keys: Sequence[int]
    ) -> tuple[Observation, tuple[SessionEntry, ...]]:
        """Return an observation that describes a session, and its first observations. `keys` are its exchanges."""
        learned = self._store.summaries.summarised(keys)
        observation = card.observation if card else self._without_summary(keys[0], learned)
        title = name.title or observation.title.removeprefix(SUMMARY)
        return replace(observation, title=title), tuple(_entry(stored) for stored in learned[:_ENTRIES])

    def _without_summary(self, first: int, learned: Sequence[StoredObservation]) -> Observation:
        """Return an observation for a session without a summary, titled by its first observation or exchange."""
        if learned:
            first_learned = learned[0].observation
            return Observation(
                type=ObservationType.GENERAL,
                title=first_learned.title,
                at=first_learned.at,
                origin=first_learned.origin,
            )
        stored = self._store.exchanges.load([first])[first]
        return replace(exchange_observation(stored.exchange), type=ObservationType.GENERAL)

    def with_lines(self, items: Sequence[OpenItem], numbers: Mapping[str, int]) -> list[OpenItem]:
        """Return open items with the lines that prove them. `numbers` has the store's IDs of sessions by short ID."""
        sessions = {name: numbers[name] for item in items if (name := item.session) in numbers}
        cards = self._store.summaries.of_sessions([*sessions.values()])
        evidence = {name: cards[number].observation.evidence for name, number in sessions.items() if number in cards}
        return [replace(item, line=line_of(item.text, evidence.get(item.session, ()))) for item in items]

    def done_later(self, number: int, facts: Iterable[str]) -> dict[str, str]:
        """Return the title of a later session of the project that worked on an open item, by the item.

        `items_of` leaves these items out.
        """
        items = [*filter(is_open_item, facts)]
        if not items:
            return {}
        project = self._store.sessions.load(number).project
        latest = self._store.session_list.page(SessionFilter(project=project), _LATER_READ)
        later = latest[: latest.index(number)] if number in latest else []
        outlines = [outline for outline in self.outlines_of(later).values() if outline.kind is SessionKind.MAIN]
        worked_on = [(outline.title, words) for outline in outlines for words in _worked_on(outline)]
        done = ((item, title) for item in items for title, words in worked_on if _is_done(item, words))
        return dict(done)

    def outlines(self, hits: Iterable[Hit]) -> tuple[SessionOutline, ...]:
        """Return an outline of the session of each hit, in the same order."""
        sources = [(hit, source) for hit in hits if (source := self._store.sources.by_archived(hit.path))]
        outlines = self.outlines_of([source.session for _, source in sources if source.session is not None])
        return tuple(
            replace(
                outlines[source.session],
                id=hit.id,
                title=hit.title,
                path=hit.path,
                exchanges=len(self._store.summaries.conversation(source.session)),
                resume=resume_line(session, hit.id, source.path, contained=source.is_contained),
            )
            for hit, source in sources
            if source.session in outlines  # Otherwise, another process has just removed the session.
            for session in (self._store.sessions.load(source.session),)
        )

    def outlines_of(self, numbers: Sequence[int]) -> dict[int, SessionOutline]:
        """Return outlines of these sessions, in the same order, without their length, file and command.

        Open items that the user dismissed are left out.
        """
        sessions, cards = self._store.sessions.several(numbers), self._store.summaries.of_sessions(numbers)
        names, labels = SessionNames(self._store).of_all(numbers), self._store.session_labels
        own = labels.of(numbers)
        return {
            number: SessionOutline(
                id=names[number].short_id,
                title=names[number].title,
                project=session.project,
                agent=session.agent,
                kind=session.kind,
                branch=session.branch,
                started=session.started,
                ended=session.ended,
                exchanges=0,
                session_id=session.native_id,
                path="",
                facts=labels.undismissed(number, cards[number].observation.facts) if number in cards else (),
                tags=label.tags,
                pinned=label.pinned,
            )
            for number in numbers
            if (session := sessions.get(number)) is not None
            for label in (own.get(number, SessionLabel()),)
        }


def line_of(fact: str, evidence: Sequence[Evidence]) -> int:
    """Return the line of the evidence that a fact of a card quotes, or else the last line of the evidence, or 0."""
    stated = _letters(fact.partition(": ")[2])
    quotes = [(proof, _letters(proof.quote)) for proof in evidence if proof.quote]
    quoting = [proof for proof, quote in quotes if quote[:_COMPARED] in stated or stated[:_COMPARED] in quote]
    return max((proof.end_line for proof in quoting or evidence), default=0)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def items_of(sessions: Iterable[SessionOutline]) -> list[OpenItem]:
    """Return the open items and next steps of the main sessions, which are sorted from the latest to the first.

    An item is left out if a later session of the project worked on it, which its title or results show. A later session
    on the same branch is no sign of this, because it can be about something else.
    """
    items: dict[str, OpenItem] = {}
    later: list[tuple[str, frozenset[str]]] = []
    for session in sessions:
        if session.kind is not SessionKind.MAIN:
            continue
        worked_on = [words for project, words in later if project == session.project]
        for fact in filter(is_open_item, session.facts):
            if any(_is_done(fact, words) for words in worked_on):
                continue
            at = session.ended or session.started
            items.setdefault(
                fact, OpenItem(fact, session.id, at, session.project, session.title, session.session_id, session.path)
            )
        later += ((session.project, words) for words in _worked_on(session))
    return [*items.values()]


def _worked_on(session: SessionOutline) -> Iterator[frozenset[str]]:
    """Yield the words of the title and of each result of a session."""
    results = (fact for fact in session.facts if fact.startswith(OUTCOME))
    yield from (frozenset(terms(text)) for text in (session.title, *results))


def _is_done(fact: str, worked_on: frozenset[str]) -> bool:
    """Return whether a later title or result names the item of a fact, or the fact names this title."""
    words = frozenset(terms(fact))
    return len(worked_on) >= _NAMING and (worked_on <= words or len(worked_on & words) >= _SAME * len(words))


def _entry(stored: StoredObservation) -> SessionEntry:
    observation = stored.observation
    return SessionEntry(
        ids.show("observation", stored.key), str(observation.type), one_line(observation.title, _LISTED_TITLE)
    )
