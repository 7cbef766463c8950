"""Tests of core/closing.py: a resource in a `with` block is closed at the end of the block."""

import pytest

from palaver.core.closing import Closing


class Held(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_resource_is_closed_once_at_the_end() -> None:
    """The resource is open inside the block and is closed exactly once."""
    with Held() as held:
        assert held.closed == 0

    assert held.closed == 1


def test_resource_is_closed_after_an_error() -> None:
    """The resource is closed, and the error is raised."""
    held = Held()
    with pytest.raises(ValueError, match="broken"), held:
        raise ValueError("broken")

    assert held.closed == 1
