"""`palaver watch`: the background archiver."""

import json
import logging
import signal
import time
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

import click

from palaver.archiver.reading.exclusion import Exclusion
from palaver.archiver.watch.events import FileEvents
from palaver.core.clock import now
from palaver.core.config import Config
from palaver.core.errors import ConfigInvalid, LeaseHeld, PalaverError
from palaver.core.home import Home
from palaver.observe.background.watching import Watcher

from .demo import refuse_demo
from .options import as_json
from .output import complain

_LOG_BYTES: Final = 500_000
_PLAIN: Final = {"behind": "index_behind_changes", "exchanges": "changed_exchanges"}
"""Numbers that need a longer name where nobody can look up what they count."""
_log = logging.getLogger(__name__)


@click.command()
@click.option("--poll", is_flag=True, help="Look every second, for folders that tell nothing of their changes.")
@as_json
def watch(*, poll: bool, as_json: bool) -> None:
    """Archive what agents write as they write it, until it is stopped.

    A line is found by `search` two seconds after it was written, and learned from soon after. Only one can run; the
    other commands work meanwhile. `palaver setup service` has it started for you, and `palaver status` shows what it
    does. Folders on network file systems are looked at every second, because nothing tells what happens there.
    """

    home = Home.find()
    refuse_demo(home)
    _open_log(home)
    # Both ways of being stopped are one; nothing is lost by either, nor by being killed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        read = _settings(home)
        Watcher(
            home,
            FileEvents(poll=poll),
            _teller(home, as_json=as_json),
            model=lambda: read().model,
            exclude=lambda: read().exclude,
        ).run()
    except LeaseHeld as held:
        hint = "`palaver status` shows what it does. It has to end before another can begin."
        raise PalaverError(f"the background archiver runs already: {held}", hint=hint) from None
    except KeyboardInterrupt:
        _teller(home, as_json=as_json)("stopped", {})


def _open_log(home: Home) -> None:
    # A log that cannot be written, as on a full disk, must not be the end of what it tells about.
    logging.raiseExceptions = False
    handler = RotatingFileHandler(home.log, maxBytes=_LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
    formatter = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False


def _teller(home: Home, *, as_json: bool) -> Callable[[str, Mapping[str, object]], None]:
    def tell(event: str, numbers: Mapping[str, object]) -> None:
        row = " ".join((event, *(f"{_PLAIN.get(name, name)}={value}" for name, value in numbers.items())))
        _log.info("%s", row)
        if as_json:
            click.echo(json.dumps({"event": event, "at": now(), **numbers}))
        elif event == "watching":
            complain(f"Watching your agents' folders; the archive is {home.root}. Ctrl-C stops it, nothing is lost.")
        elif event == "failed":
            complain(str(numbers["problem"]), f"Trying again in {numbers['again_in']} s, until it works.")
        else:
            complain(f"{time.strftime('%H:%M:%S')} {row}")

    return tell


def _settings(home: Home) -> Callable[[], Config]:
    """What the settings say at the moment; what they said last, while they cannot be read."""

    state, last = _state(home.config), Config.read(home.config)

    def read() -> Config:
        nonlocal state, last
        present = _state(home.config)
        if present != state:
            state = present
            try:
                found = Config.read(home.config)
                Exclusion(found.exclude)
            except ConfigInvalid as problem:
                complain(str(problem), f"{problem.hint} Until then the settings are what they were.")
            else:
                last = found
        return last

    return read


def _state(path: Path) -> tuple[int, int, int] | None:
    """What tells that a file is another one than before; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
