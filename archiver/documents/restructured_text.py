"""Headings and docinfo of reStructuredText.

Only titles and the field list below the document title are parsed. Directives never run, and unknown directives, such
as those of Sphinx, cause no errors.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from .outline import Heading

_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1*\s*")
_FIELD: Final = re.compile(r":(?![: ])((?:[^:\\]|\\.|:(?![ `]))+):(?:\s+(.*)|\s*)$")
_SHORT: Final = 4
"""Minimum length of an underline that is shorter than its title. docutils accepts such a title with a warning."""


def headings(text: str) -> Iterator[Heading]:
    """Yield the section titles. The order in which their adornment styles first occur determines their levels."""
    styles: list[str] = []
    rows = text.split("\n")
    number = 0
    while number < len(rows):
        found = _title_at(rows, number)
        if found is None:
            number += 1
            continue
        style, title, count = found
        if style not in styles:
            styles.append(style)
        yield Heading(styles.index(style) + 1, title, number, count)
        number += count


def metadata(text: str) -> dict[str, str]:
    """Return the docinfo: the field list at the beginning or below the document title, and the title itself."""
    rows = text.split("\n")
    start = _after_blank(rows, 0)
    title = _title_at(rows, start)
    if title is not None:
        start = _after_blank(rows, start + title[2])
    above = {"title": title[1]} if title is not None else {}
    return above | {name.lower(): value for name, value in _fields(rows, start)}


def _title_at(rows: list[str], number: int) -> tuple[str, str, int] | None:
    """Return the style, the title and the number of rows of a title that begins at a row, or None."""
    first, second, third = (*rows[number : number + 3], "", "", "")[:3]
    if number and rows[number - 1].strip() and not _ADORNMENT.fullmatch(rows[number - 1]):
        return None
    if over := _ADORNMENT.fullmatch(first):
        title = second.strip()
        if title and first.rstrip() == third.rstrip() and _fits(title, first) and not _ADORNMENT.fullmatch(second):
            return over[1] * 2, title, 3
        return None
    under = _ADORNMENT.fullmatch(second)
    if under and first.strip() and not first[0].isspace() and _fits(first.rstrip(), second):
        return under[1], first.rstrip(), 2
    return None


def _fits(title: str, adornment: str) -> bool:
    length = len(adornment.rstrip())
    return length >= _SHORT or length >= _width(title)


def _width(text: str) -> int:
    """Return the number of columns of a text.

    A wide character, as in Chinese, takes two columns. A combining character takes none.
    """
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _fields(rows: list[str], start: int) -> Iterator[tuple[str, str]]:
    name, value = "", list[str]()
    for row in rows[start:]:
        if field := _FIELD.match(row):
            if name:
                yield name, " ".join(value)
            name, value = field[1], [field[2] or ""]
        elif name and (row.startswith((" ", "\t")) or not row.strip()):
            value.append(row.strip())
        else:
            break
    if name:
        yield name, " ".join(value)


def _after_blank(rows: list[str], start: int) -> int:
    return next((number for number in range(start, len(rows)) if rows[number].strip()), len(rows))
