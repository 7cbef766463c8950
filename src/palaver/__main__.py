"""`python -m palaver` is `palaver`."""

import sys


def start() -> None:
    """Run a command. An interrupt while its modules are still loaded ends it as quietly as any later one."""
    try:
        from .core.interrupts import heed

        heed()
        from .cli import main

        main()
    except KeyboardInterrupt:
        print("\npalaver: stopped. Nothing is lost; run the same command to go on.", file=sys.stderr)  # noqa: T201 - click may not be loaded
        sys.exit(130)


if __name__ == "__main__":
    start()
