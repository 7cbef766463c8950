"""Health check of a home (`palaver doctor`): independent read-only checks that report facts and problems.

A check that fails is reported as a problem, so that the health check also works on a broken home.
"""

from collections.abc import Callable, Iterator
from typing import Final

from ...core.checkup import HealthProblem, HealthReport
from ...core.errors import ConfigInvalid, PalaverError
from ...core.progress import Reporter
from . import archive_checks, environment_checks, pipeline_checks
from .consistency import check_consistency
from .health_context import Findings, HealthContext, StoreUnreadable

CHECKS: Final[tuple[Callable[[HealthContext], Findings], ...]] = (
    environment_checks.versions,
    environment_checks.folder,
    environment_checks.permissions,
    archive_checks.database,
    archive_checks.archive,
    archive_checks.copies,
    archive_checks.copies_without_rows,
    archive_checks.outdated_copies,
    pipeline_checks.index,
    pipeline_checks.observations,
    archive_checks.deletions,
    environment_checks.model,
    pipeline_checks.stages,
    pipeline_checks.background,
    archive_checks.agents,
    environment_checks.language_model,
)
"""All checks, in display order."""


def diagnose(context: HealthContext, deep: Reporter | None = None) -> HealthReport:
    """Run all checks. With `deep`, which is called with the progress, also verify the checksums of all stored data."""
    found = HealthReport(context.home.root)
    # The deep check runs first, so that the other checks see its results.
    verified = list(_findings(context, lambda _: _verified(context, deep), "checksums")) if deep else []
    for check in CHECKS:
        _add(found, list(_findings(context, check, check.__name__.replace("_", " "))))
    _add(found, verified)
    if context.readable_store is not None:
        context.readable_store.close()
    return found


def _verified(context: HealthContext, report: Reporter) -> Findings:
    done = check_consistency(context.home, context.model, context.config.exclude, report=report)
    checked = ", ".join(f"{kind} {count:,}" for kind, count in done.checked.items())
    yield "checksums", f"verified: {checked}" if checked else "not verified"
    yield from done.problems


def _findings(
    context: HealthContext, check: Callable[[HealthContext], Findings], label: str
) -> Iterator[tuple[str, str] | HealthProblem]:
    try:
        yield from check(context)
    except StoreUnreadable:
        return
    except ConfigInvalid as problem:
        yield HealthProblem("settings", str(problem), problem.hint)
    except PalaverError as problem:
        yield HealthProblem(label, str(problem), problem.hint)
    except OSError as error:
        reason = f"{error.filename or context.home.root}: {error.strerror or error}"
        yield HealthProblem(label, reason, "Check its owner and permissions.")


def _add(report: HealthReport, findings: Findings) -> None:
    known = {(each.part, each.problem) for each in report.problems}
    for each in findings:
        if isinstance(each, tuple):
            report.facts[each[0]] = each[1]
        elif (each.part, each.problem) not in known:
            report.problems.append(each)
