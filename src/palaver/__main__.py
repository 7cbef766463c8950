"""`python -m palaver` is `palaver`."""

import atexit
import gc
import os
import signal
import sys


def start() -> None:
    """Run a command. An interrupt while its modules are still loaded ends it as quietly as any later one."""
    gc.disable()  # hardly anything that is made while modules load is garbage; `Commands` looks for it again
    try:
        from .core.interrupts import heed

        heed()
        from .cli import main

        main()
    except KeyboardInterrupt:
        print("\npalaver: stopped.", file=sys.stderr)  # noqa: T201 - click may not be loaded
        sys.exit(130)
    except SystemExit as ended:
        if isinstance(ended.code, int | None):
            _leave(ended.code or 0)
        raise


def _leave(code: int) -> None:
    """End the process as Python does, without taking everything in it apart first, which is 10 ms of a cold search.

    Whatever asked to be called at the end is. Where a thread still works, a debugger or profiler looks on, or what was
    said cannot be written, Python ends it.
    """
    import threading  # not before Ctrl-C is heard as it should be

    if threading.active_count() > 1 or sys.gettrace() or sys.getprofile():
        return
    for stopped_by in (signal.SIGINT, signal.SIGALRM):  # also what `interrupts.hear` put off
        signal.signal(stopped_by, signal.SIG_IGN)  # nothing is left to be stopped
    atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as `multiprocessing` does
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


if __name__ == "__main__":
    start()
