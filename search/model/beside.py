"""The packaged model in a process of its own, which loads it while the one that asks goes on.

Loading is mostly Python importing what Python imports, so a thread has to wait for its turn; another processor has not.
"""

import json
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Beside:
    """An encoder in another process, which ends when this one does, however that comes."""

    def __init__(self, folder: Path) -> None:
        """Begin to load the model in `folder`; raises `OSError` where no process can be started."""
        # In a group of its own, so that Ctrl-C reaches this process alone.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        weakref.finalize(self, _end, self._process)

    def encode(self, texts: Sequence[str]) -> "npt.NDArray[np.float32] | None":
        """Rows as `Encoder.encode` gives them, once the model is loaded; None when it cannot be."""
        import numpy as np

        from .encoder import DIMENSION

        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(json.dumps(list(texts)).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.read(len(texts) * DIMENSION * np.dtype(np.float32).itemsize)
        except OSError:
            return None
        vectors = np.frombuffer(answer, dtype=np.float32)
        return vectors.reshape(len(texts), DIMENSION) if vectors.size == len(texts) * DIMENSION else None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def serve(folder: Path) -> None:
    """Answer lines of texts on standard input with their vectors, until it ends."""
    from .encoder import Encoder

    encoder = Encoder(folder)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(encoder.encode(json.loads(line), 1).tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
