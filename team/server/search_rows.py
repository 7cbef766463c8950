"""Rows of the search of shared items, written in the transaction of a push."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from ..protocol import SharedItem


def store(connection: Connection[Any], team: UUID, items: Sequence[SharedItem], model: str = "") -> None:
    """Replace the rows of these items."""


def delete(connection: Connection[Any], team: UUID, keys: Sequence[int]) -> None:
    """Delete the rows of the items with these keys."""
