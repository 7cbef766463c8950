"""Closing: what is opened in a `with` is let go of at its end."""

import pytest

from palaver.core.closing import Closing


class Held(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_it_is_closed_once_at_the_end() -> None:
    """Not before, and not twice."""
    with Held() as held:
        assert held.closed == 0

    assert held.closed == 1


def test_it_is_closed_when_something_fails() -> None:
    """What failed is told all the same."""
    held = Held()
    with pytest.raises(ValueError, match="broken"), held:
        raise ValueError("broken")

    assert held.closed == 1
