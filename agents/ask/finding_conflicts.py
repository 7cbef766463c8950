"""Findings that replace or contradict each other."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from ...core.cited_answer import Finding, FindingKind
from ...core.results import Detail
from .statement_pairs import compare

_CLAIMS = {FindingKind.DECISION, FindingKind.PATTERN}
"""Kinds of findings that state a rule or choice for the future. Two of them can contradict each other."""


def with_conflicts(
    findings: Sequence[Finding], details: Sequence[Detail], reversals: Mapping[str, str] | None = None
) -> list[Finding]:
    """Add to each finding the IDs of the findings that replace or contradict it.

    The archive stores replacements within a session, and `reversals` maps entries to later entries that state the
    opposite. In addition, `RuleJudge` compares the titles of each pair of decisions and patterns. If the first finding
    is replaced, its replacement moves to the front, or else the first finding that is not replaced.
    """
    if not findings:
        return []
    by_id = {detail.id: detail for detail in details}
    superseded = {one.id: one.replaced_by.id for one in details if one.replaced_by}
    superseded = {**(reversals or {}), **superseded}
    against: dict[str, list[str]] = {}
    claims = sorted((each for each in findings if each.kind in _CLAIMS), key=lambda each: each.at or 0)
    for older, newer in combinations([by_id[each.sources[0].id] for each in claims], 2):
        verdict = compare(older.observation.title, newer.observation.title).verdict
        if verdict == "supersedes":
            superseded.setdefault(older.id, newer.id)
        elif verdict == "contradicts":
            against.setdefault(older.id, []).append(newer.id)
            against.setdefault(newer.id, []).append(older.id)
    shown = {finding.sources[0].id for finding in findings}
    marked = [
        replace(
            each,
            superseded_by=superseded.get(each.sources[0].id, ""),
            contradicts=tuple(one for one in against.get(each.sources[0].id, ()) if one in shown),
        )
        for each in findings
    ]
    first = _newest(marked) or next((each for each in marked if not each.superseded_by), marked[0])
    return [first, *(each for each in marked if each is not first)]


def _newest(marked: Sequence[Finding]) -> Finding | None:
    """Return the finding that finally replaces the first one, or None if it is not among the findings."""
    by_id = {finding.sources[0].id: finding for finding in marked}
    found: Finding | None = marked[0]
    for _ in marked:
        if found is None or not found.superseded_by:
            break
        found = by_id.get(found.superseded_by)
    return found
