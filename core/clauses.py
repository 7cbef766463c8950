"""Clauses: shorten a sentence at the end of a clause."""

import re

_CLAUSE = re.compile(
    r"""\s(?:—|–|-|->|→|&|\+)\s|[;:,.](?=\s)|\s\(
    |\s(?:and|but|or|by|with|without|for|from|when|while|so|because|using|that|which|where|since|in|on|into|to|instead
    |after|before|if|as)\s""",
    re.IGNORECASE | re.VERBOSE,
)
_DANGLING = frozenset(
    "a an the of to and or nor but for from with without in on at by as into onto over under via per is are was were be"
    " that which who when where while if then than so it its this these those not no do does did has have had can will"
    " would should could must may might both all any each such their your our my his her because since until after"
    " before between also only when same new".split()
)
_LOOSE = " ,;:.—–-→>&+/"
_OPEN_TO_CLOSED = {"(": ")", "[": "]", "“": "”"}


def end_at_clause(text: str, end: int, least: int) -> str:
    """Return the beginning of a text up to its last clause, without trailing function words.

    Args:
        text: A text that is too long, or its beginning.
        end: Position of the last possible end, between two words. It applies if the text has no later clause.
        least: Position of the earliest clause that may end the text.
    """
    clauses = [clause.start() for clause in _CLAUSE.finditer(text) if clause.start() >= least]
    return _without_loose_end(text[: clauses[-1] if clauses else end])


def _without_loose_end(text: str) -> str:
    """Remove an unclosed bracket, and trailing function words and punctuation."""
    for opened, closed in _OPEN_TO_CLOSED.items():
        if text.count(opened) > text.count(closed):
            text = text[: text.rfind(opened)] or text
    words = text.rstrip(_LOOSE).split(" ")
    while len(words) > 1 and (words[-1].lower() in _DANGLING or not words[-1].strip(_LOOSE)):
        words.pop()
    return " ".join(words).rstrip(_LOOSE)
