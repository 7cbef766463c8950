"""Indexed content of stored items: text entries and texts to embed, also of memories and document chunks.

Archived memories are not indexed.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Entity, Store, StoredExchange, StoredObservation, StoredVector
from ...archiver.store.change_log import CONTEXT_EXCHANGES, PARTS_MAX, PROMPT
from ...core.conversation import Exchange, Kind, Session, Speaker, Turn
from ...core.document import ChunkKind, StoredChunk
from ...core.memory import Memory, MemoryState, StoredMemory
from ...core.observation import Observation
from ...core.query import FIELDS, HitKind, IndexedItem, Role
from .text_index import TextEntry, indexed_value

WINDOW = 1_500
"""Maximum number of characters of an entry and of an embedded text."""
OVERLAP = 200
"""Number of characters shared by consecutive entries. A phrase up to this length is therefore within one entry."""
_MEMORY_WINDOWS = 32
_NAMES = 3
"""Number of times that the name of a unit of code is added to its indexed text, so that the name has more weight.

The added names raise the MRR of text search from 0.349 to 0.361 on CoSQA and from 0.613 to 0.644 on docstrings.
Embedded texts contain no added names, which would lower the MRR on CoSQA by 0.013 (bench/RESULTS.md).
"""


def standalone_entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """Yield the text entries of the memories and chunks among these items."""
    for memory in store.memories.load(keys).values():
        if memory.state is not MemoryState.ARCHIVED:
            yield from memory_entries(memory)
    for chunk in store.documents.load(keys).values():
        yield from _chunk_entries(chunk)


def standalone_texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """Map the key of each memory and chunk among these items to its texts to embed, by text number."""
    memories = {key: memory_parts(stored.memory) for key, stored in store.memories.load(keys).items()}
    chunks = store.documents.load(keys).items()
    return memories | {key: dict(enumerate(pieces(_chunk_text(chunk), WINDOW))) for key, chunk in chunks}


def memory_parts(memory: Memory) -> dict[int, str]:
    """Return the numbered texts to embed of a memory. Text 0 begins with the title."""
    return dict(enumerate(pieces(_memory_text(memory), WINDOW)))


def pieces(text: str, step: int) -> list[str]:
    """Split a text into pieces of at most `WINDOW` characters. Pieces begin `step` characters apart."""
    return [text[start : start + WINDOW] for start in range(0, max(min(1, len(text)), len(text) - WINDOW + step), step)]


def _memory_text(memory: Memory) -> str:
    text = f"{memory.title}\n{memory.content}" if memory.title else memory.content
    return text[: WINDOW * _MEMORY_WINDOWS]


def _chunk_text(stored: StoredChunk) -> str:
    chunk = stored.chunk
    return f"{chunk.header_path}\n{chunk.text}" if chunk.header_path else chunk.text


def memory_entries(stored: StoredMemory) -> Iterator[TextEntry]:
    """Yield the entries of a memory."""
    values = filter_values(IndexedItem(HitKind.MEMORY, memory=stored.memory))
    for text in pieces(_memory_text(stored.memory), WINDOW - OVERLAP):
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=0,
            ordinal=0,
            at=stored.created,
            start_line=0,
            end_line=0,
            body=text,
            values=values,
        )


def _chunk_entries(stored: StoredChunk) -> Iterator[TextEntry]:
    chunk = stored.chunk
    values = filter_values(IndexedItem(chunk.kind, chunk=stored))
    names = f"{chunk.name}\n" * (_NAMES if chunk.name else 0)
    for text in pieces(names + _chunk_text(stored), WINDOW - OVERLAP):
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=0,
            ordinal=0,
            at=stored.at,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            body=text,
            values=values,
            in_code=int(chunk.kind is ChunkKind.CODE),
        )


def filter_values(item: IndexedItem) -> dict[str, tuple[str, ...]]:
    """Return the distinct indexed values of an item for each filter that it has values for."""
    values, folder = dict[str, tuple[str, ...]](), item.folder
    for field in FIELDS.values():
        texts = (indexed_value(field, value, folder) for value in field.read(item) if value)
        if distinct := tuple(dict.fromkeys(filter(None, texts))):
            values[field.name] = distinct
    return values


_SHORT = 700
"""Minimum number of characters of an exchange that is indexed without preceding text.

