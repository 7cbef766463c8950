"""Writer of the observations of an exchange, detection of repeated observations, and states of files.

The writer confirms known observations, inserts new ones, and updates the session's summary.

One observation repeats another if both contain the same words in the same order, apart from a few added plain words.
All values must be equal: numbers, names, code, colours, negations, files. Word order matters: `copy staging over
production` does not repeat `copy production over staging`.

File states are hashes of an exchange's files, taken if it is observed soon after it ended. The files are hashed again
later to detect observations that may be outdated. A file without such a hash is never reported as changed. Commits
cannot replace the hashes, because an agent may have seen uncommitted files, nor can modification times, because a
checkout changes them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Final

from ...archiver.lines import content_hash
from ...archiver.store import SUMMARY_PREFIX, Store, StoredExchange, StoredObservation
from ...archiver.store.exchange_table import FileState
from ...archiver.store.observation_table import StoredReplacement
from ...core.conversation import Exchange, Milliseconds, Session
from ...core.observation import Evidence, Observation
from ..memory.rule_judge import ALTERNATIVES, CHANGE_WORDS, NEGATORS, NUMBERS, OPPOSITES, stem_of
from ..rules.classification import relative_path
from ..rules.notes import find_replacements
from ..rules.outcome import committed_work
from ..rules.session_card import build_card

_LIVE: Final = 5 * 60_000
"""Maximum delay in milliseconds between the end of an exchange and its observation. It is usually a few seconds."""
_FILES_MAX: Final = 24
"""Maximum files of an exchange, so that hashing takes a few milliseconds."""


def is_live(exchange: Exchange, at: Milliseconds) -> bool:
    """Return whether an exchange ended so recently that its files still have the content that the agent saw."""
    return exchange.ended is not None and 0 <= at - exchange.ended <= _LIVE


def file_states(exchange: Exchange, session: Session, key: bytes) -> list[FileState]:
    """Return the states of the project files that an exchange modified or read, the modified files first."""
    return list(islice(_states(exchange, session, key), _FILES_MAX))


def _states(exchange: Exchange, session: Session, key: bytes) -> Iterator[FileState]:
    roots = tuple(root for root in (session.cwd, exchange.cwd) if root)
    folder = exchange.cwd or session.cwd
    project = os.path.realpath(session.cwd or folder)
    if not Path(folder).is_absolute():
        return
    for path in dict.fromkeys((*exchange.writes, *exchange.reads)):
        file = os.path.realpath(Path(folder, path))
        if Path(file).is_relative_to(project) and (found := content_hash(file, key)):
            yield FileState(relative_path(path, roots), file, found)


MIN_SHARED = 0.8
"""Minimum share of the words of the longer text that the shorter text must contain.

With a lower share, merging would lose details.
"""
_SHORT = 12
"""Maximum number of words in a short text. A short text repeats another text only if both are equal."""

_WORD = re.compile(r"(?:(?<![\w*])[-+!.~/]+(?=\w))?\w+(?:[.:/\\'’@-]\w+)*|[^\w\s.,;:!?\"'`’“”()*_…-]+")
"""Pattern for words with their joining characters and leading sign, and for symbols that carry meaning.

For example, `a > b` differs from `a < b`, and `-1` from `1`.
"""
_SENTENCE_END = frozenset(".!?:")
_NAMED = re.compile(r"[-+!.~]|.*[\d_/\\@]|.*[^\W\d_][.:][^\W\d_]|.*[a-z][A-Z]|[A-Z]{2,}")
_FILLERS = frozenset("a an the please just really actually simply".split())
_COLOURS = """red green blue yellow orange purple violet pink brown black white grey gray cyan magenta teal indigo amber
    turquoise maroon navy beige gold silver"""
_PLACES = """on off up down in out into onto from to over under before after above below with without at by for until
    since through between left right top bottom front back"""
_MEASURES = """all any each every both only some more most less least few many half twice once must may might can could
    should shall would will if unless except instead but or"""
_DISTINCTIVE = frozenset(
    stem_of(word)
    for word in chain(
        NEGATORS,
        CHANGE_WORDS,
        NUMBERS,
        *OPPOSITES,
        *ALTERNATIVES,
        *(row.split() for row in (_COLOURS, _PLACES, _MEASURES)),
    )
)
"""Stems of words that change the meaning of a statement when added."""


def fingerprint(observation: Observation, project: str) -> str:
    """Return a hash that is equal for all observations that may repeat each other.

    It covers the project, origin, type, modified files and values.
    """
    values = " ".join(sorted(set(chain.from_iterable(map(_values, _statements(observation))))))
    files = "\n".join(sorted(observation.files_modified))
    parts = (project, observation.origin, observation.type, values, files)
    return sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_repetition(first: Observation, second: Observation) -> bool:
    """Return whether two observations with equal fingerprints have the same meaning."""
    if _statements(first) == _statements(second):
        return True
    one, other = _statement_stems(first), _statement_stems(second)
    if len(one) != len(other) or bool(one[0]) != bool(other[0]) or not any(one):
        return False
    if (one[0], sorted(one[1:])) == (other[0], sorted(other[1:])):
        return True
    return _extends(zip(one, other, strict=True)) or _extends(zip(other, one, strict=True))


def _extends(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Return whether the second text of each pair only adds a few unimportant words to the first text."""
    added_words = total_words = 0
    for shorter, longer in pairs:
        added = _added_words(shorter, longer)
        if added is None or not _DISTINCTIVE.isdisjoint(added):
            return False
        added_words += len(added)
        total_words += len(longer)
    return total_words > _SHORT and total_words - added_words >= MIN_SHARED * total_words


