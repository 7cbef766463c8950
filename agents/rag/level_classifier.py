"""Classification of a memory into a context level by keywords, and detection of injected text.

Keywords decide only if the caller gives no level. The patterns detect text that looks like an injection of SQL,
instructions, commands or paths. By default such a text is stored and flagged, because notes of developers contain
code. In strict mode it is refused.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

from ...core.errors import InvalidInput
from ...core.memory import LEVEL_OF, Category, ContextLevel

_OBJECT: Final = "(?:table|database|schema|view|index|user|procedure|function|trigger)"
_SHELL: Final = "(?:bash|sh|zsh|dash|ksh|python[0-9.]*|perl|ruby|node)"
_PROGRAM: Final = "(?:rm|curl|wget|nc|ncat|bash|sh|chmod|chown|dd|mkfs|kill|sudo|cat\\s+/etc)"
_EARLIER: Final = "(?:previous|prior|above|earlier|preceding|existing|system|your)"
_RULES: Final = "(?:instructions?|prompts?|rules?|directions?|guidelines?|context|messages?)"

_PATTERNS: Final[Mapping[str, Sequence[str]]] = {
    "SQL injection": (
        rf"['\"]?\s*;\s*(?:drop|alter|create|truncate)\s+{_OBJECT}",
        r"['\"]?\s*;\s*truncate\s+\w",
        r"['\"]?\s*;\s*delete\s+from\s",
        r"['\"]?\s*;\s*insert\s+into\s",
        r"['\"]?\s*;\s*update\s+\w+\s+set\s",
        r"['\"]\s*;\s*select\s",
        r"['\"]?\s*;\s*(?:grant|revoke)\s+\w+\s+(?:on|to|from)\s",
        r"['\"]?\s*;\s*exec(?:ute)?[\s(]+(?:xp_|sp_|@|master)",
        r"['\"]?\s*;\s*shutdown\b",
        r"['\"]?\s*;\s*attach\s+database\s",
        r"['\"]?\s*;\s*--",
        r"\bunion\s+(?:all\s+|distinct\s+)?select\b",
        r"['\"]\s*(?:or|and)\s+['\"]?\w+['\"]?\s*(?:=|like)\s*['\"]?\w+",
        r"\b(?:or|and)\s+1\s*=\s*[01]\b",
        r"\b(?:or|and)\s+true\s*(?:--|#)",
        r"['\"]\s*\|\|\s*['\"]",
        r"\bhaving\s+1\s*=\s*1\b",
        r"\border\s+by\s+\d+\s*--",
        r"\w['\"]\s*--\s",
        r"\w['\"]\s*--$",
        r"['\"]\s*#\s*$",
        r"/\*!\d{5}",
        r"['\"]\s*/\*",
        r"\bxp_(?:cmdshell|regread|dirtree)\b",
        r"\bsp_(?:executesql|oacreate|addextendedproc)\b",
        r"\binto\s+(?:outfile|dumpfile)\b",
        r"\bload_file\s*\(",
        r"\bload\s+data\s+(?:local\s+)?infile\b",
        r"\bcopy\s+\w+\s+(?:to|from)\s+program\b",
        r"\bwaitfor\s+delay\b",
        r"\bpg_sleep\s*\(",
        r"\bbenchmark\s*\(\s*\d{4,}",
        r"['\"]\s*(?:and|or)\s+sleep\s*\(",
        r"\bfrom\s+information_schema\.",
        r"\bfrom\s+(?:sqlite_master|pg_shadow|mysql\.user|sys\.objects)\b",
        r"\b(?:extractvalue|updatexml)\s*\(",
        r"\butl_(?:http|file|inaddr)\.",
        r"\bdbms_(?:pipe|ldap|xmlgen)\.",
        r"\bconcat\s*\(\s*0x[0-9a-f]+",
        r"\bchar\s*\(\s*\d+\s*\)\s*(?:\+|\|\|)\s*char\s*\(",
    ),
    "prompt injection": (
        rf"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){{0,3}}{_EARLIER}\s+(?:\w+\s+)?{_RULES}",
        rf"\bignore\s+(?:all|any|every|the)\s+{_RULES}",
        r"\b(?:ignore|forget|disregard)\s+(?:everything|all\s+of\s+that|all)\s+(?:above|before|you|i\s+said)",
        rf"\bdo\s+not\s+(?:follow|obey)\s+(?:\w+\s+){{0,2}}{_RULES}",
        r"\byou\s+are\s+now\s+(?:a|an|in|the|no\s+longer)\b",
        r"\bfrom\s+now\s+on,?\s+you\s+(?:are|will|must)\b",
        r"\bpretend\s+(?:to\s+be|that\s+you|you\s+are)\b",
        r"\bact\s+as\s+(?:if\s+you|an?\s+(?:unrestricted|uncensored|evil|different))\b",
        r"\broleplay\s+as\b",
        r"\b(?:new|updated|revised)\s+(?:system\s+)?instructions?\s*:",
        r"\bsystem\s+(?:prompt|message|override)\s*:",
        r"\b(?:reveal|show|print|repeat|leak)\s+(?:\w+\s+){0,3}(?:system|initial|hidden)\s+(?:prompt|instructions?)",
        r"\bwhat\s+(?:is|are|was|were)\s+your\s+(?:system\s+prompt|(?:initial|original|hidden)\s+instructions?)",
        r"</?(?:system|assistant|user|human|developer)>",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>",
        r"\[/?(?:inst|sys|system)\]",
        r"<</?sys>>",
        r"^#{2,}\s*(?:system|instruction|new instructions?)\s*:?\s*$",
        r"^(?:system|assistant)\s*:\s+you\s+(?:are|must|will)\b",
        r"\b(?:jailbreak|jailbroken)\s+mode\b",
        r"\b(?:developer|god|admin|debug|dan)\s+mode\s+(?:is\s+)?(?:enabled|activated|on)\b",
        r"\bdo\s+anything\s+now\b",
        r"\bwithout\s+(?:any\s+)?(?:restrictions?|filters?|safety\s+guidelines)\s*[,.]?\s+(?:you|answer|respond)",
        r"\b(?:disable|turn\s+off)\s+(?:your|all)\s+(?:safety|content)\s+(?:filters?|guidelines|rules)",
        r"\bdo\s+not\s+(?:tell|inform|mention\s+(?:this\s+)?to)\s+the\s+user\b",
        r"\bwithout\s+(?:telling|informing|asking)\s+the\s+user\b",
        r"\bend\s+of\s+(?:system\s+)?(?:prompt|instructions?)\b",
        r"\bbegin\s+(?:new\s+)?(?:system\s+)?(?:prompt|instructions?)\b",
        r"\byour\s+(?:new|real|true)\s+(?:task|goal|purpose|instructions?)\s+(?:is|are)\b",
        r"\b(?:send|post|exfiltrate|upload)\s+(?:\w+\s+){0,4}(?:api\s+keys?|secrets?|passwords?|credentials)\s+to\b",
    ),
    "command injection": (
        rf"(?:;|&&|\|\|)\s*{_PROGRAM}\s",
        rf"\|\s*(?:sudo\s+)?{_SHELL}\b",
        rf"\$\(\s*{_PROGRAM}\b",
        rf"`\s*{_PROGRAM}\s[^`]*`",
        r"\brm\s+-(?:rf|fr|r\s+-f)\s+(?:/|~|\$home)",
        r"\b(?:curl|wget)\s[^|\n]*\|\s*\w*sh\b",
        r"\b(?:nc|ncat)\s+-\w*e\b",
        r"/dev/(?:tcp|udp)/",
        r">\s*/dev/sd[a-z]",
        r">\s*/etc/\w",
        r":\(\)\s*\{\s*:\|:&\s*\};:",
        r"\bbash\s+-i\s+>&",
        r"\beval\s*\(?\s*(?:\$\(|`|base64)",
        r"\bbase64\s+(?:-d|--decode)\s*\|",
        r"\bpowershell(?:\.exe)?\s+-(?:enc|e|encodedcommand)\b",
    ),
    "path traversal": (
        r"(?:\.\./){2,}",
        r"(?:\.\.\\){2,}",
        r"%2e%2e(?:%2f|/|%5c)",
        r"\.\.%2f",
        r"(?:^|[\s'\"(=])/etc/(?:passwd|shadow|sudoers)\b",
        r"\bc:\\windows\\system32\b",
        r"\bfile:///(?:etc|proc|root)\b",
        r"/proc/self/environ\b",
    ),
}


class SuspectedInjection(InvalidInput):
    """Error: strict mode refuses a text that looks like an injection. `pattern` is the matching part of the text."""

    def __init__(self, kind: str, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"Potential security threat detected: {kind} pattern")


def risks(text: str) -> list[str]:
    """Return the kinds of injection that a text looks like, such as `SQL injection`."""
    return list(dict.fromkeys(kind for kind, _ in _matching(text)))


def refuse_injection(text: str) -> None:
    """Raise `SuspectedInjection` if a text looks like an injection."""
    for kind, pattern in _matching(text):
        raise SuspectedInjection(kind, import_module("re2").search(pattern, text)[0].strip())


def _matching(text: str) -> list[tuple[str, str]]:
    """Return the kind and the regular expression of each pattern that matches, in the order of `_PATTERNS`."""
    patterns, combined = _compiled()
    return [patterns[number] for number in sorted(combined.Match(text) or ())]


@cache
def _compiled() -> tuple[list[tuple[str, str]], Any]:
    """Return all patterns, and an automaton that finds the matching patterns in one pass over a text."""
    re2 = import_module("re2")  # The library has no type information, and its patterns take linear time.
    patterns = [(kind, f"(?im){pattern}") for kind, several in _PATTERNS.items() for pattern in several]
    combined = re2.Set.SearchSet()
    for _, pattern in patterns:
        combined.Add(pattern)
    combined.Compile()
    return patterns, combined


_KEYWORDS: Final[Mapping[ContextLevel, Sequence[str]]] = {
    ContextLevel.USER_PREFERENCE: (
        "prefer(?:s|red|ence|ences)?",
        "likes?",
        "dislikes?",
        "favou?rites?",
        "always",
        "never",
        "usually",
        "my style",
        "how i",
        "should always",
        "default to",
        "guidelines?",
        "conventions?",
    ),
    ContextLevel.PROJECT_CONTEXT: (
        "(?:this|our) (?:project|codebase|repo(?:sitory)?)",
        "architecture",
        "framework",
        "library",
        "dependenc(?:y|ies)",
        "file structure",
        "project (?:uses|has)",
        "we (?:use|have)",
        "configured (?:to|with)",
        "setup",
        "environment",
        "deployment",
        "ci/cd",
        "version",
    ),
    ContextLevel.SESSION_STATE: (
        "currently",
        "working on",
        "today",
        "right now",
        "at the moment",
        "in progress",
        "temporar(?:y|ily)",
        "next (?:step|task)s?",
        "just (?:did|finished)",
        "about to",
        "this (?:session|conversation)",
        "for now",
    ),
}
_STRONG: Final[Mapping[ContextLevel, str]] = {
    ContextLevel.USER_PREFERENCE: "i (?:always|never|prefer|like|dislike)|my (?:preference|style|favou?rite)",
    ContextLevel.PROJECT_CONTEXT: "(?:this|our) (?:project|codebase)|architecture|tech stack",
    ContextLevel.SESSION_STATE: "currently|right now|working on|in progress|next (?:step|task)",
}
_CATEGORY_BOOST: Final[Mapping[Category, tuple[ContextLevel, float]]] = {
    Category.PREFERENCE: (ContextLevel.USER_PREFERENCE, 0.5),
    Category.CONTEXT: (ContextLevel.PROJECT_CONTEXT, 0.3),
    Category.EVENT: (ContextLevel.SESSION_STATE, 0.3),
    Category.WORKFLOW: (ContextLevel.PROJECT_CONTEXT, 0.2),
}
_STRONG_BOOST, _CODE_BOOST, _REQUEST_BOOST = 0.2, 0.3, 0.2
_ALL_MATCH: Final = 0.3
"""Share of a level's keywords that a text must contain to get the full score of 1."""
_MIN: Final = 0.3
"""Minimum score of the best level. If no level reaches it, the category determines the level."""
_CODE: Final = r"```|^\s*(?:def|class|function|import|from|const|let|var|fn|func|public)\s+\w+[^.\n]*[({;:]"
_REQUEST: Final = r"\s*(?:let'?s|please|can you)\b"


def classify(content: str, category: Category) -> ContextLevel:
    """Return the context level of a memory with this content and category."""
    scores = {
        level: min(1.0, _matches(content, words) / (_ALL_MATCH * len(words))) for level, words in _KEYWORDS.items()
    }
    for level, words in _STRONG.items():
        scores[level] += _STRONG_BOOST * _matches(content, [words])
    boosted, boost = _CATEGORY_BOOST.get(category, (LEVEL_OF[category], 0.0))
    scores[boosted] += boost
    if re.search(_CODE, content, re.MULTILINE):
        scores[ContextLevel.PROJECT_CONTEXT] += _CODE_BOOST
    if re.match(_REQUEST, content, re.IGNORECASE):
        scores[ContextLevel.SESSION_STATE] += _REQUEST_BOOST
    best = max(scores, key=lambda level: scores[level])
    return best if scores[best] >= _MIN else LEVEL_OF[category]


def _matches(content: str, words: Sequence[str]) -> int:
    """Return how many of these keywords the text contains as whole words."""
    return sum(_pattern(word).search(content) is not None for word in words)


@cache
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{word})(?!\w)", re.IGNORECASE)
