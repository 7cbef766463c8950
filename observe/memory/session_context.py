"""Context for a new session: memories and the digest of the project's past sessions, within a token budget.

The digest lists decisions in force, the last sessions, and the files they modified. Only observations of trusted
origin are used. The weight of a session depends on its place among the latest sessions of the project, not on its
age. Therefore, a project that was inactive for months still has a digest.

The last session of a folder or a branch has a title, open items and next steps.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import content_hash
from ...archiver.store import Store, StoredObservation
from ...archiver.store.exchange_table import FileState
from ...core import ids
from ...core.conversation import Milliseconds, Origin, Session, Trust, now
from ...core.errors import InvalidInput
from ...core.home import branch_of
from ...core.memory import (
    ACTIVE,
    GOLDEN_RULE,
    PROJECT,
    Family,
    MemoryFilter,
    MemoryOrder,
    StoredMemory,
    project_namespace,
)
from ...core.observation import OPEN, SUMMARY, Observation, ObservationType, is_open_item
from ...core.results import DigestLine, DigestSection
from ...core.text import truncate
from ...core.tokens import count
from ..rules.salience import QUESTION_WORDS
from .contradictions import contradicting

DECISIONS_TITLE, SESSIONS_TITLE, FILES_TITLE = "Decisions in Force", "Last Sessions", "Files They Modified"
_DIGEST_SESSIONS = 60
"""Number of latest sessions that are considered."""
_SHOWN = 3
"""Maximum lines under a heading."""
_HALF_LIFE = 16
"""Number of later sessions after which the weight of a session is halved. In tests, 4 and 8 gave equal results."""
_LATEST, _FIRST = 3, 100.0
"""Number of latest sessions that are always listed, and the weight that ranks them before all others."""
_SHARED_FILE = 0.03
"""Factor by which the highest weight of the files of a session is added to the weight of the session."""
_OPEN, _OUTCOME = ("Next", "Open"), ("Outcome", "Completed")
"""Labels of facts in a session summary: labels of open work, then labels of finished work."""
_REPEATED, _GONE = 0.25, 0.25
"""Changes of the weight of a decision: increase for each repetition, and factor if none of the cited files exists."""
_REPETITIONS_MAX = 4
_ASKED = 0.5
"""Factor of the weight of a session of which only the request is known."""
_ANSWER = " → "
"""Separator of question and answer in the text of a decision."""
_QUESTION_MAX, _ANSWER_MAX = 160, 60
"""Maximum characters of a shown question, and of an answer that is a choice."""
_UNNAMED = re.compile(r"(?:both|either|all|neither|none|yes|no|done|hybrid|\w)\W*", re.IGNORECASE)
"""Pattern for answers that only the listed options explain."""
_OF_SESSION = re.compile(
    r"""\A(?:(?:would|do|can|could|did)\ you|(?:shall|should|may)\ i|more\ questions|what\ next)\b
    |\b(?:me\ to|are\ we\ done)\b
    |\A(?:[a-z]+\ )?(?:should|does|do|is|are|can|will)\ (?:it|this|that|these|those|they)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for questions about the work of the session, and about a subject that only the session names."""
_WORD = re.compile(r"\w{4,}")
_NO_TOPIC = re.compile(
    rf"""\W*(?:[\w.]*(?:error|exception|warning)|fatal|panic)(?:\[\w+\])?:|\W*traceback\b|/|.*\?\s*\Z
    |(?:{QUESTION_WORDS}|is|are|does|did|can|could|should|would|will)\b
    |(?:i|we|you|it|this|that|these|there|looks?\ like)\b
    |do\ (?:i|we|you|they)\b|\w+\ (?:at\ )?(?:this|these|the\ following)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for texts that do not say what a session was about: questions, error messages, slash commands, reports in
