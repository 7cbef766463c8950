"""Tests of core/resources.py: a resource in a `with` block is closed at the end of the block."""

import pytest

from palaver.core.runtime import Closing


class Resource(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_resource_is_closed_once_at_the_end() -> None:
    """The resource is open inside the block, and is closed exactly once at its end."""
    with Resource() as resource:
        assert resource.closed == 0

    assert resource.closed == 1


def test_resource_is_closed_after_an_error() -> None:
    """If the block raises an error, the resource is closed and the error is raised."""
    resource = Resource()
    with pytest.raises(ValueError, match="broken"), resource:
        raise ValueError("broken")

    assert resource.closed == 1
