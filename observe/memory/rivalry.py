"""Words that cannot take each other's place in a true statement: opposites, rivals and values."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from .lexicon import CIRCUMSTANCES, OPPOSITES, RIVALS
from .wording import Word, stem_of

_PREFIXES = ("un", "in", "dis", "non", "im", "ir", "a", "non-")


def opposite(one: Word, other: Word) -> bool:
    """Return whether two words are opposites, by the lexicon or by a prefix."""
    if one.stem != other.stem and _in_one_row(one, other, _OPPOSED):
        return True
    short, long = (one.stem, other.stem) if len(one.stem) < len(other.stem) else (other.stem, one.stem)
    return len(short) > 3 and long.endswith(short) and long[: -len(short)] in _PREFIXES


def rivals(one: Word, other: Word, *, timeless: bool = False) -> bool:
    """Return whether two words exclude each other; `timeless` leaves out days, months and systems."""
    return _in_one_row(one, other, _TIMELESS if timeless else _RIVALRIES)


def values(one: Word, other: Word) -> bool:
    """Return whether two words are values of one kind: numbers that do not differ in their unit, or names."""
    alike = one.unit == other.unit or not (one.unit and other.unit)
    return one.value and other.value and alike and (one.number, one.of) == (other.number, other.of)


def _in_one_row(one: Word, other: Word, rows: Mapping[str, frozenset[int]]) -> bool:
    return not rows.get(one.stem, frozenset()).isdisjoint(rows.get(other.stem, ()))


def _rows_of(rows: Sequence[str]) -> dict[str, frozenset[int]]:
    """Return the numbers of the rows that each stem is in."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for number, row in enumerate(rows):
        for word in row.split():
            found[stem_of(word)].add(number)
    return {stem: frozenset(numbers) for stem, numbers in found.items()}


_OPPOSED, _RIVALRIES, _TIMELESS = _rows_of(OPPOSITES), _rows_of((*RIVALS, *CIRCUMSTANCES)), _rows_of(RIVALS)
