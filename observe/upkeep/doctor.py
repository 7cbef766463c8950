"""Doctor: one look at everything that can be wrong, each part by itself, and the one command that helps.

It only reads, and a part that cannot be read is a finding like any other: a broken home is what it is for.
"""

from collections.abc import Callable
from typing import Final

from ...core.checkup import Diagnosis, Finding
from ...core.errors import ConfigInvalid, PalaverError
from . import holdings, surroundings, workings
from .patient import Answer, Fact, Patient

CHECKS: Final[tuple[Callable[[Patient], Answer], ...]] = (
    surroundings.versions,
    surroundings.folder,
    surroundings.permissions,
    holdings.database,
    holdings.lines,
    holdings.copies,
    holdings.strays,
    holdings.reading,
    workings.index,
    workings.learning,
    holdings.forgotten,
    surroundings.model,
    workings.stages,
    workings.background,
    holdings.agents,
    surroundings.settings,
    workings.dead,
)
"""Every part that is looked at, in the order in which it is shown."""


def diagnose(patient: Patient) -> Diagnosis:
    """Look at every part, in order."""
    diagnosis = Diagnosis(patient.home.root)
    for check in CHECKS:
        try:
            answers = list(check(patient))
        except ConfigInvalid as problem:
            # Whichever parts would heed them, they are told once.
            told_once = Finding(surroundings.settings.__name__, str(problem), problem.hint)
            answers = [] if told_once in diagnosis.findings else [told_once]
        except PalaverError as problem:
            answers = [Finding(check.__name__, str(problem), problem.hint)]
        except OSError as error:
            told = f"{error.filename or patient.home.root}: {error.strerror or error}"
            answers = [Finding(check.__name__, told, "Check who owns it and its rights.")]
        for answer in answers:
            if isinstance(answer, Fact):
                diagnosis.facts[answer.name] = answer.told
            else:
                diagnosis.findings.append(answer)
    if patient.store is not None:
        patient.store.close()
    return diagnosis
