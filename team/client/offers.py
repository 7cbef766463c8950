"""What leaves this machine: the items that the levels let out, in the form in which they leave.

| Item | Leaves at the level `team` | Stays |
| --- | --- | --- |
| session | agent, title, model, branch, times | folder, links |
| exchange | prompts, answers, calls, outputs as archived | thinking, injected texts, abandoned turns |
| vectors | of a prompt, of the last two answers, of an observation, of a memory | of other answers |
| observation, session card | as stored | cards of sessions of which something stays |
| memory | golden rules of the project, chosen memories | metadata, file, session |

At the level `raw`, a full copy of each exchange leaves too: all turns that its archived lines contain, also thinking,
injected texts and abandoned turns, with complete outputs. Images and other attached data stay.

The use of tokens by day leaves at the level `metrics` too. Sub-agents' conversations, documents, and everything in a
private project stay. Secrets and home folders are removed from every text. An exchange stays if its folder belongs to
another project that is not shared.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path, PurePath
from typing import Final, NamedTuple
from uuid import UUID, uuid5

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ...archiver.redaction import VERSION as RULES
from ...archiver.redaction import MemoryRedactor, Redactor
from ...archiver.store import FINDING_PREFIX, Store, StoredExchange, StoredObservation
from ...archiver.store.change_log import PROMPT
from ...archiver.store.team_table import Choices, Membership, Offer, Offered
from ...core.conversation import Exchange, Kind, Session, SessionKind, Turn
from ...core.errors import CopyDamaged, InvalidInput, InvalidNamespace
from ...core.memory import GOLDEN_RULE, MemoryState, StoredMemory
from ...observe.archive import Archive
from ...observe.llm.model_settings import PrivateProjects
from ...observe.session_share import Scrubber
from ...observe.transcript.session_views import SessionViews
from ...observe.transcript.transcript_pages import heading_of
from ...search.index.indexed_texts import exchange_texts
from ...search.model.embedder import DEFAULT_MODEL, load
from ..protocol import BYTES_MAX, OUTPUT_MAX, ItemKind, Level, SharedItem, SharedProject, SharedVector, UsageDay
from .places import Place, Places
from .usage_days import usage_days

_VERSION: Final = 1
"""Version of the form of the items. A new one lets everything be compared, and what differs be sent."""
_SPOKEN: Final = frozenset({Kind.PROMPT, Kind.PROSE, Kind.CALL, Kind.RESULT})
SESSION: Final = "session:"
"""Prefix of the units of sessions."""
MEMORIES: Final = "memories"
USAGE: Final = "usage"


_ANSWERS: Final = 2
"""Number of answers of an exchange whose vectors leave, from the last one. On questions about the samples, hit@5 is
0.813 with the vectors of two answers, 0.783 with none, and 0.814 in a search on this machine, which has all vectors.
"""


class StaysHere(Exception):
    """Signal: a full copy cannot be made or is too long, for this reason."""


class SharedContent(NamedTuple):
    """Content of an item before secrets are removed, with its place. `parts` numbers the texts whose vectors leave.

    A full copy is read only when it is sent, so its `value` is None.
    """

    offer: Offer
    project: SharedProject
    value: object
    session: str = ""
    event: str = ""
    at: int | None = None
    path: str = ""
    key: int | None = None
    parts: tuple[int, ...] = (PROMPT,)


class Offers:
    """Items of an archive that its levels let out at the moment. Create a new instance for each run."""

    def __init__(self, archive: Archive, membership: Membership, choices: Choices | None = None) -> None:
        """Read the settings, and without `choices` the stored ones.

        The IDs of items are derived from the person of the membership.
        """
        config, self._archive = archive.config, archive
        self._store: Store = archive.store
        self._person, self._device = membership.person, membership.device
        self.model = load(config.model or DEFAULT_MODEL).name
        redactor = Redactor(archive.home.key())
        self.scrubber = Scrubber(redactor, Path.home())
        self._memory_redactor = MemoryRedactor(redactor)
        self._private = PrivateProjects(self._store, config.private_projects)
        self._private_setting = config.private_projects
        self._choices = choices or self._store.team.choices()
        self.places = Places(self._store, self._person, config.private_projects, self._choices.levels)
        self._last: tuple[str, dict[str, SharedContent]] = ("", {})
        self._views = SessionViews(archive.home, self._store)
        self._built: tuple[Offered | None, tuple[SharedItem, str] | None] = (None, None)

    @property
    def rules(self) -> str:
        """Value that changes if all items have to be compared with what was sent."""
        return _digest((_VERSION, RULES, self.model, str(Path.home()), self._device))

    @property
    def places_state(self) -> str:
        """Value that changes if other items may leave."""
        places = [(*pair, place.level, place.project.id) for pair, place in self.places.of_all_sessions().items()]
        return _digest((places, sorted(self._choices.memories), self._private_setting, self._choices.levels))

    def units(self) -> Iterator[str]:
        """Yield the units of all sessions, and those of memories and of usage."""
        yield MEMORIES
        yield USAGE
        for number in self._store.sessions.all():
            yield f"{SESSION}{number}"

    def of_unit(self, unit: str) -> dict[str, SharedContent]:
        """Return what leaves of a unit, by the ID of the item."""
        if self._last[0] != unit:
            self._last = unit, {content.offer.id: content for content in self._contents(unit)}
        return self._last[1]

    def item(self, row: Offered) -> tuple[SharedItem, str] | None:
        """Return an offered item as it leaves, and a hash of all but its body, or None if it does not leave.

        Secrets and home folders are removed by the current rules.

        Raises:
            StaysHere: The item is a full copy that cannot be sent.
        """
        if self._built[0] != row:  # so that an item that begins the next batch counts once
            self._built = row, self._build(row)
        return self._built[1]

    def _build(self, row: Offered) -> tuple[SharedItem, str] | None:
        content = self.of_unit(row.unit).get(row.id)
        if content is None:
            return None
        value = self._full_copy(content.key or 0) if row.kind == ItemKind.RAW else content.value
        if value is None:
            return None
        body = msgspec.json.encode(self.scrubber.value(value))
        if row.kind == ItemKind.RAW and len(body) > BYTES_MAX:
            raise StaysHere(f"larger than {BYTES_MAX // 1_000_000} MB")
        project = SharedProject(content.project.id, self.scrubber.text(content.project.name))
        path = self.scrubber.text(content.path)
        vectors = self._vectors(content)
        item = SharedItem(
            row.id, ItemKind(row.kind), row.seq, project, sha256(body).hexdigest(), Raw(body), content.session,
            content.event, content.at, path, vectors,
        )  # fmt: skip
        return item, _digest((project, content.session, content.event, content.at, path, vectors))

    def stays(self, identity: str | None = None) -> dict[str, int]:
        """Return how many exchanges stay here, by reason, of all projects or of the one with this identity."""
        reasons = Counter[str]()
        for number, session in self._store.sessions.all().items():
            if identity is not None and self.places.of_session(session).identity != identity:
                continue
            reason = self._why_session_stays(session)
            if reason:
                kinds = self._store.items.kinds(self._store.items.of_sessions([number]))
                reasons[reason] += sum(kind == ItemKind.EXCHANGE for kind in kinds.values())
            else:
                for stored in self._exchanges(number):
                    reasons[self._why_exchange_stays(stored, self.places.of_session(session))] += 1
        reasons.pop("", None)
        return dict(reasons.most_common())

    # Contents.

    def _contents(self, unit: str) -> Iterator[SharedContent]:
        if unit == MEMORIES:
            yield from self._memories()
        elif unit == USAGE:
            yield from self._usage()
        elif unit.startswith(SESSION):
            number = int(unit.removeprefix(SESSION))
            session = self._store.sessions.several([number]).get(number)
            if session is not None and not self._why_session_stays(session):
                yield from self._conversation(unit, number, session)

    def _why_session_stays(self, session: Session) -> str:
        place = self.places.of_session(session)
        if place.level is Level.PRIVATE:
            return "private project"
        if place.level is Level.METRICS:
            return "only metrics are shared"
        return "sub-agent" if session.kind is SessionKind.SUBAGENT else ""

    def _why_exchange_stays(self, stored: StoredExchange, place: Place) -> str:
        if self._private.includes(stored):
            return "private project"
        folder = stored.exchange.cwd
        worked_in = self.places.of_folder(folder) if folder else place
        is_hidden = worked_in.identity != place.identity and not worked_in.level.shows_conversations
        return f"folder of another project: {worked_in.folder}" if is_hidden else ""

    def _has_full_copy(self, exchange: Exchange, place: Place) -> bool:
        """Return whether the level of the project, and that of the folder of an exchange, let out its full copy."""
        places = [place, *([self.places.of_folder(exchange.cwd)] if exchange.cwd else [])]
        return all(project.level is Level.RAW for project in places)

    def _exchanges(self, number: int) -> list[StoredExchange]:
        kinds = self._store.items.kinds(self._store.items.of_sessions([number]))
        keys = [key for key, kind in kinds.items() if kind == ItemKind.EXCHANGE]
        return sorted(self._store.exchanges.load(keys).values(), key=lambda stored: stored.key)

    def _conversation(self, unit: str, number: int, session: Session) -> Iterator[SharedContent]:
        """Yield the session, its exchanges, observations and card, unless all its exchanges stay."""
        place, stored = self.places.of_session(session), self._exchanges(number)
        shared = [entry for entry in stored if not self._why_exchange_stays(entry, place)]
        if not shared:
            return
        is_whole = len(shared) == len(stored)
        own = self._id("session", session.agent, session.scope, session.native_id)
        label = self._store.session_labels.of([number])
        title = label[number].title if number in label else ""
        if not title:
            title = session.title if is_whole else heading_of(shared[0].exchange)
        header = replace(session, parent_id="", project=place.project.name, cwd="", links={}, title=title, title_rank=0)
        offer = Offer(own, unit, None, ItemKind.SESSION, place.project.id, place.level)
        yield SharedContent(offer, place.project, header, own, own, session.started)
        locations = self._store.exchanges.locations([entry.key for entry in shared])
        for entry in shared:
            exchange, name = entry.exchange, PurePath(locations[entry.key].path).name
            first = exchange.turns[0].record if exchange.turns else ""
            event = self._id("exchange", own, first or name, str(exchange.span.start_line))
            offer = Offer(event, unit, entry.key, ItemKind.EXCHANGE, place.project.id, place.level)
            said = _shared_exchange(exchange)
            parts = _shared_parts(exchange, said)
            content = SharedContent(offer, place.project, said, own, event, exchange.started, name, entry.key, parts)
            yield content
            if self._has_full_copy(exchange, place):
                copy = offer._replace(id=self._id("raw", event), kind=ItemKind.RAW)
                yield content._replace(offer=copy, value=None, parts=())
            for learned in self._store.observations.of_exchange(entry.key):
                if is_whole or not (learned.summary or learned.observation.extractor.startswith(FINDING_PREFIX)):
                    yield self._observation(learned, unit, place, own, event, name)

    def _full_copy(self, key: int) -> Exchange | None:
        """Return an exchange as its archived lines state it, without its folder, or None if it was deleted meanwhile.

        Raises:
            StaysHere: The archived lines cannot be read.
        """
        stored = self._store.exchanges.load([key]).get(key)
        location = self._store.exchanges.locations([key]).get(key)
        if stored is None or location is None:
            return None
        span = stored.exchange.span
        try:
            exchanges = self._views.reader.whole(location.path, span.start_line, span.end_line)
        except (CopyDamaged, InvalidInput):
            exchanges = []
        for exchange in exchanges:
            if exchange.span == span:
                relative = _relative_to(exchange.cwd)
                turns = tuple(_with_paths(turn, relative) for turn in exchange.turns)
                return replace(exchange, turns=turns, cwd="")
        raise StaysHere("its archived lines cannot be read")

    def _observation(
        self, stored: StoredObservation, unit: str, place: Place, session: str, event: str, path: str
    ) -> SharedContent:
        observation = stored.observation
        if stored.summary:
            own = self._id("card", session)
        else:
            first = observation.evidence[0].start_line if observation.evidence else 0
            own = self._id("observation", event, observation.type, observation.title, str(first))
        offer = Offer(own, unit, stored.key, ItemKind.OBSERVATION, place.project.id, place.level)
        return SharedContent(offer, place.project, observation, session, event, observation.at, path, stored.key)

    def _memories(self) -> Iterator[SharedContent]:
        """Yield golden rules of projects at the level `team`, and memories that the user chose."""
        chosen, namespaces = self._choices.memories, self.places.namespaces()
        if not (chosen or namespaces):
            return
        for stored in self._store.memories.all():
            memory = stored.memory
            is_rule = memory.type == GOLDEN_RULE and memory.namespace in namespaces
            if (stored.key in chosen or is_rule) and not self.why_memory_stays(stored):
                place = namespaces.get(memory.namespace)
                project = place.project if place else self.places.own(memory.namespace.rpartition(":")[2])
                plain = replace(memory, project=project.name, session_id="", path="", metadata={})
                try:
                    clean = self._memory_redactor.memory(plain)
                except InvalidNamespace:
                    continue
                own = self._id("memory", memory.namespace, stored.family, memory.content_hash)
                offer = Offer(own, MEMORIES, stored.key, ItemKind.MEMORY, project.id, Level.TEAM)
                yield SharedContent(offer, project, clean, "", own, stored.created, "", stored.key)

    def why_memory_stays(self, stored: StoredMemory) -> str:
        """Return why a memory cannot leave, or an empty text."""
        if stored.state is not MemoryState.ACTIVE:
            return f"it is {stored.state}"
        if stored.memory.layer == 1:
            return "it belongs to one session"
        return "its project is in private_projects" if self._private.includes_memory(stored.memory) else ""

    def _usage(self) -> Iterator[SharedContent]:
        for project, level, day in self._usage_days:
            own = self._id("usage", self._device, project.id, day.day, day.agent, day.model)
            yield SharedContent(Offer(own, USAGE, None, ItemKind.USAGE, project.id, level), project, day, "", own)

    @cached_property
    def _usage_days(self) -> list[tuple[SharedProject, Level, UsageDay]]:
        return [*usage_days(self._archive, self.places)]

    def _vectors(self, content: SharedContent) -> tuple[SharedVector, ...]:
        """Return the vectors of an item that leave."""
        if content.key is None:
            return ()
        return tuple(
            SharedVector(vector.part, b64encode(vector.data).decode(), b64encode(vector.token_bits).decode())
            for vector in self._store.vectors.of_items(self.model, [content.key])
            if vector.part in content.parts
        )

    def _id(self, *names: str) -> str:
        """Return the ID of an item of this person. All machines of the person give an item the same ID."""
        return str(uuid5(UUID(self._person), "\n".join(names)))


def _shared_exchange(exchange: Exchange) -> Exchange:
    """Return an exchange without its folder, and without turns that stay.

    Archived outputs have their beginning and end only. Their length is limited in any case.
    """
    relative = _relative_to(exchange.cwd)
    turns = tuple(_shared_turn(turn, relative) for turn in exchange.active_turns if turn.kind in _SPOKEN)
    return replace(exchange, turns=turns, cwd="")


def _shared_parts(exchange: Exchange, shared: Exchange) -> tuple[int, ...]:
    """Return the numbers of the texts whose vectors leave: prompt and last answers, unless a part of the text stays."""
    leaving = {*exchange_texts(shared).values()}
    parts = [part for part, text in exchange_texts(exchange).items() if text in leaving]
    return (*(part for part in parts if part == PROMPT), *[part for part in parts if part != PROMPT][-_ANSWERS:])


def _shared_turn(turn: Turn, relative: Callable[[str], str]) -> Turn:
    text = turn.text[:OUTPUT_MAX] if turn.kind is Kind.RESULT else turn.text
    return _with_paths(turn._replace(text=text), relative)


def _with_paths(turn: Turn, relative: Callable[[str], str]) -> Turn:
    return turn._replace(reads=tuple(map(relative, turn.reads)), writes=tuple(map(relative, turn.writes)))


def _relative_to(folder: str) -> Callable[[str], str]:
    """Return a function that removes a folder from the beginning of a path."""
    start = f"{folder.rstrip('/')}/"
    return lambda path: path.removeprefix(start) if folder else path


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()
