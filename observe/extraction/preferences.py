"""Proposed memories: lasting preferences in the user's own words, and notes that agents wrote.

Preferences, standing instructions and corrections are found in the typed parts of a prompt. Notes are those in memory
files of agents. Rules in instruction files such as AGENTS.md are not proposed: agents load these files anyway.
Proposals are computed from the archive, so they disappear with their source, and stored only after the user's approval.
Precision has priority over recall. Most prompts are valid for only an hour, and a wrong preference costs more than a
missing one, which `palaver remember` can store.
"""

import re
from collections.abc import Iterator
from enum import IntEnum, StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store, StoredObservation, StoredPrompt
from ...core import ids
from ...core.conversation import Origin, now
from ...core.home import root_of
from ...core.memory import EventKind, Memory, MemoryEvent, MemoryState, StoredMemory
from ..memory import MemoryCore
from ..rules.agent_notes import NOTE_PREFIX, NoteKind, is_memory_file, note_rules
from ..rules.salience import phrases
from .languages import languages
from .prompt_parts import MASK, PartOrigin, prompt_parts, typed_text

_LENGTH_MAX: Final = 320
_WORDS_MIN: Final = 3
_SENTENCE: Final = re.compile(
    r".+?(?:(?<!\w\.\w)(?:(?<!\b[A-Za-z])|(?<=\s-[A-Za-z]))(?<!\betc)(?<!\bvs)(?<!\bca)[.!?…]+[\"'”’)\]]*(?=\s|\Z)|[。！？]|\Z)"
)
_WORD: Final = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\d_]+?(?=[\u3040-\u9fff\uac00-\ud7af]|[\W\d_]|\Z)")
_COMMAND: Final = re.compile(r"\s*/[\w:-]+\s")
_QUESTION: Final = re.compile(
    r"""[?？]["'”’)\s]*\Z | [吗呢][。\s]*\Z | (?:べきです|でしょう|のです|んです|必要があります)か[。\s]*\Z
    | (?:인가요|할까요?|는지|나요)[.\s]*\Z
    | \A\W*(?:(?:also|and|but|so|ok|okay)\W+)*
      (?:should|shall|do(?!\ not)|does|did|is|are|why|what|how|when\ should|can\ we
      |warum|wieso|sollen?|sollten|pourquoi|est-ce|faut-il|doit-on|por\ qué|deberíamos|debería|por\ que|devo|devemos)\b
    | \A\W*(?:なぜ|どうして|왜|为什么|为何|是否|要不要)""",
    re.IGNORECASE | re.VERBOSE,
)


class Certainty(IntEnum):
    """Certainty that a sentence states a lasting preference."""

    NONE = 0
    CORRECTION = 1
    """Correction of an agent, which may apply to the current task only."""
    RULE = 2
    """Rule that does not say how long it applies: "always run the linter"."""
    LASTING = 3
    """Rule that says that it applies permanently: "from now on"."""


class StatedSentence(Struct, frozen=True):
    """Typed sentence that states a preference or corrects an agent, verbatim."""

    text: str
    certainty: Certainty

    @property
    def words(self) -> frozenset[str]:
        """Words of the sentence in lower case, used to compare corrections."""
        return frozenset(word.lower() for word in _WORD.findall(self.text))


def stated_sentences(prompt: str) -> Iterator[StatedSentence]:
    """Yield the typed sentences of a prompt that state a preference or correct an agent.

    A limit such as "for this PR" also applies to the following sentences of its line, unless they say that they are
    permanent. Sentences after a question such as "does this still apply?" are ignored, because they may belong to the
    text that the question is about.
    """
    for part in prompt_parts(prompt):
        if part.origin is not PartOrigin.TYPED:
            continue
        limited = may_be_quoted = False
        masked = typed_text(part.text)
        command = _COMMAND.match(masked)
        for span in _SENTENCE.finditer(masked, command.end() if command else 0):
            text, plain = part.text[span.start() : span.end()].strip(), span.group().strip()
            certainty = sentence_certainty(plain)
            limited = limited or any(each.limited.search(plain) for each in languages())
            if not may_be_quoted and (certainty is Certainty.LASTING or (certainty and not limited)):
                yield StatedSentence(text, certainty)
            may_be_quoted = may_be_quoted or _asks_about_text(plain)


def _asks_about_text(sentence: str) -> bool:
    """Return whether a sentence asks about the text that follows it: "does this still apply?"."""
    if not _QUESTION.search(sentence):
        return False
    return any(each.references.search(sentence) or each.sources.search(sentence) for each in languages())


