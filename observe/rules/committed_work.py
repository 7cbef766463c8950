"""Commits of earlier work: an exchange that only commits what an earlier exchange of its session did."""

import re
from collections.abc import Sequence

from ...core.conversation import Exchange
from ...core.observation import Observation
from .exchange_analysis import accepted_commits
from .touched_files import is_changelog

_WORD = re.compile(r"\w{4,}")
_STEM = 5
_SHARED = 0.5
"""Minimum share of the words of a commit subject that the title of the earlier work must contain.

Of 82 exchanges that only commit, 60 reach it. Below it, the commit subject says more than the title.
"""


def committed_work(exchange: Exchange, observation: Observation, earlier: Sequence[Observation]) -> int | None:
    """Return the index in `earlier` of the work that an exchange only commits, or None if it did other work.

    Args:
        exchange: Exchange that may only run `git commit`.
        observation: Observation of the exchange. If its evidence does not include the commit, the result is None.
        earlier: Observations of earlier exchanges of the session. On a tie, the first one wins.
    """
    commits = accepted_commits(exchange)
    cited = {proof.start_line for proof in observation.evidence}
    if len({commit.subject for commit in commits}) != 1 or commits[-1].line not in cited:
        return None
    if not all(map(is_changelog, exchange.writes)):
        return None
    words = _stems(commits[-1].subject)
    shared = {
        place: len(words & _stems(each.title if observation.facts else _text(each)))
        for place, each in enumerate(earlier)
        if each.files_modified
    }
    best = max(shared, key=lambda place: shared[place], default=None)
    return best if best is not None and shared[best] >= max(2, _SHARED * len(words)) else None


def _text(observation: Observation) -> str:
    """Return title, narrative and facts, for comparison with a commit whose observation has no facts."""
    return " ".join((observation.title, observation.narrative, *observation.facts))


def _stems(text: str) -> set[str]:
    return {word[:_STEM].lower() for word in _WORD.findall(text)}
