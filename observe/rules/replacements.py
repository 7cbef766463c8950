"""Replacements: earlier observations of a session that a later observation corrects.

An observation is replaced if the next prompt corrects it, or if its commit is reverted.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...core.conversation import Exchange, Kind
from ...core.observation import Observation, ObservationType
from ...core.sentences import headline
from .exchange_analysis import accepted_commits
from .phrase_patterns import phrases

_CORRECTED = phrases("replacements.corrected")
_REVERT = re.compile(r'revert:? ["“]?(.+?)["”]?$', re.IGNORECASE)
_WORD = re.compile(r"\w{4,}")
_SAME_TOPIC = 0.4
"""Minimum share of the words of an earlier title that a later observation must contain to replace it."""
_WITHOUT_CHANGE = {ObservationType.DECISION, ObservationType.LEARNING, ObservationType.PATTERN, ObservationType.DEBUG}
"""Types of observations that describe no change, although they can list the files of their exchange."""


class Replacement(Struct, frozen=True):
    """Positions of a replaced observation and of its replacement, and the line that proves the replacement."""

    earlier: int
    later: int
    line: int


def find_replacements(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> list[Replacement]:
    """Return the replacements among the observations of a session.

    Args:
        parts: Pairs of the index of an exchange in `exchanges`, and an observation, in order.
        exchanges: Exchanges of the session, in order.
    """
    found = [*_corrected(parts, exchanges), *_reverted(parts, exchanges)]
    return list({each.earlier: each for each in reversed(found)}.values())


def _corrected(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> Iterator[Replacement]:
    """Yield the results that the prompt of the next exchange corrects."""
    for earlier, (place, old) in enumerate(parts):
        following = exchanges[place + 1 : place + 2]
        is_next = bool(following) and following[0].ordinal == exchanges[place].ordinal + 1
        line = _correction_line(following[0]) if is_next else None
        if line is None or old.type is ObservationType.DECISION:
            continue
        for later, (other, new) in enumerate(parts):
            if other == place + 1 and new.type is not ObservationType.DECISION and _is_about_same(old, new):
                yield Replacement(earlier, later, line)
                break


def _correction_line(exchange: Exchange) -> int | None:
    """Return the line of a prompt that begins with a correction."""
    prompts = (turn for turn in exchange.turns if turn.kind is Kind.PROMPT)
    return next((turn.line for turn in prompts if _CORRECTED.match(turn.text.lstrip())), None)


def _is_about_same(old: Observation, new: Observation) -> bool:
    if {*old.files_modified} & {*new.files_modified}:
        return True
    words = _words(old.title)
    return len(words & _words(f"{new.title} {' '.join(new.facts)}")) >= max(2, _SAME_TOPIC * len(words))


def _reverted(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> Iterator[Replacement]:
    """Yield the observations of commits that a later commit reverts.

    If no observation has the subject of the commit as its title, the last observed change up to the commit is
    replaced.
    """
    made: dict[str, int] = {}
    for place, exchange in enumerate(exchanges):
        for commit in accepted_commits(exchange):
            subject = _REVERT.match(commit.subject)
            committed = made.get(subject[1]) if subject else None
            later = next((number for number, (other, _) in enumerate(parts) if other == place), None)
            if subject and committed is not None and committed < place and later is not None:
                earlier = _committed(subject[1], committed, parts)
                yield from [Replacement(earlier, later, commit.line)] if earlier is not None else []
            made[commit.subject] = place


def _committed(subject: str, place: int, parts: Sequence[tuple[int, Observation]]) -> int | None:
    """Return the index of the observation of a commit, or else of the last observed change up to the commit."""
    named = (number for number, (other, old) in enumerate(parts) if other == place and headline(subject) in old.title)
    done = (number for number, (other, old) in enumerate(parts) if other <= place and _changed_files(old))
    return next(named, max(done, default=None))


def _changed_files(observation: Observation) -> bool:
    return bool(observation.files_modified) and observation.type not in _WITHOUT_CHANGE


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:5].lower() for word in _WORD.findall(text))
