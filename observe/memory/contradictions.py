"""Detection of contradictions: compare a memory with similar memories of its namespace, and link conflicts.

`RuleJudge` compares two statements by rules, without a language model. They contradict each other in two cases:

- Exactly one of them is negated.
- They differ in words that are opposites, alternatives of one kind, or different values.

In both cases, the other content words must be the same, except that one of the statements may have up to two more.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgspec import Struct

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import ACTIVE, Edge, Memory, MemoryFilter, MemoryState, Relation, StoredMemory
from ...search.rank.item_finder import MemoryFinder, MemoryVectors
from .statement_parser import (
    UNITS,
    WORDS,
    ParsedStatement,
    Word,
    are_alternatives,
    are_opposites,
    are_values,
    clauses,
    normalized,
    sentences,
    stem_of,
    whole,
)
from .supersession import edges_at, find_memory, supersede

_GRAMMAR = WORDS.function_words | WORDS.change_words | WORDS.negators
_WORDS_MAX = 200
"""Maximum number of content words of a compared statement. A longer text is data, such as a log, not a claim."""


class Verdict(StrEnum):
    """Relation of a newer statement to an older one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    COMPATIBLE = "compatible"


MemoryPair: TypeAlias = tuple[Memory, Memory]
"""Pair of memories, the older first."""


class Judgement(Struct, frozen=True):
    """Verdict with its reason in one sentence, and the name of the judge.

    `unsure` is True if the rules found only that both have a common subject. A language model can then be asked.
    `certain` is False for a supersession that is only proposed.
    """

    verdict: Verdict
    reason: str
    judge: str
    unsure: bool = False
    certain: bool = True

    @property
    def conflict(self) -> bool:
        """True if the two statements cannot both be true."""
        return self.verdict in {Verdict.CONTRADICTS, Verdict.SUPERSEDES}


class Judge(Protocol):
    """Protocol for judges, which compare pairs of memories."""

    name: str

    def judge_all(self, pairs: Sequence[MemoryPair]) -> list[Judgement]:
        """Return the relation of the newer memory to the older memory, for each pair."""
        ...

    def close(self) -> None:
        """Release the resources of the judge."""
        ...


JudgeFactory: TypeAlias = Callable[[Store], Judge]
"""Function that creates a judge for an open store."""


class RuleJudge:
    """Judge that compares pairs of memories by rules.

    The verdict on a conflict is `SUPERSEDES` if the newer statement reports a change, and otherwise `CONTRADICTS`.
    `docs/memories.md` states the measured precision and recall.
    """

    name = "rules"

    def judge_all(self, pairs: Sequence[MemoryPair]) -> list[Judgement]:
        """Return the relation of the newer memory to the older memory, for each pair."""
        return [self.judge(older.content, newer.content) for older, newer in pairs]

    def close(self) -> None:
        """Do nothing, because the rules use no resources."""

    def judge(self, older: str, newer: str) -> Judgement:
        """Return the relation of a newer text to an older text."""
        if (replaced := _replaced_value(older, newer)) is not None and not differ_in_subject(older, newer, 1):
            reason = f"The newer memory says that {replaced!r} was replaced"
            return self._supersedes(reason, certain=_is_certain(older, newer, named=True))
        changed = _announces_change(newer) and not _announces_change(older)
        disagreement = next(filter(None, (_disagreement(old, new) for old, new in _pairs(older, newer))), None)
        if disagreement is not None:
            if not changed:
                return Judgement(Verdict.CONTRADICTS, disagreement, self.name, certain=False)
            if not differ_in_subject(older, newer, 1):
                return self._supersedes(disagreement, certain=_is_certain(older, newer))
        if older == newer or (_claims(older) == _claims(newer) != set()):
            return Judgement(Verdict.SAME, "Both say the same", self.name, certain=False)
        if changed and whole(older).stems == whole(newer).stems:
            return self._supersedes("The newer memory has the same words in another order", certain=False)
        return Judgement(Verdict.COMPATIBLE, "Both can be true", self.name, _share_words(older, newer), certain=False)

    def _supersedes(self, reason: str, *, certain: bool) -> Judgement:
        return Judgement(Verdict.SUPERSEDES, reason, self.name, certain=certain)


