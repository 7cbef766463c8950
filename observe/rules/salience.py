"""Salience of a statement: how likely it is to be worth remembering.

Patterns detect intention, status, finding, cause, change, rule and choice. The lists of phrases are in
`phrases.json`, and sets and tables of words in `words.json`. Each has a name, `<module>.<constant>`, and a list has a
form. A phrase is a regular expression that ignores case:

- `anywhere`: the phrase occurs as whole words.
- `at_start`: the text begins with the phrase.
- `whole_text`: the text is the phrase, with optional closing punctuation.
- `regex`, `verbose`: the lines are one regular expression with its own flags.
"""

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Final

import msgspec

from ...core.runtime import read_data

QUESTION_WORDS: Final = "what|why|which|who|where|when|how"
_FORMS: Final = {
    "anywhere": r"(?<!\w)(?:{})(?!\w)",
    "at_start": r"\A(?:{})(?!\w)",
    "whole_text": r"\A(?:{})[.!:]*\Z",
}


class PhrasePattern:
    """Pattern for a list of phrases, compiled on first use, because a hook or server uses only a few of all lists."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        [(form, listed)] = _lists()[self._name].items()
        return re.compile(_FORMS[form].format("|".join(listed)), re.IGNORECASE)

    @cached_property
    def search(self) -> Callable[[str], re.Match[str] | None]:
        """The method `search` of the compiled pattern."""
        return self._compiled.search

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        """The method `match` of the compiled pattern."""
        return self._compiled.match


def phrases(name: str) -> PhrasePattern:
    """Return the pattern for the list with this name."""
    return PhrasePattern(name)


def regex(name: str) -> re.Pattern[str]:
    """Return the compiled regular expression with this name."""
    [(form, lines)] = _lists()[name].items()
    return re.compile(("\n" if form == "verbose" else "").join(lines))


def word_set(name: str) -> frozenset[str]:
    """Return the set of words with this name."""
    return msgspec.convert(_tables()[name], frozenset[str])


def text_table(name: str) -> dict[str, str]:
    """Return the table with this name, of a text for each word."""
    return msgspec.convert(_tables()[name], dict[str, str])


def weight_table(name: str) -> dict[str, float]:
    """Return the table with this name, of a weight for each property."""
    return msgspec.convert(_tables()[name], dict[str, float])


@cache
def _lists() -> dict[str, dict[str, list[str]]]:
    return read_data(__file__, "phrases.json", dict[str, dict[str, list[str]]])


@cache
def _tables() -> dict[str, object]:
    return read_data(__file__, "words.json", dict[str, object])


_PREFACE = regex("salience.preface")
_INTENTION = phrases("salience.intention")
_PROMISE = phrases("salience.promise")
_CHATTER = phrases("salience.chatter")
_STATUS = phrases("salience.status")
_REPORTED = phrases("salience.reported")
_BRANCHES = phrases("salience.branches")
"""Pattern for statements about branches, remotes and pull requests, which are soon outdated."""
CAUSE = phrases("salience.cause")
FINDING = phrases("salience.finding")
RULE = phrases("salience.rule")
CHOICE = phrases("salience.choice")
CHANGE = phrases("salience.change")
CHANGED = phrases("salience.changed")
"""Pattern for a completed change: `added …`, `… is now hidden`, `the list now shows …`, `roadmap updated`."""
HOUSEKEEPING = phrases("salience.housekeeping")
NAMED = re.compile(r"`[^`\n]+`|\b\w+(?:[A-Z]\w*|_\w+)+\b|\b[\w-]+(?:/[\w.-]+)+|\b[\w-]+\.[a-z]{1,4}\b|\B--?[a-z][\w-]+")
"""Pattern for code, identifiers, paths, files and options."""
_BARE = re.compile(r"https?://\S+|[\w.-]*(?:[/\\][\w.-]+)+|[\w-]+\.[a-z]{1,5}\b|[\W\d_]+")
"""Pattern for URLs, paths, numbers and punctuation. A statement that contains little else is noise."""
_MARKER = re.compile(r"/[a-z][\w:-]*(?=\s|$)|\[[^\]]*\]$")
"""Pattern for a slash command of the agent, or for a note in brackets about an attachment."""
_NUMBER = re.compile(r"\d")
CUT = " …"
"""Suffix of a truncated statement."""
_NEEDS_CONTEXT = phrases("salience.needs_context")


def needs_context(text: str) -> bool:
    """Return whether a sentence can be understood only together with the previous one."""
    return _NEEDS_CONTEXT.match(text) is not None


def is_noise(text: str) -> bool:
    """Return whether a sentence is only a promise, a greeting, a question or an announcement."""
    unfinished = text.endswith((":", "?", "…")) and not text.endswith(CUT)
    if len(text) < 12 or unfinished or len(_BARE.sub("", text)) < 8 or _MARKER.match(text):
        return True
    return is_intention(text) or any(_CHATTER.search(form) for form in (text, _bare(text)))


def is_intention(text: str) -> bool:
    """Return whether a sentence announces or promises an action."""
    return any(pattern.search(form) for pattern in (_INTENTION, _PROMISE) for form in (text, _bare(text)))


def _bare(text: str) -> str:
    return _PREFACE.sub("", text, count=1) if _PREFACE.match(text) else text


def is_status(text: str) -> bool:
    """Return whether a sentence only reports the result of checks, commits or pushes."""
    return len(text) < 160 and (_STATUS.search(text) is not None or is_bookkeeping(text))


def is_bookkeeping(text: str) -> bool:
    """Return whether a sentence only reports the state of a commit, a branch or a pull request."""
    return _REPORTED.match(text) is not None or _BRANCHES.search(text) is not None


def salience(markdown: str) -> int:
    """Return the salience of a sentence.

    Names, causes, changes, rules and numbers raise it. Extreme lengths lower it.
    """
    score = 2 * min(2, sum(1 for _ in NAMED.finditer(markdown))) + bool(_NUMBER.search(markdown))
    score += 3 * bool(CAUSE.search(markdown)) + 2 * bool(CHANGE.match(markdown.lstrip("*")))
    score += bool(RULE.search(markdown)) + (40 <= len(markdown) <= 260)
    return score - 2 * (len(markdown) < 28) - 2 * needs_context(markdown)
