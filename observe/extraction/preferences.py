"""Proposed memories: notes that agents wrote for later sessions, and lasting preferences in the user's own words.

They are proposed for review, and stored only after the user's approval. Proposals are computed from the archive, so
they disappear with their source. Precision has priority over recall. Most prompts are valid for only an hour, and a
wrong preference costs more than a missing one, which `palaver remember` can store.
"""

from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store, StoredPrompt
from ...core import ids
from ...core.clock import now
from ...core.memory import EventKind, Memory, MemoryEvent, MemoryState, StoredMemory
from ...core.origin import Origin
from ...core.project import root_of
from ..memory import MemoryCore
from ..rules.agent_notes import NOTE_PREFIX
from ..rules.phrase_patterns import phrases
from .stated_preferences import Certainty, StatedSentence, stated_sentences

SOURCE: Final = "conversation"
EXCHANGE: Final = "exchange"
"""Metadata key for the exchange from which a memory was taken. Deleting the exchange deletes the memory."""
OBSERVATION: Final = "observation"
"""Metadata key for the observation that a memory is based on. Only memories of earlier versions have this key."""
_IMPORTANCE: Final = 0.7
_SIMILARITY_MIN: Final = 0.6
"""Minimum share of words that two sentences have in common if they count as the same correction."""
_REPLY: Final = 600
"""Number of characters at the beginning of a reply that are searched for a promise."""
_ACKNOWLEDGED: Final = phrases("preferences.acknowledged")
_BEGINNING: Final = 30
"""Number of characters compared at the beginning of two prompts, to detect prompts from the same template."""


class Reason(StrEnum):
    """Reason for a proposal."""

    NOTED = "was written by the agent for later sessions"
    LASTING = "applies beyond the current task"
    ACKNOWLEDGED = "is worded as a rule, and the agent acknowledged it"
    REPEATED = "corrects an agent in two sessions"


class PreferenceCandidate(Struct, frozen=True):
    """Preference awaiting review: the resulting memory, the archived line that states it, and why it is proposed.

    `folder` is the working folder of the session.
    """

    id: str
    memory: Memory
    path: str
    line: int
    reason: Reason
    folder: str


class _Statement(Struct, frozen=True):
    """Sentence and the prompt that contains it."""

    sentence: StatedSentence
    prompt: StoredPrompt


def preference_candidates(store: Store) -> Iterator[PreferenceCandidate]:
    """Yield the notes of agents, and then the lasting preferences that users stated, each in its first wording.

    A sentence that is only worded as a rule is proposed if the agent acknowledged it. Previously stored memories are
    skipped, including deleted and declined ones.
    """
    known = {(stored.memory.namespace, stored.memory.content_hash) for stored in store.memories.all()}
    namespaces: dict[int, str] = {}
    for candidate in _noted(store):
        if (claim := (candidate.memory.namespace, candidate.memory.content_hash)) not in known:
            known.add(claim)
            yield candidate
    corrections: dict[str, list[_Statement]] = {}
    for prompt in store.exchanges.prompts():
        for sentence in stated_sentences(prompt.text):
            if prompt.session not in namespaces:
                namespaces[prompt.session] = store.projects.of_session(store.sessions.load(prompt.session))
            namespace = namespaces[prompt.session]
            found = _Statement(sentence, prompt)
            reason = Reason.LASTING if sentence.certainty is Certainty.LASTING else Reason.ACKNOWLEDGED
            if sentence.certainty is Certainty.RULE and not _is_acknowledged(store, prompt):
                continue
            if sentence.certainty is Certainty.CORRECTION:
                first = _earlier(found, corrections.setdefault(namespace, []))
                corrections[namespace].append(found)
                if first is None:
                    continue
                found, reason = first, Reason.REPEATED
            candidate = _candidate(store, namespace, found, reason)
            if (claim := (namespace, candidate.memory.content_hash)) not in known:
                known.add(claim)
                yield candidate


