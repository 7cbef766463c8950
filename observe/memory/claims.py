"""Compare two claims by rules: whether the newer one denies, changes or repeats the older one.

Two statements share their subject when, apart from the words in which they differ, one says nothing that the other
does not say. Then they disagree when one is denied, or when the words that differ are opposites, exclude each other,
or are numbers of one unit or names in the same place. `replacing.py` decides whether a change is certain.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct

from .lexicon import CATEGORIES, EXCLUSIVE, PEOPLE, SINGULAR, TURNS
from .replacing import is_certain, told_apart
from .rivalry import opposite, rivals, values
from .wording import Statement, Word, clauses, normal, sentences, whole

_PUNCTUATION = ".,;:!?\"'`’()-_"


class Difference(Enum):
    """How two statements differ."""

    NONE = auto()
    OPPOSED = auto()
    CHANGED = auto()
    OTHER = auto()


class Comparison(Struct, frozen=True):
    """Difference with its reason in one sentence. `akin` where rules only find that both have one subject.

    A change is `certain` when the statements differ in the value that was replaced and in nothing else.
    """

    difference: Difference
    reason: str
    akin: bool = False
    certain: bool = False


def compare(older: str, newer: str) -> Comparison:
    """Return how the newer text differs from the older: the plainest disagreement between their statements."""
    if (replaced := _replaced(older, newer)) is not None and not told_apart(older, newer, new_values=1):
        reason = f"The newer one says that {replaced!r} was replaced"
        return Comparison(Difference.CHANGED, reason, certain=is_certain(older, newer, named=True))
    disagreement = next(filter(None, (_disagree(old, new) for old, new in _pairs(older, newer))), None)
    if disagreement is not None:
        if not _changes(newer) or _changes(older):
            return Comparison(Difference.OPPOSED, disagreement)
        if not told_apart(older, newer, new_values=1):
            return Comparison(Difference.CHANGED, disagreement, certain=is_certain(older, newer))
    if (subject := _turned(older, newer)) is not None and not told_apart(older, newer):
        return Comparison(Difference.CHANGED, f"The newer one says that {subject!r} changed")
    if _same(older, newer):
        return Comparison(Difference.NONE, "Both say the same")
    if _changes(newer) and not _changes(older) and whole(older).stems == whole(newer).stems:
        return Comparison(Difference.CHANGED, "The newer one says the same words in another order")
    return Comparison(Difference.OTHER, "Both can hold", akin=_akin(older, newer))


def _akin(older: str, newer: str) -> bool:
    """Whether the one that says less has more than a third of its words from the other."""
    ours, theirs = ({stem for each in sentences(text) for stem in each.stems - PEOPLE} for text in (older, newer))
    return 3 * len(ours & theirs) > min(len(ours), len(theirs))


def _pairs(older: str, newer: str) -> Iterator[tuple[Statement, Statement]]:
    """Sentences with sentences, and then clauses with clauses."""
    for old in sentences(older):
        for new in sentences(newer):
            yield old, new
    for old in clauses(older):
        for new in clauses(newer):
            yield old, new


def _changes(text: str) -> bool:
    return any(statement.changes for statement in sentences(text))


def _same(older: str, newer: str) -> bool:
    """Whether both make the same statements, word for word but for grammar."""

    def told(text: str) -> set[tuple[tuple[str, ...], bool]]:
        return {(tuple(word.stem for word in statement.words), statement.denied) for statement in sentences(text)}

    # What has no words that carry meaning, such as signs alone, says nothing that could be the same.
    alike = told(older) == told(newer) != set() and _signs(older) == _signs(newer)
    return older == newer or alike


def _signs(text: str) -> list[str]:
    """The signs of a text that mean something: `a > b` is not `a < b`."""
    return [sign for sign in text if not sign.isalnum() and not sign.isspace() and sign not in _PUNCTUATION]


def _disagree(old: Statement, new: Statement) -> str | None:
    """Why both cannot hold; None where they can."""
    shared = old.stems & new.stems
    if not shared:
        return None
    only_old = [word for word in old.words if word.stem not in shared and not word.light]
    only_new = [word for word in new.words if word.stem not in shared and not word.light]
    if (opposed := _clash(old, new, only_old, only_new)) is not None:
        return opposed
    if old.denied != new.denied and _about_one(only_old, only_new) and _enough(old, new, shared):
        return "One denies what the other says"
    return None


def _clash(old: Statement, new: Statement, only_old: list[Word], only_new: list[Word]) -> str | None:
    """Words in which both differ and which exclude each other, where nothing else differs on both sides."""
    lights = _light(old), _light(new)
    clashing = [
        (one, other)
        for one in [*only_old, *lights[0]]
        for other in [*only_new, *lights[1]]
        if one.stem != other.stem and (opposite(one, other) or rivals(one, other) or values(one, other))
    ]
    if not clashing:
        return _other_holder(old, new, only_old, only_new)
    opposed = any(opposite(one, other) for one, other in clashing)
    if not opposed and (old.denied != new.denied or _of_many(old, new, clashing)):
        return None
    gone_old, gone_new = {one.stem for one, _ in clashing}, {other.stem for _, other in clashing}
    kinds = CATEGORIES if any(rivals(one, other) for one, other in clashing) else frozenset[str]()
    rest_old = [word for word in only_old if word.stem not in gone_old | kinds and not word.number]
    rest_new = [word for word in only_new if word.stem not in gone_new | kinds and not word.number]
    if not _about_one(rest_old, rest_new):
        return None
    one, other = clashing[0]
    return f"{one.text!r} against {other.text!r}"


def _of_many(old: Statement, new: Statement, clashing: list[tuple[Word, Word]]) -> bool:
    """Whether the words that differ tell things apart: a name and a number at once, two numbers, or one of the many
    things that are true of a person.
    """
    named = {one.stem for one, _ in clashing if not one.number}
    numbers = {one.stem for one, _ in clashing if one.number}
    if len(numbers) > 1 or (named and numbers):
        return True
    person = old.words[0].stem in PEOPLE and new.words[0].stem in PEOPLE
    verbs = {word.stem for word in (*old.words, *new.words)}
    return person and not SINGULAR & verbs and not old.changes | new.changes


def _light(statement: Statement) -> list[Word]:
    return [word for word in statement.words if word.light]


def _about_one(rest_old: list[Word], rest_new: list[Word]) -> bool:
    """Whether one side says nothing that the other does not say, and the other not much more."""
    return min(len(rest_old), len(rest_new)) == 0 and max(len(rest_old), len(rest_new)) <= 2


def _enough(old: Statement, new: Statement, shared: frozenset[str]) -> bool:
    """Whether what is shared is more than a subject of whom many things are true."""
    return len(shared - PEOPLE) >= min(2, len(old.stems - PEOPLE), len(new.stems - PEOPLE)) > 0


def _other_holder(old: Statement, new: Statement, only_old: list[Word], only_new: list[Word]) -> str | None:
    """Two names for what only one can be, as in `Ana leads` and `Ben leads`."""
    one_only = EXCLUSIVE.intersection(old.plain, new.plain) or old.plain[1:3] == new.plain[1:3] == ("is", "the")
    if len(only_old) != 1 or len(only_new) != 1 or not one_only:
        return None
    one, other = only_old[0], only_new[0]
    return f"{one.text!r} against {other.text!r}" if one.text[:1].isupper() and other.text[:1].isupper() else None


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


def _replaced(older: str, newer: str) -> str | None:
    """What the newer text says was replaced, where the older one holds it."""
    told = normal(newer)
    said = [statement for statement in sentences(older) if not statement.denied]
    everything = {word.stem for statement in sentences(newer) for word in statement.words}
    for pattern in _OLD_VALUE:
        for match in pattern.finditer(told):
            named = {word.stem for part in sentences(match["old"]) for word in part.words if not word.light}
            for statement in said:
                stems = {word.stem for word in statement.words}
                if named & statement.stems and len(named - stems) <= 1 and (everything & stems) - named:
                    return match["old"].strip()
                if named and statement.stems - PEOPLE <= named:
                    return match["old"].strip()
    return None


def _turned(older: str, newer: str) -> str | None:
    """The subject that both begin with, where the newer says that it changed and the older how it was."""
    for old in sentences(older):
        for new in sentences(newer):
            if old.changes or not new.changes or not old.words or not new.words:
                continue
            head, other = old.words[0], new.words[0]
            if head.stem != other.stem or head.stem in PEOPLE:
                continue
            verbs = {word.stem for word in old.words[1:]} & {word.stem for word in new.words[1:]}
            if new.changes & TURNS and (verbs or len(old.words) <= 4):
                return head.text
    return None