the first person, and requests such as `Review this PR`."""
_OUTSIDE = re.compile(r"(?:[A-Za-z]:)?[/\\]|~")
"""Pattern for the prefix of a path outside the project. Paths within the project are relative."""


class _Past(Struct, frozen=True):
    """Past session with its trusted observations. `weight` is higher for later sessions.

    `title` is the title that the agent gave to the session, or empty. If the session also has observations of low
    trust, the title could come from them, so `title` is the first request instead. `request` is the first request of a
    session without trusted observations, and otherwise None.
    """

    title: str
    cwd: str
    request: DigestLine | None
    summary: StoredObservation | None
    parts: tuple[StoredObservation, ...]
    weight: float


class ProjectDigests:
    """Digests of the projects in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def select(
        self,
        namespace: str | None,
        query: str = "",
        *,
        namesakes: bool = False,
    ) -> tuple[DigestSection, ...]:
        """Return the digest of the project with this namespace. The digest is empty if the project has no sessions.

        Lines with words of the query come first. Without a query, lines of the latest sessions come first. With
        `namesakes`, the digest covers every folder with the name of the project.
        """
        is_project = namespace and namespace.startswith(PROJECT)
        past = self._past(namespace, namesakes=namesakes) if namespace and is_project else []
        if not past:
            return ()
        words, weight_of = _words([query]), _file_weights(past)
        changes = _FileChanges(self._store, past)
        root = next((session.cwd for session in past if session.cwd and _exists(session.cwd)), "")
        sections = (
            DigestSection(DECISIONS_TITLE, _best(self._decisions(past, root, changes), words)),
            DigestSection(SESSIONS_TITLE, _best(_sessions(past, weight_of, changes, first=not words), words)),
            DigestSection(FILES_TITLE, _best(_files(past, weight_of, root), words)),
        )
        return tuple(section for section in sections if section.lines)

    def _past(self, namespace: str, *, namesakes: bool) -> list[_Past]:
        """Return the latest sessions of a project that have trusted observations or a request, newest first."""
        places = {
            location
            for location in self._store.sessions.projects()
            if (namesakes and project_namespace(location[0]) == namespace)
            or _contains(self._store, namespace, *location)
        }
        sessions = self._store.sessions.latest(places, _DIGEST_SESSIONS)
        by_session = self._store.observations.of_sessions(list(sessions))
        past: list[_Past] = []
        for number, session in sessions.items():
            observations = by_session.get(number, [])
            trusted = [stored for stored in observations if Origin(stored.observation.origin).trust > Trust.LOW]
            is_clean = bool(trusted) and len(trusted) == len(observations)
            request = None if is_clean else self._first_request(number)
            if trusted or request:
                own = session.title if session.title_rank > 0 else ""
                title = own if is_clean else request.text if request else ""
                summary = next((stored for stored in trusted if stored.summary), None)
                parts = tuple(stored for stored in trusted if not stored.summary)
                weight = 0.5 ** (len(past) / _HALF_LIFE)
                past.append(_Past(title, session.cwd, None if trusted else request, summary, parts, weight))
        return past

    def _first_request(self, session: int) -> DigestLine | None:
        """Return the user's first request. Return None if it is unknown or has no content, such as `go on`."""
        from ..rules.user_request import read_request  # compiles the patterns of all languages

        for stored in self._store.exchanges.load(self._store.summaries.conversation(session)[:1]).values():
            request = read_request(stored.exchange)
            if request.human and request.title and not request.routine:
                return DigestLine(
                    ids.show("exchange", stored.key), request.title, stored.exchange.started, Origin.HUMAN
                )
        return None

    def _decisions(
        self, past: Sequence[_Past], root: str, changes: "_FileChanges"
    ) -> Iterator[tuple[float, DigestLine]]:
        """Yield the decisions in force, each with its weight. For each question, only the newest answer is in force."""
        repeated = self._store.confirmations.of_observations(
            [stored.key for session in past for stored in session.parts]
        )
        decided: set[str] = set()
        for session in past:
            for stored in reversed(session.parts):
                observation = stored.observation
                if observation.type is not ObservationType.DECISION or observation.origin != Origin.HUMAN:
                    continue
                files = _cited(stored)
                gone = bool(root and files) and not any(_exists(root, path) for path in files)
                repetitions = min(len(repeated.get(stored.key, ())), _REPETITIONS_MAX)
                weight = session.weight * (1 + _REPEATED * repetitions) * (_GONE if gone else 1)
                for text in _decided(observation):
                    about = text.partition(_ANSWER)[0].casefold()
                    if about not in decided:
                        decided.add(about)
                        yield weight, _line(stored, _shortened(text), changed=changes.count(files, [stored]))


