"""`palaver watch`: the background archiver."""

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

import click

from ..archiver.reading.parsing import Exclusion
from ..archiver.watch.file_events import FileEvents
from ..core.config import Config
from ..core.conversation import now
from ..core.errors import ConfigInvalid, LeaseHeld, PalaverError
from ..core.home import Home
from ..observe.archive import Archive
from ..observe.background.background_archiver import BackgroundArchiver
from ..observe.llm.model_settings import why_off
from .background_push import BackgroundPush
from .command_server import keep_answering
from .demo import refuse_demo
from .output import as_json, print_message
from .program import StopSignal

_DOCUMENT_WAIT: Final = 0.05
_LOG_BYTES: Final = 500_000
_LOG_NAMES: Final = {"behind": "index_behind_changes", "exchanges": "changed_exchanges"}
"""Names of counts in the log. The keys are the internal names."""
_log = logging.getLogger(__name__)


@click.command()
@click.option("--poll", is_flag=True, help="Scan every second, for folders without change notifications.")
@as_json
def watch(*, poll: bool, as_json: bool) -> None:
    """Archive transcripts while agents write them, and keep indexed documents current, until interrupted.

    A session is sent to the language model after ten minutes without activity, if `palaver observe` has a model. Search
    finds a line two seconds after it was written. Only one background archiver can run. All other commands can be used
    in the meantime. `palaver install service` starts the archiver at login, and `palaver status` shows its state.
    Folders on network file systems are scanned every second, because they send no change notifications.

    If this machine joined a team, new entries of shared projects are pushed within about a minute.
    """
    home = Home.find()
    refuse_demo(home)
    _open_log(home)
    # All signals are safe for the data, even SIGKILL.
    stop_signal = StopSignal()
    stop_signal.install()
    keep_answering(home)
    pushes = BackgroundPush(home)

    def check_stop() -> None:
        stop_signal.check()
        pushes.step()

    try:
        listener = _listener(home, as_json=as_json, note=pushes.note)
        events, settings = FileEvents(poll=poll), _settings(home)
        # The archiver waits for both listeners in turn, so this one waits only briefly.
        document_events = FileEvents(poll=poll, seconds=_DOCUMENT_WAIT)
        BackgroundArchiver(
            home,
            events,
            listener,
            settings,
            _model_command,
            check_stop=check_stop,
            document_events=document_events,
        ).run()
    except LeaseHeld as held:
        hint = "Run `palaver status` to see its state. Stop it before you start another."
        raise PalaverError(f"The background archiver is already running: {held}", hint=hint) from None
    except KeyboardInterrupt:
        _listener(home, as_json=as_json)("stopped", {})
    finally:
        pushes.stop()


def _model_command(config: Config) -> list[str]:
    """Return the command that sends quiet sessions to the language model, or nothing if no model may be called."""
    if why_off(config):
        return []
    return [sys.executable, "-P", "-m", "palaver", "observe", "--only-quiet", "--json"]


def _open_log(home: Home) -> None:
    # A log that cannot be written, for example on a full disk, must not end the archiver.
    logging.raiseExceptions = False
    handler = RotatingFileHandler(home.log, maxBytes=_LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
    formatter = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False


def _listener(
    home: Home, *, as_json: bool, note: Callable[[str], None] = lambda _: None
) -> Callable[[str, Mapping[str, object]], None]:
    def report(event: str, numbers: Mapping[str, object]) -> None:
        note(event)
        row = " ".join((event, *(f"{_LOG_NAMES.get(name, name)}={value}" for name, value in numbers.items())))
        _log.info("%s", row)
        if as_json:
            click.echo(json.dumps({"event": event, "at": now(), **numbers}))
        elif event == "watching":
            print_message(
                f"Watching your agents' folders. The archive is {home.root}. Press Ctrl-C to stop. No data is lost."
            )
        elif event == "failed":
            print_message(str(numbers["problem"]), f"Trying again in {numbers['again_in']} s.")
        else:
            print_message(f"{time.strftime('%H:%M:%S')} {row}")

    return report


def _settings(home: Home) -> Callable[[], Config]:
    """Return a function that reads the settings. If they are invalid, it returns the last valid settings."""
    state, last = _state(home.config), Archive(home).config

    def read() -> Config:
        nonlocal state, last
        current = _state(home.config)
        if current != state:
            state = current
            try:
                found = Archive(home).config
                Exclusion(found.exclude)
            except ConfigInvalid as problem:
                print_message(str(problem), f"{problem.hint} Until then, the previous settings apply.")
            else:
                last = found
        return last

    return read


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes when the file is changed or replaced, or None if the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