def differ_in_subject(older: str, newer: str, new_values: int = 0) -> bool:
    """Return whether each text has content words that the other lacks, so that their subjects may differ.

    Numbers are ignored. Up to `new_values` phrases that only the newer text has are ignored too, because they may be
    new values of the same subject.
    """
    new = whole(newer)
    removed, added = ([word for word in words if not word.number] for words in _unshared(whole(older), new))
    if not removed or not added:
        return False
    # The newer text begins with its subject, never with a new value.
    return added[0] == new.words[0] or len(_phrases(added, new)) > new_values


def _claims(text: str) -> set[tuple[tuple[str, ...], bool]]:
    """Return the statements of a text as stems, each with its negation flag."""
    return {(tuple(word.stem for word in each.words), each.negated) for each in sentences(text)}


def _share_words(older: str, newer: str) -> bool:
    """Return whether the shorter text shares more than a third of its content words with the longer text."""
    ours, theirs = ({stem for each in sentences(text) for stem in each.stems - WORDS.people} for text in (older, newer))
    return 3 * len(ours & theirs) > min(len(ours), len(theirs))


def _announces_change(text: str) -> bool:
    return any(statement.changes for statement in sentences(text))


def _pairs(older: str, newer: str) -> Iterator[tuple[ParsedStatement, ParsedStatement]]:
    """Yield each pair of an older and a newer sentence, then each pair of an older and a newer clause."""
    for parts in (sentences, clauses):
        for old in parts(older):
            for new in parts(newer):
                yield old, new


def _disagreement(old: ParsedStatement, new: ParsedStatement) -> str | None:
    """Return the reason why the two statements cannot both be true, or None if they can."""
    if max(len(old.words), len(new.words)) > _WORDS_MAX or not old.stems & new.stems:
        return None
    only_old, only_new = _unshared(old, new)
    if (reason := _conflicting_words(old, new, only_old, only_new)) is not None:
        return reason
    if old.negated != new.negated and _is_one_subject(only_old, only_new):
        return "One memory negates the other"
    return None


def _conflicting_words(
    old: ParsedStatement, new: ParsedStatement, only_old: list[Word], only_new: list[Word]
) -> str | None:
    """Return a reason that names two mutually exclusive words, or None.

    The result is also None if the statements differ in other words too.
    """
    conflicting = [
        (one, other)
        for one in [*only_old, *(word for word in old.words if word.light)]
        for other in [*only_new, *(word for word in new.words if word.light)]
        if one.stem != other.stem
        and (are_opposites(one, other) or are_alternatives(one, other) or are_values(one, other))
    ]
    if not conflicting:
        return _conflicting_holders(old, new, only_old, only_new)
    opposites = any(are_opposites(one, other) for one, other in conflicting)
    if not opposites and (old.negated != new.negated or _can_coexist(old, new, conflicting)):
        return None
    stems = {word.stem for pair in conflicting for word in pair}
    ignored = stems | (
        WORDS.categories if any(are_alternatives(one, other) for one, other in conflicting) else set[str]()
    )
    rest = ([word for word in words if word.stem not in ignored and not word.number] for words in (only_old, only_new))
    if not _is_one_subject(*rest):
        return None
    one, other = conflicting[0]
    return f"{one.text!r} conflicts with {other.text!r}"


def _can_coexist(old: ParsedStatement, new: ParsedStatement, conflicting: list[tuple[Word, Word]]) -> bool:
    """Return whether both statements can be true, because they have different subjects or compatible properties."""
    names = {one.stem for one, _ in conflicting if not one.number}
    numbers = {one.stem for one, _ in conflicting if one.number}
    if len(numbers) > 1 or (names and numbers):
        return True
    person = old.words[0].stem in WORDS.people and new.words[0].stem in WORDS.people
    verbs = {word.stem for word in (*old.words, *new.words)}
    return person and not WORDS.single_object_verbs & verbs and not old.changes | new.changes


def _is_one_subject(rest_old: list[Word], rest_new: list[Word]) -> bool:
    """Return whether one list of words is empty and the other has at most two, so that the subject is the same."""
    return min(len(rest_old), len(rest_new)) == 0 and max(len(rest_old), len(rest_new)) <= 2


