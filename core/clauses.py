"""Shortening of long sentences. A shortened sentence ends before a clause or a phrase."""

import re

_CLAUSE = re.compile(
    r"""\s(?:—|–|-|->|→|&|\+)\s|[;:,.](?=\s)|\s\(
    |\s(?:and|but|or|while|so|because|since|instead|after|before)\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the start of a clause, such as ` because `, a comma or a dash."""
_RELATIVE = re.compile(r"\s(?:that|which|who|whose|where|when|if)\s", re.IGNORECASE)
"""Pattern for the start of a clause that depends on the words before it, such as ` that ` in `the part that failed`."""
_COMPLETE = 4
"""A text may end before a relative clause only if its own clause has more words than this."""
_PHRASE = re.compile(r"\s(?:by|with|without|for|from|using|containing|in|on|into|to|as)\s", re.IGNORECASE)
"""Pattern for the start of a phrase within a clause, such as ` with ` or ` from `."""
_DANGLING = frozenset(
    "a an the of to and or nor but for from with without in on at by as into onto over under via per is are was were be"
    " that which who when where while if then than so it its this these those not no do does did has have had can will"
    " would should could must may might both all any each such their your our my his her because since until after"
    " before between also only when same new containing".split()
)
_PRONOUNS = frozenset("it its this that these those both all any each such so then also only same not no".split())
"""Words of `_DANGLING` that can end a complete sentence."""
_LOOSE = " ,;:.—–-→>&+/"
_OPEN_TO_CLOSED = {"(": ")", "[": "]", "“": "”"}


def end_at_clause(text: str, end: int, least: int, lowest: int | None = None) -> str:
    """Shorten a text to end before its last clause, or else before its last phrase.

    Function words and punctuation at the end are removed.

    Args:
        text: A text that is too long, or its beginning.
        end: Position at which the text ends if no clause or phrase begins there. It is between two words.
        least: Earliest position at which the text may end.
        lowest: Lower limit for a last attempt: if nothing begins at or after `least`, the text ends before the last
            clause that begins at or after `lowest`. None for no such attempt.
    """
    for starts, earliest in ((_clauses(text), least), (_starts(_PHRASE, text), least), (_clauses(text), lowest)):
        if earliest is not None and (found := [start for start in starts if start >= earliest]):
            return _without_loose_end(text[: found[-1]])
    return _without_loose_end(text[:end])


def complete_clauses(text: str, least: int) -> str:
    """Return the text up to the start of its last clause at or after `least`, or an empty string without one."""
    starts = [start for start in _clauses(text) if start >= least]
    return _without_loose_end(text[: starts[-1]]) if starts else ""


def is_open_ended(text: str) -> bool:
    """Return whether a text ends with a function word or a colon, so that something must follow."""
    last = text.rpartition(" ")[2].lower().strip(_LOOSE)
    return text.rstrip("*` ").endswith((":", "：")) or (last in _DANGLING and last not in _PRONOUNS)


def _clauses(text: str) -> list[int]:
    """Return the positions before which a text may end: the starts of its clauses.

    The start of a relative clause counts only if more than `_COMPLETE` words of the enclosing clause precede it.
    """
    clauses = _starts(_CLAUSE, text)
    relative = [
        start
        for start in _starts(_RELATIVE, text)
        if len(text[max([0, *(each for each in clauses if each < start)]) : start].split()) > _COMPLETE
    ]
    return sorted([*clauses, *relative])


def _starts(pattern: re.Pattern[str], text: str) -> list[int]:
    return [found.start() for found in pattern.finditer(text)]


def _without_loose_end(text: str) -> str:
    """Remove an unclosed bracket, and trailing function words and punctuation."""
    for opened, closed in _OPEN_TO_CLOSED.items():
        if text.count(opened) > text.count(closed):
            text = text[: text.rfind(opened)] or text
    words = text.rstrip(_LOOSE).split(" ")
    while len(words) > 1 and (words[-1].lower() in _DANGLING or not words[-1].strip(_LOOSE)):
        words.pop()
    return " ".join(words).rstrip(_LOOSE)
