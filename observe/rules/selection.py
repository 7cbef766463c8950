"""Selection of statements within a budget, each with its evidence."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ...core.conversation import Exchange, Milliseconds
from ...core.observation import Evidence
from ...core.sentences import truncate
from .salience import salience
from .statements import Statement

FACTS_MAX = 8
FACTS_CHARACTERS = 1000
"""Maximum characters of all facts. Together with the narrative, they have about 400 tokens."""
NARRATIVE_MAX = 800
_SHORT = 200
"""Maximum characters of each fact if the facts exceed their total limit."""


def select(
    candidates: Iterable[Statement], *, count: int = FACTS_MAX, characters: int = FACTS_CHARACTERS, least: int = 1
) -> list[Statement]:
    """Return the most salient statements that fit, in their original order and without repetitions.

    If not all of them fit, long statements are shortened, because more facts are worth more than longer ones.
    """
    distinct = _distinct(candidates)
    if sum(len(statement.text) for statement in distinct) > characters:
        distinct = [replace(statement, text=truncate(statement.text, _SHORT)) for statement in distinct]
    ranked = sorted(distinct, key=lambda statement: -salience(statement.raw))
    kept: list[Statement] = []
    room = characters
    for statement in ranked:
        if len(kept) < count and len(statement.text) <= room and salience(statement.raw) >= least:
            kept.append(statement)
            room -= len(statement.text)
    return [statement for statement in distinct if statement in kept]


def _distinct(candidates: Iterable[Statement]) -> list[Statement]:
    """Return the statements without repetitions. A statement that adds a word to another is not a repetition."""
    kept: list[Statement] = []
    known: list[frozenset[str]] = []
    for statement in candidates:
        words = frozenset(word.strip(".,:;!()").lower() for word in statement.text.split())
        if not any(words <= earlier for earlier in known):
            kept.append(statement)
            known.append(words)
    return kept


def evidence(statements: Sequence[Statement]) -> tuple[Evidence, ...]:
    """Return the evidence of each statement, in the same order."""
    return tuple(Evidence(statement.line, statement.line, statement.quote) for statement in statements)


def observed_at(exchange: Exchange) -> Milliseconds | None:
    """Return the time of an observation: the end of its exchange."""
    return exchange.ended if exchange.ended is not None else exchange.started


def narrative(parts: Iterable[str]) -> str:
    """Join sentences up to `NARRATIVE_MAX` characters, and add missing closing punctuation."""
    text = ""
    for part in parts:
        sentence = part.strip()
        if not sentence:
            continue
        sentence = sentence if sentence.rstrip("”")[-1:] in (*".!?…:", "") else sentence + "."
        if len(text) + len(sentence) < NARRATIVE_MAX:
            text = f"{text} {sentence}".strip()
    return text
