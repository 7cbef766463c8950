"""A process that seals or unseals a copy, for tests that kill it.

sealing_worker.py seal|unseal ROOT NAME N      killed by itself at its N-th call; prints the number of its calls
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path
from types import FrameType

from palaver.archiver.copies import Copy


def fused(copy: Copy, work: str, fuse: int) -> int:
    calls = count(1)

    def burn(_frame: FrameType, _event: str, _argument: object) -> None:
        if next(calls) == fuse:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(burn)
    if work == "seal":
        copy.seal()
    else:
        copy.unseal()
    sys.setprofile(None)
    return next(calls) - 1


if __name__ == "__main__":
    work, root, name, fuse = sys.argv[1:]
    print(fused(Copy(Path(root), name), work, int(fuse)))
