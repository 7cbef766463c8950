"""Entry point of `python -m palaver`, which is equivalent to `palaver`."""

import os
import sys


def start() -> None:
    """Run the command line. Ctrl-C exits with status 130. After the command has finished, Ctrl-C has no effect."""
    if os.environ.get("PALAVER_OWN_RUN"):  # See core/home.py, which is not loaded here.
        return
    try:
        from .core.command_socket import run_by_server

        status = run_by_server(sys.argv)
        if status is not None:
            os._exit(status)  # All output is written. A regular exit would take 5 ms.
        from .cli import main  # Ctrl-C is handled while this loads, too.

        main()
    except KeyboardInterrupt:
        print("\npalaver: stopped.", file=sys.stderr)  # noqa: T201 - click may not be loaded
        sys.exit(130)
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    start()
