"""Interrupts: Ctrl-C that would do harm where it comes is heard right after."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_back() -> Generator[None]:
    """Ctrl-C is heard when this is over: libraries in C lose it while they load, and are left half loaded.

    Signals are heard in the main thread alone, so in any other nothing needs to be done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
        if heard:
            signal.raise_signal(signal.SIGINT)
