"""Is Ctrl-C heard, and not before it may be?"""

import subprocess
import sys
from pathlib import Path

_LOADED_WHILE_INTERRUPTED = """
import signal

class Told:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)

class Telling:
    told = Told()

signal.raise_signal(signal.SIGINT)
done = True
"""


def ran(program: str, folder: Path) -> str:
    """What a process of its own prints, started in a folder: an alarm of this one ends tests."""
    command = [sys.executable, "-c", f"import signal\nfrom palaver.core.interrupts import heed\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert done.stderr == ""
    return done.stdout.strip()


def test_an_interrupt_is_heard_when_what_it_would_harm_is_loaded(tmp_path: Path) -> None:
    """A module that loads comes to its end, and then it is an interrupt like any other."""
    (tmp_path / "loading.py").write_text(_LOADED_WHILE_INTERRUPTED)
    program = """
heed()
try:
    import loading
    while True:
        signal.pause()
except KeyboardInterrupt:
    print(loading.done)
"""
    assert ran(program, tmp_path) == "True"


def test_where_nothing_loads_it_is_heard_at_once(tmp_path: Path) -> None:
    """It is the interrupt that it always was."""
    program = """
heed()
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("heard")
"""
    assert ran(program, tmp_path) == "heard"


def test_who_is_not_to_be_interrupted_stays_so(tmp_path: Path) -> None:
    """A shell has what runs in its background ignore Ctrl-C."""
    program = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
heed()
print(signal.getsignal(signal.SIGINT).name)
"""
    assert ran(program, tmp_path) == "SIG_IGN"
