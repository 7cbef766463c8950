"""Classify an observation: evidence adds weight to each type, and the highest weight wins.

========================================  ==============================================================
evidence                                  weight
========================================  ==============================================================
a conventional prefix (`fix:`, `feat:`)   6 for the type it names
the first verb of a title                 4 (an order or a commit subject says what it does)
verb and object of a title                7 for test / config / general ("add tests", "bump", "update the readme")
only tests / settings / documents changed 7 for test / config / general
a complaint in the request                3 for bug-fix ("does not work"), 1 in a plan, where errors may be the subject
a cause or repair in the conclusion       2 for bug-fix ("root cause", "the fix was")
something changed                         2 for feature
nothing changed                           3 for debug after a complaint, else 3 for learning
a diagnosis, and nothing changed          4 for debug ("the issue is", "root cause")
========================================  ==============================================================
"""

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ...core.observation import ObservationType
from .phrase_patterns import phrases

_PREFIX = re.compile(r"(\w+)(?:\([^)]{0,40}\))?!?:\s")
_PREFIXES = {
    "feat": ObservationType.FEATURE,
    "feature": ObservationType.FEATURE,
    "fix": ObservationType.BUG_FIX,
    "bugfix": ObservationType.BUG_FIX,
    "hotfix": ObservationType.BUG_FIX,
    "refactor": ObservationType.REFACTOR,
    "perf": ObservationType.REFACTOR,
    "style": ObservationType.REFACTOR,
    "test": ObservationType.TEST,
    "tests": ObservationType.TEST,
    "build": ObservationType.CONFIG,
    "ci": ObservationType.CONFIG,
    "chore": ObservationType.CONFIG,
    "config": ObservationType.CONFIG,
    "docs": ObservationType.GENERAL,
    "doc": ObservationType.GENERAL,
}
_VERBS = {
    kind: phrases(f"classification.{kind.name.lower()}")
    for kind in ObservationType
    if kind is not ObservationType.PATTERN
}
_SPECIFIC: dict[ObservationType, int] = dict.fromkeys(
    (ObservationType.TEST, ObservationType.CONFIG, ObservationType.GENERAL), 7
)
_UNCHANGING = frozenset({ObservationType.DEBUG, ObservationType.DECISION, ObservationType.LEARNING})
"""Types that a request to inspect, think or explain indicates. They get less weight if the exchange made a change."""

_COMPLAINT = phrases("classification.complaint")
_REPAIR = phrases("classification.repair")
_DIAGNOSIS = phrases("classification.diagnosis")
_FILES = (
    (
        ObservationType.TEST,
        7,
        re.compile(
            r"(?:^|/)(?:tests?|__tests__|spec|e2e|fixtures)/|(?:^|/)test_[^/]+$|[._-](?:test|spec|tests)\.\w+$|_test\.\w+$",
            re.IGNORECASE,
        ),
    ),
    (
        ObservationType.CONFIG,
        7,
        re.compile(
            r"""(?:^|/)(?:package(?:-lock)?\.json|[tj]sconfig[^/]*\.json|biome\.jsonc?|settings(?:\.local)?\.json|\.mcp\.json
            |[^/]+\.(?:toml|ya?ml|ini|cfg|conf|plist|lock|env|properties)|[^/]+\.config\.\w+|\.?\w+rc(?:\.\w+)?|\.env[^/]*
            |\.git(?:ignore|attributes)|\.husky/[^/]+|Dockerfile[^/]*|Makefile|justfile|CMakeLists\.txt|requirements[^/]*\.txt
            |go\.(?:mod|sum)|\.(?:github|husky|vscode|idea|circleci|entire)/.*\.json)$""",
            re.IGNORECASE | re.VERBOSE,
        ),
    ),
    (
        ObservationType.GENERAL,
        7,
        re.compile(
            r"(?:^|/)(?:README|AGENTS|CLAUDE|CHANGELOG|CONTRIBUTING|LICENSE|NOTICE|HISTORY)[^/]*$|\.(?:mdx?|rst|adoc)$|(?:^|/)docs?/.*\.txt$",
            re.IGNORECASE,
        ),
    ),
)


class TypeSignals(Struct, frozen=True):
    """Evidence of the type of an exchange: titles, texts and modified files."""

    titles: Sequence[str]
    request: str
    conclusion: str
    writes: Sequence[str]
    changed: bool
    plan: bool = False


def classify(signs: TypeSignals) -> ObservationType:
    """Return the type with the highest weight. On a tie, the first type in `ObservationType` wins."""
    weights = weigh_types(signs)
    return max(ObservationType, key=lambda kind: weights[kind])


def weigh_types(signs: TypeSignals) -> Counter[ObservationType]:
    """Return the weight of each type."""
    weights: Counter[ObservationType] = Counter()
    for title in signs.titles:
        _weigh_title(title, weights, changed=signs.changed)
    complaint = _COMPLAINT.search(signs.request) is not None
    if signs.changed:
        weights[ObservationType.FEATURE] += 2
        weights[ObservationType.BUG_FIX] += (1 if signs.plan else 3) * complaint
        weights[ObservationType.BUG_FIX] += 2 * (_REPAIR.search(signs.conclusion) is not None)
        _weigh_files(signs.writes, weights)
    else:
        weights[ObservationType.DEBUG if complaint else ObservationType.LEARNING] += 3
        weights[ObservationType.DEBUG] += 4 * (_DIAGNOSIS.search(signs.conclusion) is not None)
    return weights


def _weigh_title(title: str, weights: Counter[ObservationType], *, changed: bool) -> None:
    if (prefix := _PREFIX.match(title)) and prefix.group(1).lower() in _PREFIXES:
        weights[_PREFIXES[prefix.group(1).lower()]] += 6
        return
    for kind, verbs in _VERBS.items():
        if verbs.match(title):
            weights[kind] += _SPECIFIC.get(kind, 1 if changed and kind in _UNCHANGING else 4)


def _weigh_files(writes: Sequence[str], weights: Counter[ObservationType]) -> None:
    for kind, weight, pattern in _FILES:
        if writes and all(pattern.search(path) for path in writes):
            weights[kind] += weight
