"""Stored items as what can be found: text entries for the text index, texts for the embedder."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Entity, Store, StoredExchange, StoredObservation, StoredVector
from ...archiver.store.change_log import CONTEXT_EXCHANGES
from ...archiver.store.vector_table import PARTS_MAX, PROMPT
from ...core.conversation import Exchange, Kind, Session, Speaker, Turn
from ...core.observation import Observation
from ...core.origin import Origin
from ...core.query import Role
from ..query.tokenizer import label, path_label
from .text_entry import TextEntry

WINDOW = 1_500
"""Characters of conversation in one text entry (bench/RESULTS.md: the window that BM25 was measured with)."""
_ALONE = 700
"""An exchange of fewer characters leaves half of what it is about to what was said before it: it can also be found by
that much of both.
"""
_FOUND = {Kind.PROMPT, Kind.PROSE, Kind.THINKING, Kind.RECAP, Kind.CALL}
_MEANT = {Kind.PROSE, Kind.THINKING, Kind.RECAP}
_ROLES = {Speaker.HUMAN: Role.HUMAN, Speaker.ASSISTANT: Role.ASSISTANT, Speaker.TOOL: Role.TOOL}
_SHORTEST = 40
"""Prose of fewer characters ("Let me look.") is not worth a vector."""


class TextWindow(Struct, frozen=True):
    """A stretch of an exchange, at most `WINDOW` characters, and the lines it was said on."""

    text: str
    start_line: int
    end_line: int
    said: tuple[tuple[str, str], ...] = ()
    """Who said what of it: (role, text)."""


def entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """The text entries of these items; keys that no longer exist yield nothing."""
    sessions: dict[int, Session] = {}
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        exchanges = store.exchanges.load(part)
        learned = store.observations.of_exchanges(list(exchanges))
        again = store.confirmations.of_exchanges(list(exchanges))
        observations = store.observations.load(part)
        numbers = {one.session for one in exchanges.values()} | {one.session for one in observations.values()}
        for number in numbers - sessions.keys():
            sessions[number] = store.sessions.load(number)
        told = _Told(store, exchanges.values())
        for stored in exchanges.values():
            taught = [*learned.get(stored.key, []), *again.get(stored.key, [])]
            yield from _exchange_entries(stored, taught, sessions[stored.session], told)
        elsewhere = {one.exchange for one in observations.values()} - exchanges.keys()
        parents = exchanges | store.exchanges.load(sorted(elsewhere))
        for observation in observations.values():
            # An exchange that another process removes just now takes its observations with it.
            if observation.exchange in parents:
                yield _observation_entry(observation, parents[observation.exchange], sessions[observation.session])
        yield from _other_entries(store, [key for key in part if key not in exchanges and key not in observations])


def _other_entries(store: Store, keys: Sequence[int]) -> Iterator[TextEntry]:
    """Those of memories and of chunks of documents."""
    if keys:
        from . import (
            chunk_texts,  # a search that builds nothing needs neither
            memory_texts,  # a search that builds nothing needs neither
        )

        yield from memory_texts.entries(store, keys)
        yield from chunk_texts.entries(store, keys)


def texts(store: Store, keys: Sequence[int]) -> dict[int, dict[int, str]]:
    """What to embed for each of these items, by part.

    Part 0 of an exchange is what the person asked: their own words are the best key to what they half remember.
    Then come the paragraphs of prose and thinking; an observation has one part.
    """
    found = {key: _exchange_texts(stored.exchange) for key, stored in store.exchanges.load(keys).items()}
    for key, stored in store.observations.load(keys).items():
        found[key] = {0: observation_text(stored.observation)}
    from . import chunk_texts, memory_texts

    return found | memory_texts.texts(store, keys) | chunk_texts.texts(store, keys)


def moved_vectors(store: Store, seq: int, model: str) -> tuple[set[int], list[StoredVector]]:
    """What changed after `seq`: the items whose vectors of this model no longer hold, and the vectors that do now.

    While another model embeds everything anew, items keep their old vectors until their text changes.
    """
    added = store.vectors.of_items(model, store.changes.since(seq))
    return {*store.changes.since(seq, [Entity.ITEM]), *(vector.item for vector in added)}, added


def windows(exchange: Exchange) -> Iterator[TextWindow]:
    """The exchange's conversation in stretches; what tools printed is left out unless it is an error."""
    held: list[tuple[str, str]] = []
    length, start, end = 0, 0, 0
    for turn in exchange.turns:
        if not _worth_finding(turn):
            continue
        for piece in _pieces(turn.text):
            if held and length + len(piece) > WINDOW:
                yield _window(held, start, end)
                held, length = [], 0
            start = start if held else turn.line
            held.append((_ROLES.get(turn.speaker, ""), piece))
            length, end = length + len(piece) + 1, turn.line
    if held:
        yield _window(held, start, end)


