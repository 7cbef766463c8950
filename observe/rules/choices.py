"""Choices that an assistant states in its replies: what it decided to do, and what it decided to leave out."""

from collections.abc import Iterator

from ...core.conversation import Turn
from ...core.observation import Evidence
from .handoff_notes import HandoffNote, NoteLabel
from .phrase_patterns import anywhere
from .salience import is_noise
from .statements import statements

_DECIDED = anywhere(
    r"""
    (?:i|we)(?:['’]ve|\shave)? (?:also )?(?:decided|agreed|chose|opted)
    | (?:i|we)(?:['’]ve|\shave)? (?:deliberately|intentionally)
    | (?:deliberately|intentionally) (?:not|left|kept|out|omitted|excluded|unchanged|skipped) | on purpose
    | decided (?:not to|against|to keep|to leave) | opted (?:not to|against)
    | went with | chosen over | (?:i|we) (?:left|kept) .{2,60} (?:as[- ]is|unchanged|out|alone|in place)
    | i did(?:n['’]t|\snot) (?:add|change|touch|include|rename|remove|implement|refactor|apply|bump|migrate|move|extend
    |delete|merge|commit|use)
    | (?:is|are|was|were|stays?|remains?|left|keep|kept) out of scope | out of scope (?:as|for|because)
    | not worth (?:the|it|adding|doing|a|fixing) | (?:was|were|is|are|i|we) (?:deferred|postponed) | nothing gained
    | no (?:code|further)? ?changes? (?:is|are|was|were) (?:needed|required|necessary) | (?:i|we) won['’]t
    | (?:i|we) (?:skipped|rejected)[, ](?!by).{0,60}(?:because|since|as)
    """
)
_LENGTHS = range(30, 241)


def choices(reply: Turn) -> Iterator[HandoffNote]:
    """Yield the sentences of a reply that state a decision."""
    for stated in statements(reply):
        if len(stated.text) in _LENGTHS and not is_noise(stated.text) and _DECIDED.search(stated.text):
            yield HandoffNote(NoteLabel.DECIDED, stated.text, Evidence(stated.line, stated.line, stated.quote))