def sentence_certainty(sentence: str) -> Certainty:
    """Return the certainty that a sentence with masked quotations states a lasting preference."""
    fits = len(sentence) <= _LENGTH_MAX and len(_WORD.findall(sentence)) >= _WORDS_MIN
    if not fits or sentence.endswith((":", "：")) or _QUESTION.search(sentence) or sentence.startswith(MASK):
        return Certainty.NONE
    rule = _without_reason(sentence)
    if any(each.limited.search(rule) or each.references.search(rule) for each in languages()):
        return Certainty.NONE
    for certainty, patterns in (
        (Certainty.LASTING, (each.lasting for each in languages())),
        (Certainty.RULE, (each.rules for each in languages())),
        (Certainty.CORRECTION, (each.corrections for each in languages())),
    ):
        if any(pattern.search(sentence) for pattern in patterns):
            return certainty
    return Certainty.NONE


def _without_reason(sentence: str) -> str:
    """Return a sentence without its reason: `never mock it, because this hides errors` becomes `never mock it,`."""
    starts = [found.start() for each in languages() if (found := each.reasons.search(sentence))]
    rule = sentence[: min(starts, default=len(sentence))]
    return rule if len(_WORD.findall(rule)) >= _WORDS_MIN else sentence


SOURCE: Final = "conversation"
EXCHANGE: Final = "exchange"
"""Metadata key for the exchange from which a memory was taken. Deleting the exchange deletes the memory."""
DECLINED: Final = "declined"
"""Context of the event with which the user declined a candidate."""
OBSERVATION: Final = "observation"
"""Metadata key for the observation that a memory is based on. Only memories of earlier versions have this key."""
_IMPORTANCE: Final = 0.7
_SIMILARITY_MIN: Final = 0.6
"""Minimum share of words that two sentences have in common if they count as the same correction."""
_REPLY: Final = 600
"""Number of characters at the beginning of a reply that are searched for a promise."""
_ACKNOWLEDGED: Final = phrases("preferences.acknowledged")
_TYPES: Final = {NoteKind.RULE: "convention", NoteKind.GOTCHA: "issue"}
"""Type of the memory for each kind of a sentence in a note."""
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
    """Yield the lasting preferences that users stated, each in its first wording, and then the notes of agents.

    A sentence that is only worded as a rule is proposed if the agent acknowledged it. Previously stored memories are
    skipped, including deleted and declined ones.
    """
    known = {(stored.memory.namespace, stored.memory.content_hash) for stored in store.memories.all()}
    for candidate in (*_stated(store), *_noted(store)):
        if (claim := (candidate.memory.namespace, candidate.memory.content_hash)) not in known:
            known.add(claim)
            yield candidate


def _stated(store: Store) -> Iterator[PreferenceCandidate]:
    """Yield a candidate for each preference that users stated."""
    namespaces: dict[int, str] = {}
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
            yield _candidate(store, namespace, found, reason)


def _noted(store: Store) -> Iterator[PreferenceCandidate]:
    """Yield a candidate for each rule and each pitfall in the memory files of agents.

    Its origin is that of the note, or the user if the user's own words contain the rule.
    """
    notes: dict[int, list[StoredObservation]] = {}
    for note in store.observations.noted(NOTE_PREFIX):
        notes.setdefault(note.exchange, []).append(note)
    for key, stored in notes.items():
        exchange = store.exchanges.load([key])[key].exchange
        session, place = store.sessions.load(stored[0].session), store.exchanges.locations([key])[key]
        typed = _plain(" ".join(part.text for part in prompt_parts(exchange.prompt) if part.origin is PartOrigin.TYPED))
        for rule in note_rules(exchange, is_memory_file):
            memory = Memory(
                rule.text,
                _TYPES[rule.kind],
                namespace=store.projects.of_session(session),
                project=session.project,
                importance=_IMPORTANCE,
                metadata={
                    EXCHANGE: ids.show("exchange", key),
                    "line": rule.evidence.start_line,
                    "quote": rule.evidence.quote,
                },
                source=SOURCE,
                origin=Origin.HUMAN if _plain(rule.text) in typed else Origin(stored[0].observation.origin),
                session_id=session.native_id,
                valid_from=stored[0].observation.at,
            )
            line = rule.evidence.start_line
            yield PreferenceCandidate(_candidate_id(memory), memory, place.path, line, Reason.NOTED, session.cwd)


def _plain(text: str) -> str:
    """Return the words of a text in lower case, separated by spaces."""
    return " ".join(word.lower() for word in _WORD.findall(text))


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
        store.memory_events.add(MemoryEvent(key, EventKind.ARCHIVED, at, DECLINED))


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