class _FileChanges:
    """Lookup of files that changed or were deleted after exchanges of past sessions."""

    def __init__(self, store: Store, past: Sequence[_Past]) -> None:
        exchanges = {stored.exchange for session in past for stored in session.parts}
        self._states = {
            exchange: {state.path: state for state in states}
            for exchange, states in store.file_states.of_exchanges(sorted(exchanges)).items()
        }
        self._key = store.home.key() if self._states else b""

    def count(self, files: Sequence[str], parts: Sequence[StoredObservation]) -> int:
        """Return how many files changed since the observations that cite them.

        If several observations cite a file, the newest one counts.
        """
        states = {path: self._states.get(stored.exchange, {}).get(path) for stored in parts for path in _cited(stored)}
        return sum(self._is_changed(states.get(path)) for path in files)

    def _is_changed(self, state: FileState | None) -> bool:
        current = None if state is None else content_hash(state.file, self._key)
        return state is not None and current is not None and current != state.hash


def _cited(stored: StoredObservation) -> tuple[str, ...]:
    return (*stored.observation.files_modified, *stored.observation.files_read)


def _sessions(
    past: Sequence[_Past], weight_of: Mapping[str, float], changes: _FileChanges, *, first: bool
) -> Iterator[tuple[float, DigestLine]]:
    """Yield the outcome and the open items of each session. Without an outcome, yield the user's request.

    `first` ranks the latest sessions before all others. Sessions without a text that names a topic are omitted.
    """
    for position, session in enumerate(past):
        rank = _FIRST - position if first and position < _LATEST else session.weight
        result = session.summary or _result(session.parts)
        if session.request and not _NO_TOPIC.match(session.request.text):
            yield rank if rank > 1 else rank * _ASKED, session.request
        elif result:
            shared = max((weight_of[path] for path in _modified(session)), default=0.0)
            titles = (_title(result), session.title) if result.summary else (session.title, _title(result))
            text = next((title for title in titles if title and not _NO_TOPIC.match(title)), "")
            if not text:
                continue
            yield (
                rank + _SHARED_FILE * shared,
                _line(result, text, _notes(result, text), changes.count(_cited(result), session.parts)),
            )


def _files(past: Sequence[_Past], weight_of: Mapping[str, float], root: str) -> Iterator[tuple[float, DigestLine]]:
    """Yield the modified files of the project, each with the newest observation that modified it."""
    sessions = Counter(path for session in past for path in set(_modified(session)))
    seen: set[str] = set()
    for session in past:
        for stored in reversed(session.parts):
            for path in stored.observation.files_modified:
                if path in seen or path not in weight_of or (root and not _exists(root, path)):
                    continue
                seen.add(path)
                times = sessions[path]
                yield weight_of[path], _line(stored, f"{path} ({times} sessions)" if times > 1 else path)


def _result(parts: Sequence[StoredObservation]) -> StoredObservation | None:
    """Return the last observation with modified files, or else the last observation.

    Decisions are ignored, because they are listed separately.
    """
    others = [stored for stored in parts if stored.observation.type is not ObservationType.DECISION]
    results = [stored for stored in others if stored.observation.files_modified]
    return next(reversed(results or others), None)


