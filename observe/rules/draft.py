"""What will be kept? An observation on its way: statements chosen within a budget, each still tied to its proof."""

from collections.abc import Iterable, Sequence

from ...core.conversation import Exchange, Milliseconds
from ...core.observation import Evidence
from .statements import Statement
from .worth import worth

FACTS_MAX = 8
FACTS_CHARACTERS = 1000
"""With the narrative about 400 tokens, the middle of what layer 2 may cost."""
NARRATIVE_MAX = 800


def chosen(
    candidates: Iterable[Statement], *, count: int = FACTS_MAX, characters: int = FACTS_CHARACTERS, least: int = 1
) -> list[Statement]:
    """The worthiest statements that fit, in the order they were made; none that repeats another."""
    distinct = _distinct(candidates)
    ranked = sorted(distinct, key=lambda statement: -worth(statement.raw))
    kept: list[Statement] = []
    room = characters
    for statement in ranked:
        if len(kept) < count and len(statement.text) <= room and worth(statement.raw) >= least:
            kept.append(statement)
            room -= len(statement.text)
    return [statement for statement in distinct if statement in kept]


def _distinct(candidates: Iterable[Statement]) -> list[Statement]:
    """First wordings only. One other word makes a statement new: it may be a changed number, name or colour."""
    kept: list[Statement] = []
    known: list[frozenset[str]] = []
    for statement in candidates:
        words = frozenset(word.strip(".,:;!()").lower() for word in statement.text.split())
        if not any(words <= earlier for earlier in known):
            kept.append(statement)
            known.append(words)
    return kept


def evidence(statements: Sequence[Statement]) -> tuple[Evidence, ...]:
    """The proof of each statement, in the same order."""
    return tuple(Evidence(statement.line, statement.line, statement.quote) for statement in statements)


def when(exchange: Exchange) -> Milliseconds | None:
    """When something was learned: at the end of its exchange."""
    return exchange.ended if exchange.ended is not None else exchange.started


def narrative(parts: Iterable[str]) -> str:
    """Sentences put one after another, each closed, within `NARRATIVE_MAX` characters."""
    text = ""
    for part in parts:
        sentence = part.strip()
        if not sentence:
            continue
        sentence = sentence if sentence[-1] in ".!?…”:" else sentence + "."
        if len(text) + len(sentence) < NARRATIVE_MAX:
            text = f"{text} {sentence}".strip()
    return text
