"""A stop signal is never lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from palaver.cli.program import StopSignal

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


class Sender:
    """Object whose destructor receives a signal. Python discards exceptions in destructors."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_discarded_interrupt_is_raised_again(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """A signal whose exception Python discards stops the work at the next check."""
    discarded: list[object] = []

    def note(found: "sys.UnraisableHookArgs") -> None:
        discarded.append(found.exc_type)

    monkeypatch.setattr(sys, "unraisablehook", note)
    stop = StopSignal()
    stop.install()
    stop.check()

    Sender(number)

    assert discarded == [KeyboardInterrupt]
    with pytest.raises(KeyboardInterrupt):
        stop.check()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_the_process(number: signal.Signals) -> None:
    """After the first signal, a second one ends the process at once, whatever it does."""
    code = (
        "import os, sys\nfrom palaver.cli.program import StopSignal\nStopSignal().install()\n"
        f"try:\n    os.kill(os.getpid(), {number:d})\nexcept KeyboardInterrupt:\n    os.kill(os.getpid(), {number:d})\n"
        "sys.exit(5)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -number