def _notes(result: StoredObservation, text: str) -> tuple[str, ...]:
    """Return the open items of a summary, and its last outcome unless it is already contained in the text."""
    facts = result.observation.facts if result.summary else (result.observation.title,)
    done = [fact for fact in facts if not result.summary or fact.startswith(_OUTCOME)][-1:]
    return (*(fact for fact in done if _adds(fact, text)), *(fact for fact in facts if fact.startswith(_OPEN)))


def _adds(note: str, text: str) -> bool:
    """Return whether at least half of the longer words of a note are not in the text."""
    words = _words([note])
    return 2 * len(words - _words([text])) >= max(1, len(words))


def _decided(decision: Observation) -> Iterator[str]:
    """Yield the choices and rulings of a decision that a reader understands alone.

    These are questions about the project that name their subject, with a short answer, which usually is an option of
    the agent. A longer answer discusses the question. A ruling has no question, so the title states it.
    """
    choices = [fact for fact in decision.facts if _ANSWER in fact]
    if not choices:
        yield decision.title
        return
    from ..rules.user_request import is_specific  # compiles the patterns of all languages

    for fact in choices:
        question, _, answer = fact.partition(_ANSWER)
        is_choice = len(answer) <= _ANSWER_MAX and "?" not in answer and not _UNNAMED.fullmatch(answer)
        is_asked = "?" in question and not _OF_SESSION.search(question)
        if is_choice and is_asked and is_specific(question):
            yield fact


def _shortened(text: str) -> str:
    question, arrow, answer = text.partition(_ANSWER)
    return f"{truncate(question, _QUESTION_MAX)}{arrow}{answer}" if arrow else text


def _title(stored: StoredObservation) -> str:
    return stored.observation.title.removeprefix(SUMMARY) if stored.summary else stored.observation.title


def _line(stored: StoredObservation, text: str, notes: tuple[str, ...] = (), changed: int = 0) -> DigestLine:
    observation, cited = stored.observation, len(_cited(stored))
    return DigestLine(
        ids.show("observation", stored.key), text, observation.at, observation.origin, notes, cited, changed
    )


def _modified(session: _Past) -> Iterator[str]:
    """Yield the files of the project that a session modified. Paths outside the project are absolute."""
    for stored in session.parts:
        yield from (path for path in stored.observation.files_modified if not _OUTSIDE.match(path))


def _file_weights(past: Iterable[_Past]) -> dict[str, float]:
    """Return for each modified file the sum of the weights of the sessions that modified it."""
    weights: dict[str, float] = {}
    for session in past:
        for path in set(_modified(session)):
            weights[path] = weights.get(path, 0.0) + session.weight
    return weights


def _best(ranked: Iterable[tuple[float, DigestLine]], words: set[str]) -> tuple[DigestLine, ...]:
    """Return distinct lines with the highest weight.

    Words of the query add weight. A word adds more if fewer lines contain it. If several lines have equal texts, such
    as repeated reviews, the first line is kept.
    """
    distinct: dict[str, tuple[float, DigestLine, set[str]]] = {}
    for weight, line in ranked:
        distinct.setdefault(line.all_text, (weight, line, words & _words([line.all_text])))
    lines = Counter(word for _, _, matched in distinct.values() for word in matched)
    scored = [(weight + sum(1 / lines[word] for word in matched), line) for weight, line, matched in distinct.values()]
    return tuple(line for _, line in sorted(scored, key=lambda pair: -pair[0])[:_SHOWN])


def _words(texts: Iterable[str]) -> set[str]:
    return {word.casefold() for text in texts for word in _WORD.findall(text)}


def _exists(*parts: str) -> bool:
    """Return whether a path exists. The result is False for an unreadable or overlong path."""
    try:
        return Path(*parts).exists()
    except OSError:
        return False