A shorter exchange has an additional text entry. This entry begins with the end of the preceding exchanges and has about
this length.
"""
_INDEXED = {Kind.PROMPT, Kind.PROSE, Kind.THINKING, Kind.RECAP, Kind.CALL}
_EMBEDDED = {Kind.PROSE, Kind.RECAP}
"""Kinds of turns that are embedded beside the prompt. Thinking repeats what the prompt and the answer say: vectors of
it find nothing more (bench/RESULTS.md, "Vectors: rejected alternatives").
"""
_EMBEDDED_WINDOW = 1_000
"""Number of characters up to which consecutive messages share a vector. About the 256 tokens that the model reads."""
_ROLES = {Speaker.HUMAN: Role.HUMAN, Speaker.ASSISTANT: Role.ASSISTANT, Speaker.TOOL: Role.TOOL}
_SHORTEST = 40
"""Minimum length of an agent's message to embed, in characters. "Let me look." is not informative."""
_BATCH = 500


class TextWindow(Struct, frozen=True):
    """Text of consecutive turns, with its first and last line. `said` contains (role, text) pairs: the text by role."""

    text: str
    start_line: int
    end_line: int
    said: tuple[tuple[str, str], ...] = ()


def entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """Yield the text entries of these items. Items that no longer exist are skipped."""
    sessions: dict[int, Session] = {}
    for start in range(0, len(keys), _BATCH):
        part = keys[start : start + _BATCH]
        exchanges = store.exchanges.load(part)
        learned = store.observations.of_exchanges(list(exchanges))
        confirmed = store.confirmations.of_exchanges(list(exchanges))
        observations = store.observations.load(part)
        numbers = {stored.session for stored in exchanges.values()} | {
            stored.session for stored in observations.values()
        }
        for number in numbers - sessions.keys():
            sessions[number] = store.sessions.load(number)
        context = _Context(store, exchanges.values())
        for stored in exchanges.values():
            observed = [*learned.get(stored.key, []), *confirmed.get(stored.key, [])]
            said = [entry.observation for entry in observed]
            yield from exchange_entries(stored, said, sessions[stored.session], context.windows(stored))
        elsewhere = {stored.exchange for stored in observations.values()} - exchanges.keys()
        parents = exchanges | store.exchanges.load(sorted(elsewhere))
        for observation in observations.values():
            # Another process may have just removed the exchange and its observations.
            if observation.exchange in parents:
                yield observation_entry(observation, parents[observation.exchange], sessions[observation.session])
        yield from standalone_entries(store, [key for key in part if key not in exchanges and key not in observations])


def texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """Return the texts to embed of these items: for each item key, the texts by number.

    Text 0 of an exchange is the prompt. Its other texts are the agent's messages, of which short ones are joined. An
    observation has one text.
    """
    texts_by_item = {key: exchange_texts(stored.exchange) for key, stored in store.exchanges.load(keys).items()}
    for key, stored in store.observations.load(keys).items():
        texts_by_item[key] = {0: observation_text(stored.observation)}
    return texts_by_item | standalone_texts(store, keys)


def changed_vectors(store: Store, seq: int, model: str) -> tuple[set[int], list[StoredVector]]:
    """Return the items whose vectors of `model` changed after change number `seq`, and their current vectors.

    While items are re-embedded with a new model, vectors of the old model stay valid until the text changes.
    """
    added = store.vectors.of_items(model, store.changes.since(seq))
    return {*store.changes.since(seq, [Entity.ITEM]), *(vector.item for vector in added)}, added


def windows(exchange: Exchange) -> Iterator[TextWindow]:
    """Yield the text of an exchange in windows of at most `WINDOW` characters.

    Tool output is left out, except errors and user input.
    """
    held: list[tuple[str, str]] = []
    length, start, end = 0, 0, 0
    for turn in exchange.turns:
        if not _is_indexed(turn):
            continue
        for piece in pieces(turn.text, WINDOW - OVERLAP):
            if held and length + len(piece) > WINDOW:
                yield _window(held, start, end)
                held, length = [], 0
            start = start if held else turn.line
            held.append((_ROLES.get(turn.speaker, ""), piece))
            length, end = length + len(piece) + 1, turn.line
    if held:
        yield _window(held, start, end)


def entry_windows(store: Store, keys: Sequence[int], *, with_context: bool) -> Iterator[tuple[int, TextWindow]]:
    """Yield (item key, window) for the text of each entry of these items. Takes half the time of `entries`.

    Args:
        store: The archive.
        keys: Items.
        with_context: True to include the additional windows of short exchanges, which contain preceding text.
    """
    exchanges = store.exchanges.load(keys)
    context = _Context(store, exchanges.values())
    for stored in exchanges.values():
        own = context.windows(stored) if with_context else windows(stored.exchange)
        yield from ((stored.key, window) for window in own)
    learned = store.observations.load([key for key in keys if key not in exchanges])
    for key, lesson in learned.items():
        yield key, observation_window(lesson.observation)
    others = [key for key in keys if key not in exchanges and key not in learned]
    for entry in standalone_entries(store, others):
        yield entry.key, TextWindow(entry.body, entry.start_line, entry.end_line, entry.said)


