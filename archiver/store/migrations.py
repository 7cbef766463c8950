"""Migrations of the schema: the SQL files in `schema/`, in order.

`PRAGMA user_version` counts the migrations applied to a database. Never edit a published migration. Append a new one
instead.
"""

from pathlib import Path
from typing import Final

MIGRATIONS: Final = tuple(
    path.read_text("utf-8") for path in sorted(Path(__file__).with_name("schema").glob("[0-9]*.sql"))
)