_LINE_TOKENS, _DIGEST_TOKENS = 15, 16
"""Estimated tokens that each line of a memory, and each line of a digest, needs besides its content."""
_IMPORTANT = 0.6
"""Minimum importance of a global preference that is added to the memories of a project."""
_RELATED, _CONTEXT_CANDIDATES = 5, 200
_TITLES = {
    Family.PREFERENCE: "Preferences",
    Family.DECISION: "Decisions",
    Family.PATTERN: "Patterns",
    Family.FACT: "Facts",
    Family.ISSUE: "Issues",
}
GOLDEN_TITLE = "Golden Rules (High Confidence)"
GLOBAL_NAMESPACES = ("global", "default")
"""Namespaces of memories that apply to every project."""


class ContextSection(Struct, frozen=True):
    """Memories under one heading, best first."""

    title: str
    memories: tuple[StoredMemory, ...]


class SessionContext(Struct, frozen=True):
    """Memories for a session, and lines about past sessions of the project (`digest`).

    `tokens` is the cost of the reply that contains this context. It never exceeds the budget. `left_out` and
    `omitted_lines` are the numbers of memories and of lines that did not fit. `contradictions` are pairs of IDs of
    included memories that contradict each other. `withheld` is the number of candidates that are never included: those
    with low trust, and those of all projects that the user neither wrote nor approved.
    """

    sections: tuple[ContextSection, ...]
    tokens: int
    left_out: int
    contradictions: tuple[tuple[str, str], ...] = ()
    digest: tuple[DigestSection, ...] = ()
    omitted_lines: int = 0
    withheld: int = 0

    @property
    def memories(self) -> int:
        """Number of memories in the context."""
        return sum(len(section.memories) for section in self.sections)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.sections or self.digest)

    @property
    def digest_lines(self) -> int:
        """Number of lines about past sessions in the context."""
        return sum(len(section.lines) for section in self.digest)

    @property
    def golden_rules(self) -> int:
        """Number of golden rules in the context."""
        return sum(_is_rule(stored) for section in self.sections for stored in section.memories)