def unlabelled(store: Store, keys: Sequence[int], *, borrowed: bool) -> Iterator[tuple[int, TextWindow]]:
    """What stands in the entries of each of these items: (key, window). Takes half as long as making entries. What a
    short exchange has of those before it is in a window only where what is `borrowed` is wanted.
    """
    exchanges = store.exchanges.load(keys)
    told = _Told(store, exchanges.values())
    for stored in exchanges.values():
        own = told.windows(stored) if borrowed else windows(stored.exchange)
        yield from ((stored.key, window) for window in own)
    learned = store.observations.load([key for key in keys if key not in exchanges])
    for key, one in learned.items():
        yield key, _observation_window(one.observation)
    for entry in _other_entries(store, [key for key in keys if key not in exchanges and key not in learned]):
        yield entry.key, TextWindow(entry.body, entry.start_line, entry.end_line, entry.said)


def around_cuts(store: Store, keys: Sequence[int], reach: int, roles: Sequence[str] = ()) -> Iterator[tuple[int, str]]:
    """Of each of these items what stands so many characters before and after each place where it was cut, with the
    whole words there unless they are longer than that: (key, text). Of exchanges what these roles said, if some are
    given.
    """
    from . import chunk_texts, memory_texts

    turns = store.exchanges.long_turns(keys, WINDOW)
    said = (each for each in turns if not roles or _ROLES.get(each[1].speaker) in roles)
    held = memory_texts.texts(store, keys) | chunk_texts.texts(store, keys)
    told = ((key, "".join(parts.values())) for key, parts in held.items())
    for key, text in chain(((key, turn.text) for key, turn in said if _worth_finding(turn)), told):
        for cut in range(WINDOW, len(text), WINDOW):
            start, end = max(0, cut - reach), cut + reach
            before, after = text[max(0, start - reach) : start], text[end : end + reach]
            yield key, f"{before.split(' ')[-1]}{text[start:end]}{after.split(' ')[0]}"


def _window(held: Sequence[tuple[str, str]], start: int, end: int) -> TextWindow:
    """One window of what was said, in order."""
    said: dict[str, str] = {}
    for role, text in held:
        said[role] = f"{said[role]}\n{text}" if role in said else text
    said.pop("", None)
    return TextWindow("\n".join(text for _, text in held), start, end, tuple(said.items()))


class _Told:
    """What exchanges say, and what was said before them."""

    def __init__(self, store: Store, exchanges: Iterable[StoredExchange]) -> None:
        self._store = store
        self._known: dict[tuple[int, int], StoredExchange | None] = {
            (each.source, each.exchange.ordinal): each for each in exchanges
        }

    def windows(self, stored: StoredExchange) -> list[TextWindow]:
        """The exchange's windows and, when it is short, one more with what was said before it."""
        own = list(windows(stored.exchange))
        if len(own) != 1 or len(own[0].text) >= _ALONE:
            return own
        text = own[0].text
        for back in range(1, CONTEXT_EXCHANGES + 1):
            before = self._at(stored.source, stored.exchange.ordinal - back)
            if before is None or len(text) >= _ALONE:
                break
            said = "\n".join(window.text for window in windows(before.exchange))
            text = f"{said[len(text) - _ALONE :]}\n{text}" if said else text
        return [*own, replace(own[0], text=text)] if text != own[0].text else own

    def _at(self, source: int, ordinal: int) -> StoredExchange | None:
        if (source, ordinal) not in self._known:
            self._known[source, ordinal] = self._store.exchanges.at(source, ordinal)
        return self._known[source, ordinal]


