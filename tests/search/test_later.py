"""Does work that runs beside end well?"""

from threading import Event

import pytest

from palaver.core.errors import ModelUnavailable
from palaver.search.later import Later


def test_it_runs_beside() -> None:
    """The work goes on while its result is not asked for."""
    begun = Event()

    def work() -> str:
        begun.set()
        return "done"

    with Later(work) as later:
        assert begun.wait(10)
        assert later.result() == "done"


def test_what_goes_wrong_is_told_to_who_asks() -> None:
    """What the work raises is raised where its result is asked for, and nowhere else."""

    def work() -> str:
        raise ModelUnavailable("no model")

    with Later(work):
        pass
    with Later(work) as later, pytest.raises(ModelUnavailable, match="no model"):
        later.result()


def test_nobody_leaves_before_it_has_ended() -> None:
    """Whatever happens meanwhile, the work has ended when the block is left."""
    go_on, ended = Event(), list[bool]()

    def work() -> None:
        ended.append(go_on.wait(10))

    def fails() -> None:
        with Later(work):
            go_on.set()
            raise KeyError

    with pytest.raises(KeyError):
        fails()

    assert ended == [True]