class SessionContexts:
    """Selection of memories for sessions. Selected memories do not count as accessed."""

    def __init__(
        self,
        store: Store,
        recall: Callable[[str, MemoryFilter, int], list[StoredMemory]],
        clock: Callable[[], Milliseconds],
    ) -> None:
        """Create the selection. `recall` returns the best matches of a query: at most as many as its last argument."""
        self._store, self._recall, self._clock = store, recall, clock
        self._digests = ProjectDigests(store)

    def select(
        self,
        cost: Callable[[SessionContext], int],
        namespace: str | None = None,
        query: str = "",
        budget: int = 4_000,
        *,
        project: str | None = None,
        namesakes: bool = False,
        past: bool = True,
    ) -> SessionContext:
        """Return golden rules, then other memories of the namespace, then the digest of the project, within the budget.

        For a project, the context also includes two kinds of memories that apply to every project. These are golden
        rules, and memories in the user's own words that are decisions, important preferences, pinned, or matches of the
        query. Memories with low trust and session memories are omitted.

        With None as the namespace, the context contains only memories that apply to every project. With a query, it
        also contains matching facts and known issues. `cost` returns the tokens of the reply that contains a context.
        `project` is the namespace of the project whose past sessions are in the digest, by default `namespace`.
        `namesakes` includes the memories and sessions of every folder with the name of this project. Without
        `past`, the context has no digest.

        Raises:
            InvalidInput: The budget is below 1.
        """
        if budget < 1:
            raise InvalidInput(f"Invalid token budget: {budget}", hint="Give 1 or more tokens.")
        ranked, withheld = self._ranked(self._own(namespace, namesakes=namesakes), query)
        conflicts, estimated_max = contradicting(self._store, ranked), budget
        digest = self._digests.select(project or namespace, query, namesakes=namesakes) if past else ()
        while True:
            chosen = _with_digest(_fitting(ranked, conflicts, estimated_max), digest, estimated_max)
            chosen = replace(chosen, withheld=withheld)
            tokens = cost(chosen)
            if tokens <= budget or chosen.is_empty:
                return replace(chosen, tokens=0 if chosen.is_empty else tokens)
            estimated_max -= tokens - budget

    def _own(self, namespace: str | None, *, namesakes: bool) -> tuple[str, ...]:
        """Return the namespaces of the project, or no namespace for a session without a project."""
        if namespace is None:
            return ()
        if not namesakes:
            return (namespace,)
        return tuple(sorted(self._store.projects.namesakes(namespace.removeprefix(PROJECT))))

    def _ranked(self, own: Sequence[str], query: str) -> tuple[list[StoredMemory], int]:
        """Return the candidates, golden rules first, then memories that match the query, and the number withheld."""
        related = self._related(own, query) if query.strip() else {}
        candidates = {stored.key: stored for stored in chain(self._standard(own), related.values())}
        trusted = [
            stored
            for stored in candidates.values()
            if stored.memory.origin.trust > Trust.LOW
            and (not own or stored.memory.namespace in own or _is_from_user(stored))
        ]
        rules = [stored for stored in trusted if _is_rule(stored)]
        rules.sort(key=lambda stored: (-stored.stats.confidence, -stored.memory.importance, stored.key))
        others = [stored for stored in trusted if not _is_rule(stored) and stored.family is not Family.SESSION]
        others.sort(key=lambda stored: (stored.key not in related, -_weight(stored, own), -stored.updated))
        return [*rules, *others], len(candidates) - len(trusted)

    def _standard(self, own: Sequence[str]) -> Iterator[StoredMemory]:
        """Yield the candidates that are selected without a query. Duplicates are possible."""
        everywhere = (*own, *GLOBAL_NAMESPACES)
        yield from self._stored(MemoryFilter(namespaces=everywhere, types=(GOLDEN_RULE,)), MemoryOrder.CONFIDENCE)
        for stored in self._stored(MemoryFilter(namespaces=tuple(own) or GLOBAL_NAMESPACES), MemoryOrder.CREATED):
            if stored.family in {Family.PREFERENCE, Family.DECISION, Family.PATTERN}:
                yield stored
        yield from self._stored(MemoryFilter(namespaces=everywhere, pinned=True), MemoryOrder.IMPORTANCE)
        for stored in self._stored(MemoryFilter(namespaces=GLOBAL_NAMESPACES), MemoryOrder.IMPORTANCE):
            important = stored.family is Family.PREFERENCE and stored.memory.importance >= _IMPORTANT
            if stored.family is Family.DECISION or important:
                yield stored

    def _stored(self, where: MemoryFilter, order: MemoryOrder) -> list[StoredMemory]:
        where = replace(where, states=ACTIVE, valid_at=self._clock())
        return self._store.memories.select(where, order, limit=_CONTEXT_CANDIDATES)

    def _related(self, own: Sequence[str], query: str) -> dict[int, StoredMemory]:
        where = MemoryFilter(namespaces=(*own, *GLOBAL_NAMESPACES), states=ACTIVE)
        return {stored.key: stored for stored in self._recall(query, where, _RELATED)}


def _with_digest(chosen: SessionContext, digest: Sequence[DigestSection], budget: int) -> SessionContext:
    """Add the first lines under each heading whose estimated tokens fit into the rest of the budget."""
    sections: list[DigestSection] = []
    used = chosen.tokens
    for section in digest:
        lines: list[DigestLine] = []
        for line in section.lines:
            cost = count(line.all_text) + _DIGEST_TOKENS
            if used + cost <= budget:
                used += cost
                lines.append(line)
        if lines:
            sections.append(DigestSection(section.title, tuple(lines)))
    omitted = sum(len(section.lines) for section in digest) - sum(len(section.lines) for section in sections)
    return replace(chosen, tokens=used, digest=tuple(sections), omitted_lines=omitted)


def _is_rule(stored: StoredMemory) -> bool:
    return stored.memory.type == GOLDEN_RULE