def _conflicting_holders(
    old: ParsedStatement, new: ParsedStatement, only_old: list[Word], only_new: list[Word]
) -> str | None:
    """Return a reason that names two holders of an exclusive role, as in `Ana leads` and `Ben leads`, or None."""
    exclusive = WORDS.exclusive_verbs.intersection(old.tokens, new.tokens) or old.tokens[1:3] == new.tokens[1:3] == (
        "is",
        "the",
    )
    if len(only_old) != 1 or len(only_new) != 1 or not exclusive:
        return None
    one, other = only_old[0], only_new[0]
    are_names = one.text[:1].isupper() and other.text[:1].isupper()
    return f"{one.text!r} conflicts with {other.text!r}" if are_names else None


_GONE = "dropped|removed|replaced|deprecated|retired|gone|not used anymore"
_OLD_VALUE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bfrom (?P<old>.{2,60}?) to ",
        r"\binstead of (?P<old>[^,.;]{2,60})",
        r"\breplaced (?P<old>.{2,60}?) (?:with|by) ",
        rf"(?:^|, |; |\band )(?P<old>[^,.;]{{2,40}}?) (?:was|were|is|are|has been|have been) (?:{_GONE})",
        r"\bstopped using (?P<old>[^,.;]{2,60})",
        r"\bnot longer (?:use|uses|used|kept?|keep|need|needs|run|runs|want|wants) (?P<old>[^,.;]{2,60})",
    )
)
"""Patterns for phrases in which a newer statement mentions the value that it replaces."""


def _replaced_value(older: str, newer: str) -> str | None:
    """Return the value that the newer text describes as replaced, if the older text contains it."""
    text = normalized(newer)
    affirmed = [statement for statement in sentences(older) if not statement.negated]
    stems_of_newer = {word.stem for statement in sentences(newer) for word in statement.words}
    for match in (match for pattern in _OLD_VALUE for match in pattern.finditer(text)):
        named = {word.stem for part in sentences(match["old"]) for word in part.words if not word.light}
        for statement in affirmed:
            stems = {word.stem for word in statement.words}
            shares_subject = (stems_of_newer & stems) - named
            if named & statement.stems and len(named - stems) <= 1 and shares_subject:
                return match["old"].strip()
            if named and statement.stems - WORDS.people <= named:
                return match["old"].strip()
    return None


def _is_certain(older: str, newer: str, *, named: bool = False) -> bool:
    """Return whether a supersession is certain.

    It is certain if the newer text negates the whole older text, or differs from it only in one value. `named` is True
    if the newer text states which value was replaced.
    """
    old, new = whole(older), whole(newer)
    if WORDS.scopes.intersection(old.tokens) != WORDS.scopes.intersection(new.tokens):
        return False
    stems = {word.stem for word in old.words}
    if any(stems == {word.stem for word in each.words} and each.negated != old.negated for each in clauses(newer)):
        return True
    removed, added = _unshared(old, new)
    verbs = [{word.stem for word in statement.words if word.light} for statement in (old, new)]
    same_verbs = not verbs[1] - verbs[0] and verbs[0] - verbs[1] <= WORDS.generic_verbs
    if old.negated != new.negated or not same_verbs or len(_phrases(added, new)) != 1:
        return False
    if named:
        return not removed and _follows_verb(added, newer, anywhere=True)
    # Measures and alternatives of one class are values wherever they occur in the predicate.
    anywhere = added[0].number or any(are_alternatives(one, other) for one in removed for other in added)
    one_phrase = len(_phrases(removed, old)) == 1
    return one_phrase and _are_values_of_one_thing(removed, added) and _follows_verb(added, newer, anywhere=anywhere)


def _unshared(old: ParsedStatement, new: ParsedStatement) -> tuple[list[Word], list[Word]]:
    """Return the content words that only the older statement has, and those that only the newer statement has."""
    old_stems, new_stems = old.stems, new.stems
    return (
        [word for word in old.words if not word.light and word.stem not in new_stems],
        [word for word in new.words if not word.light and word.stem not in old_stems],
    )


def _phrases(words: Sequence[Word], statement: ParsedStatement) -> list[list[Word]]:
    """Group words into phrases, separated by function words."""
    phrases: list[list[Word]] = []
    for word in words:
        if phrases and _GRAMMAR.isdisjoint(statement.tokens[phrases[-1][-1].position : word.position]):
            phrases[-1].append(word)
        else:
            phrases.append([word])
    return phrases