def _added_words(shorter: Sequence[str], longer: Sequence[str]) -> list[str] | None:
    """Return the words that the longer text adds to the shorter, or None if it also omits or reorders words."""
    rest: list[str] = []
    place = 0
    for word in longer:
        if place < len(shorter) and word == shorter[place]:
            place += 1
        else:
            rest.append(word)
    return rest if place == len(shorter) else None


def _statements(observation: Observation) -> list[str]:
    """Return title and facts. The narrative is excluded because it also describes the circumstances."""
    return [observation.title, *(observation.facts or (observation.narrative,))]


def _statement_stems(observation: Observation) -> list[list[str]]:
    """Return the stems of each statement. A title that only repeats the start of the first fact has no stems."""
    title, *rest = map(_stems, _statements(observation))
    return [[] if rest[0][: len(title)] == title else title, *rest]


def _stems(text: str) -> list[str]:
    lowered = (word.lower() for word in _WORD.findall(text))
    return [stem_of(word) for word in lowered if word not in _FILLERS]


def _values(text: str) -> Iterator[str]:
    """Yield numbers, names, code and negations. A capitalised word counts as a name unless it starts a sentence."""
    end = 0
    for found in _WORD.finditer(text):
        word, lowered = found.group(), found.group().lower()
        begins = end == 0 or not _SENTENCE_END.isdisjoint(text[end : found.start()])
        named = _NAMED.match(word) is not None or (word[:1].isupper() and not begins)
        if named or lowered in NEGATORS or lowered in NUMBERS or lowered.endswith(("n't", "n’t")):
            yield lowered.replace("’", "'")
        end = found.end()


_READ = 100
"""Number of exchanges at the end of a session that its summary reads, in addition to the first exchange."""

_EARLIER = 24
"""Number of earlier observations of the session that a commit is compared with."""


def keep(
    store: Store,
    stored: StoredExchange,
    session: Session,
    observations: Iterable[Observation],
    extractor: str,
    rejected: int = 0,
) -> None:
    """Replace the observations of an exchange, inside a transaction.

    An observation that repeats one of another exchange is not stored. Instead, it confirms the known observation, which
    keeps its wording. If this exchange only runs `git commit` on the work of an earlier exchange, it confirms the
    observation of that work. `rejected` is the number of facts whose quotes were not found.
    """
    earlier = store.observations.latest(stored.session, stored.key, _EARLIER)
    fresh: list[Observation] = []
    fingerprints: list[str] = []
    confirmed: dict[int, tuple[Evidence, ...]] = {}
    for observation in dict.fromkeys(observations):
        marker = fingerprint(observation, session.project)
        known = store.confirmations.candidates(marker, observation.title, stored.key)
        twin = next((each.key for each in known if is_repetition(each.observation, observation)), None)
        if twin is None:
            place = committed_work(stored.exchange, observation, [each.observation for each in earlier])
            twin = None if place is None else earlier[place].key
        if twin is None:
            fresh.append(observation)
            fingerprints.append(marker)
        else:
            confirmed[twin] = observation.evidence
    store.observations.replace(stored.key, stored.session, fresh, extractor, fingerprints, rejected)
    store.confirmations.replace(stored.key, confirmed)


def summarise(store: Store, sessions: Iterable[int]) -> None:
    """Update the summaries of sessions and the links between their observations, inside a transaction.

    For a session in several files, the last file is summarised. A summary by a language model is kept until the session
    grows.
    """
    for session in sessions:
        keys = store.summaries.newest_exchanges(session)
        if not keys:
            continue
        parts = store.summaries.summarised(keys)
        read = [*keys[:1], *keys[1:][-_READ:]]
        loaded = store.exchanges.load(read)
        exchanges = [loaded[key].exchange for key in read]
        replaced = _link_replacements(store, parts, dict(zip(read, exchanges, strict=True)))
        known = store.summaries.of_session(session)
        if known is not None and _is_current(known.observation, exchanges[-1]):
            summary: Observation | None = known.observation
        else:
            observations = [part.observation for part in parts]
            summary = build_card(observations, store.sessions.load(session), exchanges, replaced)
        store.summaries.put(session, keys[0], summary)


def _is_current(summary: Observation, last: Exchange) -> bool:
    """Return whether a summary is by a language model and covers the last exchange."""
    return summary.extractor.startswith(SUMMARY_PREFIX) and summary.at == (last.ended or last.started)


def _link_replacements(
    store: Store, parts: Sequence[StoredObservation], exchanges: Mapping[int, Exchange]
) -> list[Observation]:
    """Find the observations of a session that later ones replace.

    Store these pairs and return the replaced observations.
    """
    places = {key: place for place, key in enumerate(exchanges)}
    read = [part for part in parts if part.exchange in places]
    found = find_replacements([(places[part.exchange], part.observation) for part in read], [*exchanges.values()])
    links = [StoredReplacement(read[each.earlier].key, read[each.later].key, each.line) for each in found]
    store.replacements.put([part.key for part in read], links)
    return [read[each.earlier].observation for each in found]
