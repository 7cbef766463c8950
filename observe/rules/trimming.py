"""Trim observations to the limit of layer 2, starting with the least important parts."""

from msgspec.structs import replace

from ...core.observation import Observation
from .sentences import truncate

TOKENS_MAX = 480
"""Maximum tokens of an observation that layer 2 shows in full, including its frame."""
_FACTS_MIN, _MODIFIED_MIN, _NARRATIVE_MIN, _STEP = 3, 8, 500, 4


def trim_to_budget(observation: Observation) -> Observation:
    """Return the observation trimmed to `TOKENS_MAX`.

    It removes files read, then the end of a long narrative, then the last facts, then modified files.
    """
    while observation.tokens > TOKENS_MAX:
        smaller = _smaller(observation)
        if smaller == observation:
            break
        observation = smaller
    return observation


def _smaller(whole: Observation) -> Observation:
    if whole.files_read:
        return replace(whole, files_read=whole.files_read[: max(0, len(whole.files_read) - _STEP)])
    if len(whole.narrative) > _NARRATIVE_MIN:
        return replace(whole, narrative=truncate(whole.narrative, _NARRATIVE_MIN))
    if len(whole.facts) > _FACTS_MIN:
        last = len(whole.facts) - 1
        return replace(whole, facts=whole.facts[:last], evidence=whole.evidence[:last] + whole.evidence[last + 1 :])
    if len(whole.files_modified) > _MODIFIED_MIN:
        return replace(
            whole, files_modified=whole.files_modified[: max(_MODIFIED_MIN, len(whole.files_modified) - _STEP)]
        )
    if len(whole.facts) > 1:
        return replace(whole, facts=whole.facts[:1], evidence=whole.evidence[:1] + whole.evidence[len(whole.facts) :])
    return replace(whole, files_modified=whole.files_modified[:1], concepts=whole.concepts[:2])
