"""The JSON of `fsck`, `rebuild` and `doctor`, which we promise to keep."""

from collections.abc import Iterable
from typing import TypedDict

from ..core.checkup import Checkup, Diagnosis, Finding, Rebuilt
from .quote import clean


class FindingJson(TypedDict):
    """Something that is not as it should be."""

    part: str
    problem: str
    remedy: str
    repaired: bool


class CheckupJson(TypedDict):
    """What `fsck` compared and found."""

    home: str
    sound: bool
    compared: dict[str, int]
    notes: dict[str, str]
    findings: list[FindingJson]


class DiagnosisJson(TypedDict):
    """How everything is."""

    home: str
    healthy: bool
    facts: dict[str, str]
    findings: list[FindingJson]


class RebuiltJson(TypedDict):
    """What was made anew."""

    generation: str
    entries: int
    vectors: int
    reread: int
    recovered: int
    problems: list[FindingJson]


def checkup_json(checkup: Checkup) -> CheckupJson:
    """What `fsck` compared and found, as JSON."""
    return CheckupJson(
        home=str(checkup.home),
        sound=checkup.sound,
        compared=checkup.compared,
        notes=checkup.notes,
        findings=_findings(checkup.findings),
    )


def diagnosis_json(diagnosis: Diagnosis) -> DiagnosisJson:
    """How everything is, as JSON."""
    return DiagnosisJson(
        home=str(diagnosis.home),
        healthy=diagnosis.healthy,
        facts={name: clean(told) for name, told in diagnosis.facts.items()},
        findings=_findings(diagnosis.findings),
    )


def rebuilt_json(rebuilt: Rebuilt) -> RebuiltJson:
    """What was made anew, as JSON."""
    return RebuiltJson(
        generation=rebuilt.generation,
        entries=rebuilt.entries,
        vectors=rebuilt.vectors,
        reread=rebuilt.reread,
        recovered=rebuilt.recovered,
        problems=_findings(rebuilt.problems),
    )


def _findings(findings: Iterable[Finding]) -> list[FindingJson]:
    return [
        FindingJson(part=each.part, problem=clean(each.problem), remedy=clean(each.remedy), repaired=each.repaired)
        for each in findings
    ]