def _are_values_of_one_thing(removed: Sequence[Word], added: Sequence[Word]) -> bool:
    """Return whether two phrases are numbers with the same unit, two names, alternatives or opposites."""
    if any(word.number for word in (*removed, *added)):
        one_unit = len(removed) == len(added) == 1 and removed[0].unit == added[0].unit
        return one_unit and are_values(removed[0], added[0])
    named = all(word.value for word in (*removed, *added))
    return named or any(are_alternatives(one, other) or are_opposites(one, other) for one in removed for other in added)


def _follows_verb(added: Sequence[Word], newer: str, *, anywhere: bool) -> bool:
    """Return whether the new value follows the verb of its clause, so that it is not part of the subject.

    Unless `anywhere` is set, the value must follow the verb directly: `runs on Monday`, not `takes an hour on Monday`.
    """
    for clause in clauses(newer):
        positions = {word.stem: word.position for word in clause.words}
        if all(word.stem in positions for word in added):
            before, after = clause.tokens[: positions[added[0].stem]], clause.tokens[positions[added[-1].stem] + 1 :]
            break
    else:
        return False
    if added[-1].number and after and after[0] in UNITS:
        after = after[1:]
    verbs = [position for position, word in enumerate(before) if _is_verb(word)]
    rest = after[: after.index("instead")] if "instead" in after else after
    while rest and rest[-1] in WORDS.function_words | WORDS.change_words:
        rest = rest[:-1]
    if not verbs or any(map(_is_verb, rest)):
        return False
    between = before[verbs[-1] + 1 :]
    if added[0].number:
        return bool(added[0].unit) or "in" not in between[-1:]
    return anywhere or (_GRAMMAR.issuperset(between) and not {"for", "during"}.intersection(between))


def _is_verb(word: str) -> bool:
    return word in WORDS.auxiliaries or word in WORDS.change_words or stem_of(word) in WORDS.light_verbs


COMPARED = 5
"""Number of similar memories with which a new memory is compared, the most similar first."""
RELATED_FROM, JUDGED_FROM = 0.6, 0.35
"""Minimum cosine similarity of memories that are linked as related, and of memories that the judge compares.

The second value is lower, because even a paraphrase can have a low similarity.
"""
_DETECT_COMPARED, _OUTCOME_COMPARED = 20, 10
_SUCCESSES_NEEDED = 2
"""Number of successes that a memory needs before its better outcomes can make it supersede another memory."""


class Comparison(Struct, frozen=True):
    """Comparison with a stored memory: the cosine similarity of the memories, and the judgement."""

    stored: StoredMemory
    similarity: float
    judgement: Judgement

    def edge_from(self, key: int) -> Edge | None:
        """Return the edge from the memory with this key to `stored`.

        Return None if the memories do not conflict and are not similar enough to be linked.
        """
        verdict, other = self.judgement.verdict, self.stored.key
        if verdict is Verdict.SUPERSEDES:
            proposed = not self.judgement.certain
            return Edge(key, other, Relation.SUPERSEDES, 1.0, self.reason, inferred=True, proposed=proposed)
        if verdict is Verdict.CONTRADICTS:
            return Edge(key, other, Relation.CONTRADICTS, 1.0, self.reason, inferred=True)
        if self.similarity >= RELATED_FROM:
            return Edge(key, other, Relation.RELATES_TO, round(self.similarity, 4), "similar", inferred=True)
        return None

    @property
    def reason(self) -> str:
        """Reason for the judgement, with the name of the judge."""
        return f"{self.judgement.reason}{_judged_by(self.judgement.judge)}"


class DetectedConflict(Struct, frozen=True):
    """Comparison with a conflicting memory. `new` is True if an edge between both memories was added."""

    comparison: Comparison
    new: bool


