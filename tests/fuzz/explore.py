"""`python -m tests.fuzz.explore TARGET [SECONDS]`: look for what breaks a target, with atheris where it is installed.

What it finds belongs into `tests/fuzz/corpus`, as TARGET-WHAT, where `test_targets.py` tries it for ever.
"""

import sys
from importlib import import_module
from typing import Any


def main(name: str, seconds: str = "60") -> None:
    """Explore until the time is over or something breaks."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["palaver"]):
        targets: Any = import_module(".targets", __package__)
    options = [sys.argv[0], f"-max_total_time={seconds}", f"-artifact_prefix={name}-", "-max_len=2000"]
    atheris.Setup(options, targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
