"""Fuzz a target with atheris: `python -m tests.fuzz.explore TARGET [SECONDS]`.

Add findings to `tests/fuzz/corpus` as TARGET-NAME. `test_targets.py` replays them.
"""

import sys
from importlib import import_module
from typing import Any


def main(name: str, seconds: str = "60") -> None:
    """Fuzz a target until time runs out or the target fails."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["palaver"]):
        targets: Any = import_module(".targets", __package__)
    options = [sys.argv[0], f"-max_total_time={seconds}", f"-artifact_prefix={name}-", "-max_len=2000"]
    atheris.Setup(options, targets.TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
