"""Trimming of observations to the size limit of the detail view, starting with the least important parts."""

from msgspec.structs import replace

from ...core.observation import Observation
from ...core.sentences import truncate
from .salience import salience

TOKENS_MAX = 480
"""Maximum tokens of an observation, with its heading and evidence, that the detail view shows in full."""
_FACTS_MANY, _FACTS_MIN, _MODIFIED_MIN, _CONCEPTS_MIN, _STEP = 6, 3, 8, 5, 4
_NARRATIVE_MAX, _NARRATIVE_MIN = 400, 250
"""Maximum characters of the narrative, after an early step and after a late step of trimming."""


def trim_to_budget(observation: Observation) -> Observation:
    """Return the observation trimmed to `TOKENS_MAX`.

    The function removes, in this order: names of read files, the end of a long narrative, concepts and names of
    modified files, and the least salient facts down to six. If the observation is still too long, it shortens the
    narrative further, and then removes more facts and files.
    """
    while observation.tokens > TOKENS_MAX:
        smaller = _smaller(observation)
        if smaller == observation:
            break
        observation = smaller
    return observation


def _smaller(whole: Observation) -> Observation:
    """Return the observation without its least important part. Return it unchanged if only the minimum is left."""
    if whole.files_read:
        return replace(whole, files_read=whole.files_read[: max(0, len(whole.files_read) - _STEP)])
    if len(whole.narrative) > _NARRATIVE_MAX:
        return replace(whole, narrative=truncate(whole.narrative, _NARRATIVE_MAX))
    if len(whole.concepts) > _CONCEPTS_MIN:
        return replace(whole, concepts=whole.concepts[:-1])
    if len(whole.files_modified) > _MODIFIED_MIN:
        return replace(whole, files_modified=whole.files_modified[:-1])
    if len(whole.facts) > _FACTS_MANY:
        return _without_least_fact(whole)
    if len(whole.narrative) > _NARRATIVE_MIN:
        return replace(whole, narrative=truncate(whole.narrative, _NARRATIVE_MIN))
    if len(whole.facts) > _FACTS_MIN:
        return _without_least_fact(whole)
    if len(whole.facts) > 1:
        return _without_least_fact(whole)
    return replace(whole, files_modified=whole.files_modified[: max(1, len(whole.files_modified) - 1)])


def _without_least_fact(whole: Observation) -> Observation:
    """Return the observation without a fact that its title states, or else without its least salient fact.

    On a tie, remove the last one.
    """

    def weight(place: int) -> tuple[bool, int, int]:
        fact = whole.facts[place]
        return fact.rstrip(".") not in whole.title, salience(fact), -place

    least = min(range(len(whole.facts)), key=weight)
    facts = whole.facts[:least] + whole.facts[least + 1 :]
    return replace(whole, facts=facts, evidence=whole.evidence[:least] + whole.evidence[least + 1 :])
