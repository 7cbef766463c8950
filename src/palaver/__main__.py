"""`python -m palaver` is `palaver`."""

import signal
import sys


def start() -> None:
    """Run a command. An interrupt while its modules load ends it with 130; one after its end changes nothing."""
    try:
        from .core.interrupts import heed

        heed()
        from .cli import main

        main()
    except KeyboardInterrupt:
        print("\npalaver: stopped.", file=sys.stderr)  # noqa: T201 - click may not be loaded
        sys.exit(130)
    finally:
        for late in (signal.SIGINT, signal.SIGALRM):  # the latter repeats an interrupt that `interrupts.hear` put off
            signal.signal(late, signal.SIG_IGN)


if __name__ == "__main__":
    start()