def _is_from_user(stored: StoredMemory) -> bool:
    """Return whether the user wrote or approved the memory."""
    return _is_rule(stored) or stored.memory.origin is Origin.HUMAN


def _weight(stored: StoredMemory, own: Sequence[str]) -> float:
    """Return the mean of importance and confidence, tripled for memories of the project."""
    factor = 3 if stored.memory.namespace in own else 1
    return factor * (stored.memory.importance + stored.stats.confidence) / 2


def _fitting(ranked: Sequence[StoredMemory], conflicts: Sequence[tuple[str, str]], budget: int) -> SessionContext:
    """Return the first memories that fit into the budget by their estimated tokens.

    Memories that are too long are skipped.
    """
    sections: dict[str, list[StoredMemory]] = {GOLDEN_TITLE: [], **{title: [] for title in _TITLES.values()}}
    used = left_out = 0
    for stored in ranked:
        cost = count(stored.memory.content) + _LINE_TOKENS
        if used + cost > budget:
            left_out += 1
            continue
        used += cost
        title = GOLDEN_TITLE if _is_rule(stored) else _TITLES.get(stored.family, "Facts")
        sections[title].append(stored)
    included = {stored.id for memories in sections.values() for stored in memories}
    return SessionContext(
        tuple(ContextSection(title, tuple(memories)) for title, memories in sections.items() if memories),
        used,
        left_out,
        tuple(pair for pair in conflicts if included.issuperset(pair)),
    )


_DAYS: Final = 14
_DAY: Final = 86_400_000
"""Milliseconds of a day."""
_LATEST_SESSIONS: Final = 20
"""Number of latest sessions of the project that are considered."""
_TOKENS: Final = 60


def last_session(
    store: Store, namespace: str, folder: Path, without: str = "", at: Milliseconds | None = None
) -> DigestLine | None:
    """Return the last session in a folder or on its branch, with its open items and next steps, in at most 60 tokens.

    Of a session of only one observation, which has no card, this observation is returned. Sessions without observations
    and those that ended more than 14 days ago are not considered. If the last session quotes untrusted text, return
    None.

    Args:
        store: The store.
        namespace: Namespace of the project.
        folder: Working folder of the new session.
        without: ID of the new session.
        at: Time of the new session. None means the current time.
    """
    since, branch = (now() if at is None else at) - _DAYS * _DAY, branch_of(folder)
    places = {location for location in store.sessions.projects() if _contains(store, namespace, *location)}
    sessions = store.sessions.latest(places, _LATEST_SESSIONS)
    cards = store.summaries.of_sessions(sessions)
    results = store.observations.of_sessions([number for number in sessions if number not in cards])
    for number, session in sessions.items():
        stored = cards.get(number) or next(iter(results.get(number, ())), None)
        is_here = session.cwd == str(folder) or (bool(branch) and session.branch == branch)
        if is_here and session.native_id != without and (session.ended or 0) >= since and stored is not None:
            trusted = Origin(stored.observation.origin).trust > Trust.LOW
            return _card_line(store, number, stored) if trusted else None
    return None


def _contains(store: Store, namespace: str, project: str, cwd: str) -> bool:
    return store.projects.contains(namespace, Session("", "", project=project, cwd=cwd))


def _card_line(store: Store, session: int, stored: StoredObservation) -> DigestLine:
    """Return the title with as many open items and next steps as fit, without dismissed ones. No item is cut."""
    observation, labels = stored.observation, store.session_labels
    own = labels.of([session]).get(session)
    text, notes = (own.title if own else "") or observation.title.removeprefix(SUMMARY), list[str]()
    facts = labels.undismissed(session, observation.facts) if stored.summary else ()
    items = [fact for fact in facts if is_open_item(fact)]
    for fact in sorted(items, key=lambda item: not item.startswith(OPEN)):
        if count("; ".join((text, *notes, fact))) <= _TOKENS:
            notes.append(fact)
    return DigestLine(ids.show("observation", stored.key), text, observation.at, observation.origin, tuple(notes))