def observation_text(observation: Observation) -> str:
    """What an observation says, without its facts: title, subtitle, narrative."""
    return "\n".join(part for part in (observation.title, observation.subtitle, observation.narrative) if part)


def _worth_finding(turn: Turn) -> bool:
    if turn.kind is Kind.RESULT:
        return turn.failed or turn.speaker is Speaker.HUMAN
    return turn.kind in _FOUND


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), WINDOW):
        yield text[start : start + WINDOW]


def _exchange_texts(exchange: Exchange) -> dict[int, str]:
    said = [turn.text for turn in exchange.turns if turn.kind in _MEANT and len(turn.text) >= _SHORTEST]
    parts = dict(enumerate(said[-(PARTS_MAX - 1) :], 1))
    return {PROMPT: exchange.prompt, **parts} if exchange.prompt.strip() else parts


def _exchange_entries(
    stored: StoredExchange, taught: Sequence[StoredObservation], session: Session, told: _Told
) -> Iterator[TextEntry]:
    """With the types and concepts of what was learned from the exchange, and of what it said again."""
    exchange = stored.exchange
    observations = [entry.observation for entry in taught]
    types = tuple(dict.fromkeys(str(observation.type) for observation in observations))
    concepts = _labels(concept for observation in observations for concept in observation.concepts)
    files = _paths([*exchange.reads, *exchange.writes], exchange.cwd or session.cwd)
    projects, sessions = _labels((session.project, session.cwd)), _labels((session.native_id,))
    branches, agents = _labels((exchange.branch or session.branch,)), _labels((session.agent,))
    origin = Origin.HUMAN if exchange.prompt else Origin.ASSISTANT
    for window in told.windows(stored):
        yield TextEntry(
            key=stored.key,
            event=stored.key,
            source=stored.source,
            ordinal=exchange.ordinal,
            at=exchange.started or 0,
            start_line=window.start_line,
            end_line=window.end_line,
            body=window.text,
            types=types,
            concepts=concepts,
            files=files,
            projects=projects,
            sessions=sessions,
            branches=branches,
            agents=agents,
            origins=(origin,),
            said=window.said,
        )


def _observation_entry(stored: StoredObservation, parent: StoredExchange, session: Session) -> TextEntry:
    observation, window = stored.observation, _observation_window(stored.observation)
    return TextEntry(
        key=stored.key,
        event=stored.exchange,
        source=parent.source,
        ordinal=parent.exchange.ordinal,
        at=observation.at or 0,
        start_line=window.start_line,
        end_line=window.end_line,
        body=window.text,
        kind="observation",
        types=(str(observation.type),),
        concepts=_labels(observation.concepts),
        files=_paths([*observation.files_read, *observation.files_modified], session.cwd),
        projects=_labels((session.project, session.cwd)),
        sessions=_labels((session.native_id,)),
        branches=_labels((parent.exchange.branch or session.branch,)),
        agents=_labels((session.agent,)),
        origins=(observation.origin,),
        said=window.said,
    )


def _observation_window(observation: Observation) -> TextWindow:
    """All of what was learned, as its entry says it."""
    start, end = observation.lines or (0, 0)
    body = "\n".join((observation_text(observation), *observation.facts, " ".join(observation.concepts)))
    return TextWindow(body, start, end, ((observation.origin, body),) if observation.origin in set(Role) else ())


def _labels(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label(value) for value in values if value))


def _paths(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path_label(path, folder) for path in paths if path))
