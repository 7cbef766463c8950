"""Decide whether a newer statement certainly replaces an older one: same subject, and one value or a denial apart."""

from collections.abc import Sequence

from .lexicon import AUXILIARIES, CHANGES, EMPTY, GENERIC, LIGHT, NEGATORS, SCOPES, UNITS
from .rivalry import opposite, rivals, values
from .wording import Statement, Word, clauses, stem_of, whole

_GRAMMAR = EMPTY | CHANGES | NEGATORS


def told_apart(older: str, newer: str, new_values: int = 0) -> bool:
    """Return whether each text says something that the other does not say, so that their subjects may differ.

    Numbers do not count, and neither do as many phrases of the newer text as it has `new_values`.
    """
    new = whole(newer)
    gone, come = ([word for word in words if not word.number] for words in _apart(whole(older), new))
    if not gone or not come:
        return False
    # What the newer text begins with is its subject, and no new value.
    return come[0] == new.words[0] or len(_runs(come, new)) > new_values


def is_certain(older: str, newer: str, *, named: bool = False) -> bool:
    """Return whether the newer text denies all of the older one, or differs from it in one value alone.

    `named` is whether the newer text names the old value as replaced.
    """
    old, new = whole(older), whole(newer)
    if SCOPES.intersection(old.plain) != SCOPES.intersection(new.plain):
        return False
    said = {word.stem for word in old.words}
    if any(said == {word.stem for word in each.words} and each.denied != old.denied for each in clauses(newer)):
        return True
    gone, come = _apart(old, new)
    runs = _runs(come, new)
    same_verbs = not _light(new) - _light(old) and _light(old) - _light(new) <= GENERIC
    if old.denied != new.denied or not same_verbs or len(runs) != 1:
        return False
    if named:
        return not gone and _in_predicate(come, newer, adjunct=True)
    return len(_runs(gone, old)) == 1 and _same_kind(gone, come) and _in_predicate(come, newer, _plain(gone, come))


def _apart(old: Statement, new: Statement) -> tuple[list[Word], list[Word]]:
    """Return the content words that only the older, and that only the newer statement has."""
    return (
        [word for word in old.words if not word.light and word.stem not in new.stems],
        [word for word in new.words if not word.light and word.stem not in old.stems],
    )


def _light(statement: Statement) -> set[str]:
    return {word.stem for word in statement.words if word.light}


def _runs(words: Sequence[Word], of: Statement) -> list[list[Word]]:
    """Group words that only content words stand between: each group is one phrase."""
    runs: list[list[Word]] = []
    for word in words:
        if runs and _GRAMMAR.isdisjoint(of.plain[runs[-1][-1].at : word.at]):
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _same_kind(gone: Sequence[Word], come: Sequence[Word]) -> bool:
    """Return whether two phrases are two values of one thing: numbers of one unit, rivals, opposites or names."""
    if any(word.number for word in (*gone, *come)):
        return len(gone) == len(come) == 1 and gone[0].unit == come[0].unit and values(gone[0], come[0])
    named = all(word.value for word in (*gone, *come))
    return named or any(rivals(one, other) or opposite(one, other) for one in gone for other in come)


def _plain(gone: Sequence[Word], come: Sequence[Word]) -> bool:
    """Return whether a phrase is a value wherever it is said: a measure, or one of a closed class of alternatives."""
    return come[0].number or any(rivals(one, other, timeless=True) for one in gone for other in come)


def _in_predicate(come: Sequence[Word], newer: str, adjunct: bool) -> bool:
    """Return whether the new value follows the verb of its clause, so that it is no part of the subject.

    Without `adjunct` it also follows the verb at once: `runs on Monday` but not `takes an hour on Monday`.
    """
    for clause in clauses(newer):
        places = {word.stem: word.at for word in clause.words}
        if all(word.stem in places for word in come):
            before, after = clause.plain[: places[come[0].stem]], clause.plain[places[come[-1].stem] + 1 :]
            break
    else:
        return False
    if come[-1].number and after and after[0] in UNITS:
        after = after[1:]
    verbs = [place for place, word in enumerate(before) if _is_verb(word)]
    rest = after[: after.index("instead")] if "instead" in after else after
    while rest and rest[-1] in EMPTY | CHANGES:
        rest = rest[:-1]
    if not verbs or any(map(_is_verb, rest)):
        return False
    between = before[verbs[-1] + 1 :]
    if come[0].number:
        return bool(come[0].unit) or "in" not in between[-1:]
    return adjunct or (_GRAMMAR.issuperset(between) and not {"for", "during"}.intersection(between))


def _is_verb(word: str) -> bool:
    return word in AUXILIARIES or word in CHANGES or stem_of(word) in LIGHT
