"""Tests that check many cases in one loop."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(names: str, cases: Iterable[Any], label: Callable[[Any], str] = repr) -> Callable[[Test], Test]:
    """Run a test for every case in one loop, and report every case that fails.

    A cheaper `pytest.mark.parametrize` for quick checks: all cases share one setup, so they must not depend on fixtures
    that a case changes.

    Args:
        names: Names of the test's parameters that a case sets, separated by commas.
        cases: One value per case, or one tuple per case if there are several names.
        label: Function that returns the name of a case for the report.
    """
    rows, parameters = list(cases), names.replace(",", " ").split()
    if not rows:
        raise ValueError(f"No case for {names}. Add one, or remove the test.")

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        fixtures = [value for name, value in signature.parameters.items() if name not in parameters]

        @wraps(test)
        def loop(**resources: object) -> None:
            failures, labels = list[BaseException](), list[str]()
            for row in rows:
                values = row if len(parameters) > 1 else (row,)
                try:
                    test(**dict(zip(parameters, values, strict=True)), **resources)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases run too
                    error.add_note(f"Case: {label(row)}")
                    failures.append(error)
                    labels.append(label(row))
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} cases fail: {', '.join(labels)}", failures)

        vars(loop)["__signature__"] = signature.replace(parameters=fixtures)
        return loop

    return decorate
