"""Second level of search results: the full content of stored items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...archiver.files.clipping import heading_of, one_line, plan_in
from ...core import ids, tokens
from ...core.amount import many
from ...core.conversation import Kind
from ...core.memory import MemoryState, state_label
from ...core.memory_types import Family
from ...core.observation import Evidence, Observation, ObservationType
from ...core.origin import Origin, Trust
from ...core.read_cost import read_cost
from ...core.results import Detail, ReplacedBy
from ...core.sentences import TITLE_MAX, shorten
from .session_names import SessionName, SessionNames

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredExchange, StoredObservation
    from ...archiver.store.exchange_table import ExchangeLocation
    from ...archiver.store.replacement_table import StoredReplacement
    from ...core.conversation import Exchange
    from ...core.document import StoredChunk
    from ...core.memory import StoredMemory

_TITLE, _SUBTITLE, _QUOTE, _ANSWER = 80, 400, 120, 1_200
"""Maximum number of characters of a title, of a subtitle, of a quoted prompt, and of an answer."""
_TYPES = {
    Family.DECISION: ObservationType.DECISION,
    Family.PATTERN: ObservationType.PATTERN,
    Family.ISSUE: ObservationType.BUG_FIX,
    Family.FACT: ObservationType.LEARNING,
}
"""Type of the observation that shows a memory, by the family of the memory."""


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
        again = self._store.repetitions.of_exchanges(list(locations))
        replaced = self._store.replacements.of_observations(list(observations))
        later = self._store.observations.load([each.later for each in replaced.values()])
        confirmed = self._store.confirmations.of_observations(list(observations))
        found: list[Detail] = []
        for key in keys:
            if key in observations and observations[key].exchange in locations:
                stored = observations[key]
                location = locations[stored.exchange]
                times = [each.at for each in confirmed.get(key, [])]
                found.append(
                    replace(
                        self._of_observation(stored, location, names[location.session]),
                        also_in=again.get(stored.exchange, ()),
                        confirmed=len(times),
                        confirmed_at=max((at for at in times if at is not None), default=None),
                        replaced_by=_replaced_by(replaced.get(key), later),
                    )
                )
            elif key in exchanges and key in locations:
                detail = self._of_exchange(exchanges[key], locations[key], names[locations[key].session])
                found.append(replace(detail, also_in=again.get(key, ())))
            elif key in memories and memories[key].state is not MemoryState.ARCHIVED:
                found.append(_memory_detail(memories[key]))
            elif key in chunks:
                found.append(_chunk_detail(chunks[key]))
        return found

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
    place = f"page {chunk.page}" if chunk.page else chunk.header_path
    declared = (f"{chunk.unit}: {chunk.signature}",) if chunk.signature else ()
    facts = (*declared, *(f"{name}: {value}" for name, value in stored.metadata.items()))
    return Observation(
        type=ObservationType.GENERAL,
        title=_chunk_title(stored),
        subtitle=place,
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


def _title_of(text: str) -> str:
    """Return the beginning of a prompt or an answer as a title, cut at a clause if possible."""
    whole = one_line(text)
    return whole if len(whole) <= TITLE_MAX else shorten(whole, TITLE_MAX) or one_line(text, TITLE_MAX)


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
