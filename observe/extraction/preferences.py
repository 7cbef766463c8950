"""Lasting preferences in the user's own words, proposed for review and stored only after the user's approval.

Precision has priority over recall: most prompts are valid for an hour only, and a wrong preference costs more than a
missing preference, which `palaver remember` can store.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store, StoredObservation
from ...core import ids
from ...core.clock import now
from ...core.conversation import Exchange, Kind, SessionKind, Speaker
from ...core.memory import EventKind, Memory, MemoryEvent, MemoryState, StoredMemory
from ...core.observation import Evidence
from ...core.origin import Origin
from ..memory import MemoryCore

SOURCE: Final = "conversation"
OBSERVATION: Final = "observation"
"""Metadata key of the observation that a memory is based on. Deleting the observation deletes the memory."""
_IMPORTANCE: Final = 0.7
_MESSAGE_MAX, _LINES_MAX = 400, 4
_PASTED: Final = re.compile(
    r"""```|["“”„«»]|(?<!\w)['‘]|\*\*|https?://|<[/!\w]|\]\(   # code, quotations, emphasis, links, tags
    |^\s*(?:>|[-*+#]+\s|\d+[.)]\s|\||\[)|:\s*$               # quoted lines, lists, headings, tables, logs, labels
    |[\u2190-\u2bff\U0001f000-\U0001faff]""",  # arrows, boxes, symbols and emoji of programs
    re.MULTILINE | re.VERBOSE,
)
"""Patterns of pasted, quoted or generated text. A message with a match does not count as typed."""
_LASTING: Final = re.compile(
    r"""(?:(?:and|also|but|so|ok|okay|please|btw)[,\s]+)*(?:
    from\ now\ on\b
    |(?:always|never)\ (?!(?:mind|again|the|an?|been|had|was|were|got|saw|seen|done|did|known|heard|it|this|that|there
        |i|we|you|too|so|more)\b|\w+(?:ing|ed|[^\Ws]s)\b)[a-z]
    |i\ (?:always\ |generally\ |usually\ |strongly\ )?prefer\ (?!this|that|it\b|your|not\b|option
        |the\ (?:first|second|third|last|latter|former|other))
    |in\ (?:the\ )?future,?\ (?:please\ )?(?:always|never|do|don['’]t|use|run|ask|write|keep)\b
    |(?:[^,;]{4,80}),?\ from\ now\ on[.!]*\Z)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Sentence that states a lasting rule, unlike "never mind" or a description such as "never works"."""
_MOMENTARY: Final = re.compile(
    r"\b(?:today|tomorrow|later|yet|for now|right now|until|meanwhile|this|these|(?:do|like|use) (?:that|it|so))\b",
    re.IGNORECASE,
)


class PreferenceCandidate(Struct, frozen=True):
    """Preference awaiting review: the resulting memory, and the archived line that states the preference."""

    id: str
    memory: Memory
    path: str
    line: int


def preference_candidates(store: Store) -> Iterator[PreferenceCandidate]:
    """Yield the lasting preferences that users stated, each in its first wording.

    Previously stored preferences are skipped, including deleted and declined preferences.
    """
    known = {(held.memory.namespace, held.memory.content_hash) for held in store.memories.all()}
    for stored in store.observations.human_decisions():
        for fact, proof in zip(stored.observation.facts, stored.observation.evidence, strict=False):
            if not states_preference(fact):
                continue
            found = _candidate(store, stored, fact, proof)
            if found is not None and (claim := (found.memory.namespace, found.memory.content_hash)) not in known:
                known.add(claim)
                yield found


def states_preference(sentence: str) -> bool:
    """Return whether a sentence states a lasting rule, rather than a rule for the current task."""
    asks = sentence.rstrip().endswith("?")
    return not asks and _LASTING.match(sentence) is not None and not _MOMENTARY.search(sentence)


def is_typed(message: str) -> bool:
    """Return whether a message looks typed: short, and without patterns of pasted, quoted or generated text."""
    rows = [row for row in message.splitlines() if row.strip()]
    return len(message) <= _MESSAGE_MAX and len(rows) <= _LINES_MAX and not _PASTED.search(message)


def keep(core: MemoryCore, candidate: PreferenceCandidate) -> StoredMemory:
    """Store a candidate that the user approved."""
    return core.remember(candidate.memory).stored


def decline(store: Store, candidate: PreferenceCandidate) -> None:
    """Store a candidate as a forgotten memory, so that it is never proposed again."""
    at = now()
    with store.transaction():
        key = store.memories.insert(candidate.memory, at)
        store.memories.rewrite(replace(store.memories.load([key])[key], state=MemoryState.ARCHIVED))
        store.memory_events.add(MemoryEvent(key, EventKind.ARCHIVED, at, "declined"))


def _candidate(store: Store, stored: StoredObservation, fact: str, proof: Evidence) -> PreferenceCandidate | None:
    """Return the candidate of a fact if the user typed it."""
    exchange = store.exchanges.load([stored.exchange])[stored.exchange]
    session = store.sessions.load(stored.session)
    if session.kind is not SessionKind.MAIN or not _typed(exchange.exchange, proof):
        return None
    memory = Memory(
        fact,
        "preference",
        namespace=store.projects.of_session(session),
        project=session.project,
        importance=_IMPORTANCE,
        metadata={OBSERVATION: ids.show("observation", stored.key), "line": proof.start_line, "quote": proof.quote},
        source=SOURCE,
        origin=Origin.HUMAN,
        session_id=session.native_id,
        valid_from=stored.observation.at,
    )
    name = sha256(f"{memory.namespace}\0{fact}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return PreferenceCandidate(f"cand_{name}", memory, store.sources.load(exchange.source).archived, proof.start_line)


def _typed(exchange: Exchange, proof: Evidence) -> bool:
    """Return whether the quote comes from a prompt that the user typed."""
    return any(
        turn.line == proof.start_line
        and (turn.kind, turn.speaker) == (Kind.PROMPT, Speaker.HUMAN)
        and proof.quote in turn.text
        and is_typed(turn.text)
        for turn in exchange.turns
    )
