"""Comparison of an older and a newer statement by rules."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...observe.memory.statement_parser import ParsedStatement


class StatementPair(NamedTuple):
    """Verdict of `RuleJudge` on a newer statement, and the clauses of both statements."""

    verdict: str
    is_conflict: bool
    older: "Sequence[ParsedStatement]"
    newer: "Sequence[ParsedStatement]"


def compare(older: str, newer: str) -> StatementPair:
    """Compare two statements."""
    # Few answers compare statements, and loading the rules takes 40 ms.
    from ...observe.memory import rule_judge, statement_parser

    judgement = rule_judge.RuleJudge().judge(older, newer)
    clauses = statement_parser.clauses
    return StatementPair(judgement.verdict, judgement.conflict, clauses(older), clauses(newer))
