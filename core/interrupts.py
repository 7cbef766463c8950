"""Interrupts: Ctrl-C that would do harm where it comes is heard right after."""

import signal
from types import FrameType
from typing import Final

_LOADING: Final = "<frozen importlib._bootstrap>"
"""Where Python loads modules."""
_AGAIN: Final = 0.01
"""Seconds until it is looked again whether a module still loads."""


def heed() -> None:
    """Hear Ctrl-C with `hear`, unless it is ignored, as in the background of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, hear)


def hear(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`, as soon as no module is being loaded.

    Libraries in C lose it while they load, or are left half loaded and crash later; Python makes another error of it
    where a class is made.
    """
    if not _is_loading(frame):
        signal.default_int_handler(number, frame)
    signal.signal(signal.SIGALRM, hear)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _LOADING:
            return True
        frame = frame.f_back
    return False