def _window(held: Sequence[tuple[str, str]], start: int, end: int) -> TextWindow:
    said: dict[str, str] = {}
    for role, text in held:
        said[role] = f"{said[role]}\n{text}" if role in said else text
    said.pop("", None)
    return TextWindow("\n".join(text for _, text in held), start, end, tuple(said.items()))


def extended(own: Sequence[TextWindow], before: Iterable[str]) -> list[TextWindow]:
    """Return the windows of an exchange. A short exchange has an additional window with preceding text.

    Args:
        own: Windows of the exchange.
        before: Texts of the preceding exchanges, the nearest first, at most `CONTEXT_EXCHANGES`.
    """
    if len(own) != 1 or len(own[0].text) >= _SHORT:
        return [*own]
    text = own[0].text
    for said in before:
        text = f"{said[len(text) - _SHORT :]}\n{text}" if said else text
        if len(text) >= _SHORT:
            break
    return [*own, replace(own[0], text=text)] if text != own[0].text else [*own]


class _Context:
    """Windows of exchanges, extended by the text of preceding exchanges."""

    def __init__(self, store: Store, exchanges: Iterable[StoredExchange]) -> None:
        self._store = store
        self._known: dict[tuple[int, int], StoredExchange | None] = {
            (stored.source, stored.exchange.ordinal): stored for stored in exchanges
        }

    def windows(self, stored: StoredExchange) -> list[TextWindow]:
        """Return the windows of an exchange. A short exchange has an additional window with preceding text."""
        return extended(list(windows(stored.exchange)), self._before(stored))

    def _before(self, stored: StoredExchange) -> Iterator[str]:
        """Yield the texts of the preceding exchanges, the nearest first."""
        for back in range(1, CONTEXT_EXCHANGES + 1):
            before = self._at(stored.source, stored.exchange.ordinal - back)
            if before is None:
                return
            yield "\n".join(window.text for window in windows(before.exchange))

    def _at(self, source: int, ordinal: int) -> StoredExchange | None:
        if (source, ordinal) not in self._known:
            self._known[source, ordinal] = self._store.exchanges.at(source, ordinal)
        return self._known[source, ordinal]


def observation_text(observation: Observation) -> str:
    """Return the title, subtitle and narrative of an observation."""
    return "\n".join(part for part in (observation.title, observation.subtitle, observation.narrative) if part)


def _is_indexed(turn: Turn) -> bool:
    if turn.kind is Kind.RESULT:
        return turn.failed or turn.speaker is Speaker.HUMAN
    return turn.kind in _INDEXED


def exchange_texts(exchange: Exchange) -> dict[int, str]:
    """Return the texts to embed of an exchange, by number (see `texts`)."""
    said = list[str]()
    for turn in exchange.turns:
        if turn.kind not in _EMBEDDED or len(turn.text) < _SHORTEST:
            continue
        if said and len(said[-1]) + len(turn.text) < _EMBEDDED_WINDOW:
            said[-1] = f"{said[-1]}\n{turn.text}"
        else:
            said.append(turn.text)
    parts = dict(enumerate(said[-(PARTS_MAX - 1) :], 1))
    return {PROMPT: exchange.prompt, **parts} if exchange.prompt.strip() else parts


def exchange_entries(
    stored: StoredExchange, observations: Sequence[Observation], session: Session, parts: Iterable[TextWindow]
) -> Iterator[TextEntry]:
    """Yield the entries of an exchange, one per window, with the types and concepts of its observations."""
    exchange = stored.exchange
    values = filter_values(IndexedItem(HitKind.EXCHANGE, session, exchange, observations))
    for window in parts:
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=stored.source,
            ordinal=exchange.ordinal,
            at=exchange.started or 0,
            start_line=window.start_line,
            end_line=window.end_line,
            body=window.text,
            values=values,
            said=window.said,
        )


def observation_entry(stored: StoredObservation, parent: StoredExchange, session: Session) -> TextEntry:
    """Return the entry of an observation. `parent` is its exchange."""
    observation, window = stored.observation, observation_window(stored.observation)
    return TextEntry(
        key=stored.key,
        event=stored.exchange,
        source=parent.source,
        ordinal=parent.exchange.ordinal,
        at=observation.at or 0,
        start_line=window.start_line,
        end_line=window.end_line,
        body=window.text,
        values=filter_values(IndexedItem(HitKind.OBSERVATION, session, parent.exchange, (observation,))),
        said=window.said,
    )


def observation_window(observation: Observation) -> TextWindow:
    """Return the text of an observation with the lines of its evidence."""
    start, end = observation.lines or (0, 0)
    body = "\n".join((observation_text(observation), *observation.facts, " ".join(observation.concepts)))
    return TextWindow(body, start, end, ((observation.origin, body),) if observation.origin in set(Role) else ())
