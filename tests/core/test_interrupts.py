"""Is Ctrl-C heard, and not before it may be?"""

import signal
import threading

import pytest

from palaver.core.interrupts import held_back


def test_an_interrupt_is_heard_when_what_it_would_harm_is_over() -> None:
    """What was begun comes to its end, and then it is an interrupt like any other."""
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)

    def load() -> None:
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("loaded")

    with pytest.raises(KeyboardInterrupt):
        load()

    assert done == ["loaded"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_an_interrupt_nothing_changes() -> None:
    """Who is not interrupted goes on, with the signal heard as before."""
    before = signal.getsignal(signal.SIGINT)
    with held_back():
        assert signal.getsignal(signal.SIGINT) is not before

    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_are_left_alone() -> None:
    """Signals are not theirs, and may not be set there."""
    heard: list[object] = []

    def load() -> None:
        with held_back():
            heard.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()

    assert heard == [signal.getsignal(signal.SIGINT)]
