"""Fixtures for tests of the pages of a session."""

from ...archiver.conftest import history

__all__ = ["history"]
