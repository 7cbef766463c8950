"""Estimate from past sessions of a project what its next session works on.

A session start does not say what the session is about. In some projects, sessions continue each other. In others, each
session has its own task, and lines about earlier sessions are useless. The modified files show the difference.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from msgspec import Struct

_HALF_LIFE = 3
"""Number of later sessions after which the weight of a session is halved."""
_LIKELY = 0.5
"""Minimum weighted share of sessions.

Half-life and minimum were chosen on training sessions: bench/RESULTS.md, "Injection".
"""


class Continuation(Struct, frozen=True):
    """Estimate for the next session of a project.

    Attributes:
        continues: True if the next session probably modifies a file that the latest session modified.
        files: Files that the next session probably modifies, the most probable first.
    """

    continues: bool
    files: tuple[str, ...]


def continuation(modified: Sequence[Collection[str]]) -> Continuation:
    """Return the estimate from the files that each session modified, newest session first.

    Sessions without modified files are ignored. If fewer than two sessions remain, `continues` is False.
    """
    sessions = [dict.fromkeys(files) for files in modified if files]
    decay = 0.5 ** (1 / _HALF_LIFE)
    continued, compared = 0.0, 1.0  # As if one more pair of sessions had no file in common.
    shares = Counter[str]()
    for age, files in enumerate(sessions):
        weight = decay**age
        for path in files:
            shares[path] += weight * (1 - decay)  # All weights of an endless history add up to 1.
        for earlier in sessions[age + 1 : age + 2]:
            compared += weight
            continued += weight if files.keys() & earlier.keys() else 0
    return Continuation(
        continued >= _LIKELY * compared,
        tuple(path for path, share in shares.most_common() if share >= _LIKELY),
    )