class Contradictions:
    """Search for contradictions between memories of a namespace. `judge` is the name of the model or rules used."""

    def __init__(self, store: Store, finder: MemoryFinder, judge: Judge, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._finder, self._clock = store, finder, clock
        self._judge, self.judge = judge, judge.name

    def compare(
        self,
        memory: Memory,
        vectors: MemoryVectors | None = None,
        *,
        stored: StoredMemory | None = None,
        limit: int = COMPARED,
        min_similarity: float = JUDGED_FROM,
    ) -> list[Comparison]:
        """Return comparisons with the most similar valid memories of the namespace, best first.

        Without an embedding model, the list is empty. If `memory` is already stored, pass its record as `stored`. The
        result then excludes it, and creation times determine which memory of a pair is older. Otherwise, `memory`
        counts as the newer one.
        """
        wanted = MemoryFilter(namespaces=(memory.namespace,), states=ACTIVE, valid_at=self._clock())
        near = self._finder.near(memory, vectors, wanted, limit + 1, min_similarity)
        others = [each for each in near if stored is None or each.key != stored.key][:limit]
        judgements = self._judge.judge_all([_in_order(each.stored, memory, stored) for each in others])
        return [
            Comparison(each.stored, each.similarity, judgement)
            for each, judgement in zip(others, judgements, strict=True)
        ]

    def detect(
        self, memory_id: str, *, min_similarity: float = JUDGED_FROM, link: bool = True
    ) -> list[DetectedConflict]:
        """Return the conflicts of a memory with its most similar memories, best first. With `link`, add their edges.

        Conflicts that are already linked are included even below `min_similarity`.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: `min_similarity` is not between 0 and 1.
        """
        if not 0 <= min_similarity <= 1:
            raise InvalidInput(f"Invalid similarity threshold: {min_similarity}", hint="Give a number from 0.0 to 1.0.")
        stored, least = find_memory(self._store, memory_id), min(min_similarity, JUDGED_FROM)
        near = self.compare(stored.memory, stored=stored, limit=_DETECT_COMPARED, min_similarity=least)
        found: list[DetectedConflict] = []
        with self._store.transaction():
            edges = [edge for edge in edges_at(self._store, [stored.key]) if edge.disagrees]
            linked = {key for edge in edges for key in (edge.source, edge.target)}
            for each in near:
                known = each.stored.key in linked
                if not each.judgement.conflict or (each.similarity < min_similarity and not known):
                    continue
                new = link and not known
                if new:
                    edge = Edge(stored.key, each.stored.key, Relation.CONTRADICTS, 1.0, each.reason, inferred=True)
                    self._store.memory_edges.put(edge)
                found.append(DetectedConflict(each, new))
        return found

    def update(self, stored: StoredMemory) -> None:
        """Judge an edited memory again, and replace the contradictions that this judge found earlier."""
        suffix = _judged_by(self.judge)
        with self._store.transaction():
            edges = [edge for edge in edges_at(self._store, [stored.key]) if edge.disagrees and edge.inferred]
            self._store.memory_edges.delete([edge.id for edge in edges if edge.reason.endswith(suffix)])
        self.detect(stored.id)

    def supersede_by_outcomes(self, memory_id: str, *, link: bool = True) -> DetectedConflict | None:
        """Return the most similar memory that had worse outcomes than this memory. With `link`, supersede it.

        This memory needs two successes. The other memory must be older, have a lower confidence and more failures, and
        contradict or repeat this memory.

        Raises:
            MemoryNotFound: The memory does not exist.
        """
        stored = find_memory(self._store, memory_id)
        if stored.stats.successes < _SUCCESSES_NEEDED or stored.state is not MemoryState.ACTIVE:
            return None
        for each in self.compare(stored.memory, stored=stored, limit=_OUTCOME_COMPARED):
            compatible = not each.judgement.conflict and each.judgement.verdict is not Verdict.SAME
            if compatible or each.stored.protected or not _is_worse(each.stored, stored):
                continue
            if not link:
                return DetectedConflict(each, new=False)
            edge = Edge(stored.key, each.stored.key, Relation.SUPERSEDES, 1.0, each.reason, inferred=True)
            with self._store.transaction():
                older = find_memory(self._store, each.stored.id)
                supersede(self._store, stored, older, edge, self._clock())
            return DetectedConflict(each, new=True)
        return None


def _in_order(other: StoredMemory, memory: Memory, stored: StoredMemory | None) -> MemoryPair:
    is_newer = stored is not None and other.created > stored.created
    return (memory, other.memory) if is_newer else (other.memory, memory)


def _is_worse(other: StoredMemory, stored: StoredMemory) -> bool:
    older = (other.created, other.key) < (stored.created, stored.key)
    less_trusted = other.stats.confidence < stored.stats.confidence
    return older and less_trusted and other.stats.failures > stored.stats.failures


def _judged_by(judge: str) -> str:
    return f" (judged by {judge})"
