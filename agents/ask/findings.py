"""Findings of an answer: their kind and text, and the project, branch and files that a question names.

- A finding contains the title of an entry and its most relevant sentences, with their lines.
- The kinds are decisions, fixes, patterns, gotchas and others.
- The question "what did we do to store.py in the cipher-box project" names a file and a project.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...core.observation import OUTCOME, SUMMARY, ObservationType
from ...core.query import Filters, HitKind
from ...core.results import CitedSource, Detail, Finding, FindingKind
from ...core.text import truncate
from ...search.query.relevance import Relevance, repeats
from .citation_check import Claim, lines_of


def _anywhere(phrases: str) -> re.Pattern[str]:
    """Compile a pattern that finds any of the phrases as whole words. `phrases` are separated by `|`."""
    return re.compile(rf"\b(?:{phrases})\b", re.IGNORECASE)


_BY_TYPE: Final = {
    ObservationType.DECISION: FindingKind.DECISION,
    ObservationType.BUG_FIX: FindingKind.FIX,
    ObservationType.PATTERN: FindingKind.PATTERN,
}
_UNCHANGING: Final = frozenset({ObservationType.DEBUG, ObservationType.LEARNING})
"""Types of observations that describe no change. A root cause in such an observation is not a fix."""
_FIX: Final = re.compile(
    r"fix(?:e[sd]|ing)?\b|resolve[sd]?\b|(?:use|run|leave out) `[^`]+`|in `[^`]+`, (?:use|leave out)|`[^`]+` repairs\b",
    re.IGNORECASE,
)
"""Pattern for the start of a title that states a repair."""
_CHOICE: Final = re.compile(
    r"(?:recommend(?:s|ed)?|(?:propose|decide)[sd]?|choos(?:e|es)|chosen?|prefer(?:s|red)?)\s|opt(?:s|ed)? (?:for|to)\b"
    r"|go(?:ing)? with\b|went with\b|let['’]s use\b"
    r"|use \S.*\b(?:because|instead of|over|rather than)\b",
    re.IGNORECASE,
)
"""Pattern for the start of a title that states a choice."""
_GOTCHA: Final = _anywhere(
    "silently|turns? out|gotcha|pitfall|careful|watch out|fail(?:s|ed) (?:when|on|if|because)"
    "|does(?:n['’]t| not) work|must not|unexpected(?:ly)?|misleading|pre-existing|only works?"
)
_RULE: Final = _anywhere(
    "always|never|should (?:always|never|not|only)|in sync|conventions?|same pattern|make sure|whenever|every time"
)


def kind_of(detail: Detail, text: str) -> FindingKind:
    """Return the kind of a finding, from the kind or type of its entry, or else from its title and text.

    An uncertain kind is `OTHER`, because no label is better than a wrong one.
    """
    declared, title = detail.observation.type, detail.observation.title
    if detail.kind in {HitKind.DOCUMENT, HitKind.CODE}:
        return FindingKind.DOCUMENT
    if declared in _BY_TYPE:
        return _BY_TYPE[declared]
    if _FIX.match(title) or (declared not in _UNCHANGING and "root cause" in text.lower()):
        return FindingKind.FIX
    if _CHOICE.match(title):
        return FindingKind.DECISION
    if _GOTCHA.search(text):
        return FindingKind.GOTCHA
    return FindingKind.PATTERN if _RULE.search(title) else FindingKind.OTHER


class FindingExtent(NamedTuple):
    """Limits of a finding: maximum characters, maximum number of claims, and minimum gain of each claim."""

    characters: int
    claims: int
    gain: float


BEST, OTHER = FindingExtent(420, 4, 0), FindingExtent(200, 1, 0.04)
_PASSAGE: Final = 140
"""Maximum characters of a passage, of which it is uncertain whether it answers the question."""
_ASKED: Final = 140
"""Maximum characters of a quoted prompt, which is the title of an exchange without observations."""
_ANSWER: Final = "? → "
"""Separator between an agent's question and the user's answer in the facts of a decision."""
_REQUEST: Final = 0.3
"""Factor for the gain of a sentence that repeats a prompt."""
_REASON: Final = re.compile(
    r"\b(?:root cause|the (?:fix|cause|problem|reason|bug) (?:is|was)|turns? out)\b", re.IGNORECASE
)
_REASON_GAIN: Final = 0.1
"""Additional gain of a sentence that states a cause or a fix."""
_ROOM: Final = 80
"""Minimum characters that must be left to add a shortened claim."""


def finding_of(
    detail: Detail,
    claims: Sequence[Claim],
    relevance: Relevance,
    labels: Mapping[str, str],
    extent: FindingExtent,
    answer: Claim | None = None,
) -> Finding:
    """Return the finding of an entry: its title and the claims with the highest gain, in their original order.

    The claim `answer` is always part of it.
    """
    title = _title(detail, claims)
    if detail.observation.title.startswith(SUMMARY) and not relevance.share(title):
        title = ""  # The title of a session can be about another part of it.
    if answer and repeats(answer.text, [title]):
        answer = None
    chosen = _chosen(title, claims, relevance, extent, answer)
    if not (title or chosen):
        title = detail.observation.title.removeprefix(SUMMARY)
    texts = [*filter(None, [title]), *(claim.text for claim in chosen)]
    text = " ".join(map(_sentence, texts))
    places = [lines_of(title, detail.observation.evidence, detail), *(claim[1:] for claim in chosen)]
    kind = kind_of(detail, text)
    return Finding(kind, text, tuple(_sources(detail, labels, places)), detail.observation.at)


def session_finding(detail: Detail, labels: Mapping[str, str]) -> Finding:
    """Return the title of a session with its first result."""
    title = detail.observation.title
    results = (fact for fact in detail.observation.facts if fact.startswith(OUTCOME))
    result = next((fact for fact in results if not repeats(fact.removeprefix(OUTCOME), [title])), "")
    text = " ".join(map(_sentence, filter(None, [title, shortened(result, _PASSAGE)])))
    source = CitedSource(
        "", detail.session_id, labels[detail.path], detail.path, detail.start_line, detail.end_line or detail.start_line
    )
    return Finding(FindingKind.OTHER, text, (source,), detail.observation.at)


def passage_of(detail: Detail, claims: Sequence[Claim], relevance: Relevance, labels: Mapping[str, str]) -> Finding:
    """Return the most relevant sentence of an entry, or its title if no sentence is more relevant, with its lines.

    `claims` are the sentences of the entry, and `labels` the labels of the cited transcripts by their paths.
    """
    title = _title(detail, claims) or detail.observation.title
    texts = [Claim(title, *lines_of(title, detail.observation.evidence, detail)), *claims]
    best = max(texts, key=lambda claim: relevance.share(claim.text) * (_REQUEST if claim.is_request else 1))
    sources = tuple(_sources(detail, labels, [(best.start_line, best.end_line)]))
    text = _sentence(shortened(best.text, _PASSAGE))
    return Finding(kind_of(detail, text), text, sources, detail.observation.at)


def _chosen(
    title: str, claims: Sequence[Claim], relevance: Relevance, extent: FindingExtent, answer: Claim | None
) -> list[Claim]:
    chosen = {claims.index(answer): answer} if answer is not None and answer in claims else dict[int, Claim]()
    left = extent.characters - len(title) - sum(len(claim.text) for claim in chosen.values())
    for _ in range((extent.claims if title else extent.claims + 1) - len(chosen)):
        known = [*filter(None, [title]), *(claim.text for claim in chosen.values())]
        gains = {place: _gain(claim, known, relevance) for place, claim in enumerate(claims)}
        useful = [place for place, gain in gains.items() if gain is not None and gain >= extent.gain]
        best = max(useful, key=lambda place: gains[place] or 0.0, default=None)
        if best is None or left < min(_ROOM, len(claims[best].text)):
            break
        chosen[best] = claims[best]._replace(text=shortened(claims[best].text, left))
        left -= len(chosen[best].text)
    return [chosen[place] for place in sorted(chosen)]


def _gain(claim: Claim, known: Sequence[str], relevance: Relevance) -> float | None:
    """Return the relevance that a claim adds to the known texts, or None if it only repeats them."""
    if repeats(claim.text, known) or (claim.is_request and any(repeats(each, [claim.text]) for each in known)):
        return None
    reason = _REASON_GAIN if _REASON.search(claim.text) else 0.0
    return (relevance.gain(claim.text, known) + reason) * (_REQUEST if claim.is_request else 1)


def _title(detail: Detail, claims: Sequence[Claim]) -> str:
    """Return the title of an observation, or the prompt of an exchange.

    For a decision that the user made by answering an agent's questions, the title is empty, because each fact contains
    its question.
    """
    observation = detail.observation
    if observation.type is ObservationType.DECISION and any(_ANSWER in claim.text for claim in claims):
        return ""
    if detail.kind == "exchange" and observation.origin == "human":
        return f"Asked: “{shortened(observation.subtitle or observation.title, _ASKED)}”"
    return observation.title.removeprefix(SUMMARY)


def _sources(detail: Detail, labels: Mapping[str, str], places: Sequence[tuple[int, int]]) -> Iterator[CitedSource]:
    """Yield a source for each distinct range of lines, or one for the whole entry if no range is more exact."""
    if detail.path not in labels:
        yield CitedSource(id=detail.id, session_id=detail.session_id)
        return
    whole = (detail.start_line, detail.end_line)
    exact = sorted(set(places) - {whole}) or [whole]
    for number, (first, last) in enumerate(exact):
        public = "" if number else detail.id
        yield CitedSource(public, detail.session_id, labels[detail.path], detail.path, first, last)


def shortened(text: str, characters: int) -> str:
    """Return the text, or its beginning of at most `characters` characters, truncated after a sentence or clause."""
    short = truncate(text, characters)
    if short == text:
        return text
    closing = "”" if short.count("“") > short.count("”") else ""
    return f"{short.rstrip(' .,;:')}…{closing}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "”", ":")) else f"{text}."


_PROJECT: Final = r"(?:project|repo|repository|codebase)"
_BRANCH: Final = "branch"
_FILE: Final = re.compile(r"(?<![\w/.@-])(?:[\w.-]+/)*[\w-][\w.-]*\.[a-z]\w{0,4}(?![\w/(-]|\.\w)")
"""Pattern for a file name with an extension, which is not part of a call such as `json.dumps(`."""


class NamedScope(NamedTuple):
    """Filters that a question names, and the question without the names of the project and of the branch."""

    filters: Filters
    rest: str


def named_scope(question: str, filters: Filters, projects: Iterable[str], branches: Iterable[str]) -> NamedScope:
    """Return the filters with the project, the branch and the files that the question names.

    A filter that is already set is not replaced. A name of only letters, such as `cli` or `main`, can be an ordinary
    word. It counts only beside a word such as "project" or "branch".
    """
    files, rest = tuple(dict.fromkeys(_FILE.findall(question))), question
    if not filters.projects and (named := _only(rest, projects, _PROJECT)):
        filters, rest = replace(filters, projects=(named.name,)), named.rest
    if not filters.branches and (named := _only(rest, branches, _BRANCH)):
        filters, rest = replace(filters, branches=(named.name,)), named.rest
    return NamedScope(replace(filters, files=files) if files and not filters.files else filters, rest)


class _Named(NamedTuple):
    name: str
    rest: str


def _only(question: str, names: Iterable[str], noun: str) -> _Named | None:
    """Return the only name in the question, and the rest of the question. None if it contains none or several."""
    distinct = {name.casefold(): name for name in names if name}
    found = [(name, phrase) for name in distinct.values() if (phrase := _phrase(question, name, noun))]
    if len(found) != 1:
        return None
    [(name, phrase)] = found
    rest = f"{question[: phrase.start()]} {question[phrase.end() :]}"
    return _Named(name, " ".join(rest.split()).strip(" ,;:"))


def _phrase(question: str, name: str, noun: str) -> re.Match[str] | None:
    """Return the phrase that contains the name, such as "in the cipher-box project"."""
    phrase = re.search(
        rf"""(?:\b(?:in|of|for|from|at|on|with)\s+)? (?:\b(?:the|our|my)\s+)? (?P<before>\b{noun}\s+)?
        [`"'“]? (?<![\w./@+-]){re.escape(name)}(?![\w/@+-]|\.\w) (?:['’]s\b|[`"'”])? (?P<after>\s+{noun}\b)?
        """,
        question,
        re.IGNORECASE | re.VERBOSE,
    )
    if phrase and name.isalpha() and not (phrase["before"] or phrase["after"]):
        return None
    return phrase