def _noted(store: Store) -> Iterator[PreferenceCandidate]:
    """Yield a candidate for each note of an agent, with its description and first rule."""
    for stored in store.observations.noted(NOTE_PREFIX):
        note = stored.observation
        rule = note.facts[0] if note.facts else ""
        text = rule if rule.startswith(note.title) or note.title.startswith(rule) else f"{note.title}: {rule}"
        session, place = store.sessions.load(stored.session), store.exchanges.locations([stored.exchange])
        memory = Memory(
            text,
            "preference",
            namespace=store.projects.of_session(session),
            project=session.project,
            importance=_IMPORTANCE,
            metadata={
                EXCHANGE: ids.show("exchange", stored.exchange),
                "line": note.evidence[0].start_line,
                "quote": note.evidence[0].quote,
            },
            source=SOURCE,
            origin=Origin(note.origin),
            session_id=session.native_id,
            valid_from=note.at,
        )
        line, path = note.evidence[0].start_line, place[stored.exchange].path
        yield PreferenceCandidate(_candidate_id(memory), memory, path, line, Reason.NOTED, session.cwd)


def _is_acknowledged(store: Store, prompt: StoredPrompt) -> bool:
    """Return whether a reply to a prompt promises to follow it."""
    exchange = store.exchanges.load([prompt.exchange])[prompt.exchange].exchange
    replies = (turn.text for turn in exchange.active_turns if turn.is_reply and turn.line > prompt.line)
    return any(_ACKNOWLEDGED.search(text[:_REPLY]) for text in replies)


def _candidate_id(memory: Memory) -> str:
    name = f"{memory.namespace}\0{memory.content}".encode("utf-8", "surrogatepass")
    return f"cand_{sha256(name).hexdigest()[:8]}"


def keep(core: MemoryCore, candidate: PreferenceCandidate) -> StoredMemory:
    """Store a candidate that the user approved."""
    folder = Path(candidate.folder)
    exists = folder.is_absolute() and root_of(folder).exists()
    namespace = core.projects.claim(folder) if exists else candidate.memory.namespace
    return core.remember(replace(candidate.memory, namespace=namespace)).stored


def decline(store: Store, candidate: PreferenceCandidate) -> None:
    """Store a candidate as a forgotten memory, so that it is never proposed again."""
    at = now()
    with store.transaction():
        key = store.memories.insert(candidate.memory, at)
        store.memories.rewrite(replace(store.memories.load([key])[key], state=MemoryState.ARCHIVED))
        store.memory_events.add(MemoryEvent(key, EventKind.ARCHIVED, at, "declined"))


def _earlier(found: _Statement, corrections: list[_Statement]) -> _Statement | None:
    """Return the first correction from another session with mostly the same words, or None.

    Prompts that also begin with the same text are ignored, because a program probably generated them from a template.
    """
    words, beginning = found.sentence.words, _beginning(found)
    for each in corrections:
        common = len(words & each.sentence.words)
        same = common >= _SIMILARITY_MIN * len(words | each.sentence.words)
        if same and each.prompt.session != found.prompt.session and not (beginning and beginning == _beginning(each)):
            return each
    return None


def _beginning(found: _Statement) -> str:
    """Return the first characters of the prompt that contains a sentence, after removing the sentence."""
    return found.prompt.text.replace(found.sentence.text, "").strip()[:_BEGINNING]


def _candidate(store: Store, namespace: str, found: _Statement, reason: Reason) -> PreferenceCandidate:
    """Return the candidate for a sentence of a prompt."""
    text, prompt = found.sentence.text, found.prompt
    session = store.sessions.load(prompt.session)
    memory = Memory(
        text,
        "preference",
        namespace=namespace,
        project=session.project,
        importance=_IMPORTANCE,
        metadata={EXCHANGE: ids.show("exchange", prompt.exchange), "line": prompt.line, "quote": text},
        source=SOURCE,
        origin=Origin.HUMAN,
        session_id=session.native_id,
        valid_from=prompt.at,
    )
    path = store.sources.load(prompt.source).archived
    return PreferenceCandidate(_candidate_id(memory), memory, path, prompt.line, reason, session.cwd)
