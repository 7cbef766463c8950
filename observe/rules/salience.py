"""Salience of a statement: how likely it is to be worth remembering.

Patterns detect intention, status, finding, cause, change, rule and choice.
"""

import re

from .phrase_patterns import anywhere, at_start, whole_text

_PREFACE = re.compile(
    r"(?:(?:good|great|perfect|ok|okay|right|first|then|so|also|finally|alright|hmm|wait|actually|excellent|interesting"
    r"|sure|yes|no|got it)\b[,.!:;—– -]*)+",
    re.IGNORECASE,
)
_INTENTION = at_start(
    r"""
    let me | let['’]s (?!use|go with|stick)\w+ | i['’]?ll | i will | i['’]m (?:\w+ )?(?:going|about|now|\w+ing)
    | i (?:now )?(?:need|want|have) to | i (?:should|can|could|might|must) | we (?:need|have) to | time to | going to
    | \w+ing\b[^.;:]{0,60}\bnow(?=\W|\Z)
    | now (?:i|to|for|the(?!\s.{3,80}\b(?:is|are|has|have|will|properly|correctly|only|also|uses|shows|returns
    |implements|gets|works|includes|handles|renders|supports)\b)|on|we|that|run|update|add|create|fix|check|verify|implement
    |optimi[sz]ation|replace|remove|commit|write|read|build|let) | next time | next(?=[,:]) | continuing | starting
    | i now have | i have (?:all|full|enough|everything
    |(?:a|the) (?:clear|full|complete|whole)) | looking at | checking | reading | running | moving on
    | here['’]?s (?:my|the) plan | using (?:\S+ ){1,2}(?:because|since|for|to)
    | i(?:['’]ve|\shave)?\s(?:(?:also|now|just)\s)*(?:sent|asked|told|ran|looked|opened|read|inspected|spawned|launched
    |started)
    """
)
_PROMISE = anywhere(
    r"let me | i['’]ll | i will | (?:so|and) i['’]m \w+ing | need to (?:fix|check|update|see|run|verify|add|find|look)"
)
_CHATTER = whole_text(
    r"""
    (?:all )?(?:done|clean|good|green|set|passing) | all edits done | perfect | great | excellent | good | ok | okay
    | got it | you['’]re (?:absolutely )?(?:right|welcome) | understood | sure | here(?:['’]s|\sis|\sare)\b.{0,80}
    | summary.{0,30} | everything (?:is|looks|passes|works|compiles)\b.{0,30} | (?:the )?implementation is (?:complete
    |done|in place) | .{0,40}\bhere['’]?s a summary\b.{0,60} | (?:sources?|note|result|why|changes?)
    | changes are in .{0,80} | both (?:pass|checks).{0,20} | (?:if you|let me know|would you|do you want|should i
    |shall i|want me to|feel free|happy to|ready to|i['’]m ready|how can i|what would you|glad|sorry|apologies
    |no response|ready when you|next up|thank|regarding your)\b.*
    | (?:all )?(?:changes|tasks|\d+ (?:tasks|changes|steps)).{0,30}(?:complete|done|implemented|made)\b.{0,30}
    | (?:now )?i (?:see|understand|can see)(?: the (?:issue|problem))?
    | (?:the )?fix(?:es)? (?:is|are) (?:in place|done).{0,20} | the (?:problem|issue
    |task) is clear | i (?:can(?:not|['’]t)|won['’]t) help\b.* | (?:api error
    |error: ?\d{3}|request timed out|credit balance|prompt is too long).*
    """
)
_STATUS = anywhere(
    r"""
    (?:tests?|lint(?:ing)?|type-?check(?:ing)?|typescript|types?|build|hooks?|checks?|suite|ci|commit(?:ted)?|pushed
    |compil(?:es|ed|ation))\b.{0,60}\b(?:pass(?:es|ed|ing)?|clean|green|succeed(?:s|ed)?|success(?:ful|fully)?
    |compiles?|fail(?:s|ed|ing|ures?)?|valid|as [0-9a-f]{7,}) | pushed to | committed (?:as|to|and|with|success\w*)
    | \d+ (?:pass(?:ed)?|fail(?:ed|ures)?) | commit [0-9a-f]{7,} | all (?:checks|green|clean)
    | production[- ]ready | seamless(?:ly)? | crystal clear | (?:professional|enterprise)[- ]grade
    | state[- ]of[- ]the[- ]art | fully (?:functional|working|operational) | \d+ ?% (?:complete|done)
    | (?:works?|working|renders?|behaves?) (?:exactly )?as (?:expected|intended|requested)
    | no (?:new )?(?:regressions|violations|errors|warnings) | (?:is|are) (?:now )?(?:complete|ready|done)
    """
)
_REPORTED = at_start(
    r"""
    committed | pushed
    | (?:switched|checked\sout|fast-forwarded|pruned|rebased|pulled|created\sand\sswitched)\b(?!\sfrom)
    | deleted\s(?:(?:the|local|remote|stale|merged|temporary)\s)*branch(?:es)?
    | (?:done|implemented|fixed|merged)\sand\spushed
    | (?:the\s)?(?:(?:final|current|pushed|new|local|feature)\s)*(?:commits?|branch|branch/worktree|worktree|remote|pr
    |pull\srequest|git\sstatus|status|working\stree|head|checkout|ci)(?:\s(?:pushed|status|state|url))?(?:(?=:)|\s(?:is|are
    |was|has\sbeen|now|matches|tracks|shows|points))
    | (?:the\s)?(?:[\w.-]+\s){0,3}(?:sub-?)?agents?\s(?:(?:was|is|has\sbeen)\s)?(?:launched|instructed|dispatched
    |running)
    | (?:verified|confirmed)(?:\sthat)?\s(?:head|main|origin|from\slatest) | github\sreported | ::[\w-]+
    """
)
_BRANCHES = anywhere(
    r"""
    (?:pushed|push|match(?:es|ing)?|track(?:s|ing)?|ahead\sof|behind|points?\sto|advanced\sfrom
    |moved\sduring)\b.{0,40}\borigin/[\w/.-]+
    | clean\sstatus | branched\s(?:off|from) | (?:tree|status|branch|checkout)\sis\sclean | stay\sout\sof\sthe\scommit
    | pr\s(?:is\s)?(?:ready|opened|created) | is\sone\scommit\s(?:ahead|behind)
    """
)
"""Pattern for statements about branches, remotes and pull requests, which are soon outdated."""
_CAUSAL = "root cause | because | caused by | due to | turns? out | silently"
CAUSE = anywhere(
    rf"""
    {_CAUSAL} | the fix | the (?:issue|problem|bug|reason|cause) (?:is|was) | results? in | which means | this means
    | so that | instead of | rather than | otherwise | was(?:n['’]t|not) | fell through | fails? when | since
    | (?:problem|cause|fix|before|after|why)\**:(?=\W)
    """
)
FINDING = anywhere(
    rf"""
    {_CAUSAL} | (?:it|that|this) (?:appears|seems|means|explains)
    | the (?:issue|problem|bug|reason|cause|culprit|failures?|errors?) (?:is|was|are|were|comes?|came) | not (?:related
    |caused) | unrelated | pre-existing | already (?:exists?|has|handles?|used|available|present|been) | (?:does|did
    |is|are)n['’]t | does not | cannot | can['’]t | no longer | never | only (?:when|if|works|handles)
    | overwritten | stale | dangling | missing | mismatch | expects? | requires? | unexpected(?:ly)? | falsely
    | misleading | auto-?(?:fixed|formatted|amended|included) | rewr(?:ote|itten) | fails? (?:when|on|because)
    | contain(?:s|ed) | was (?:already|being) | works? by | depends? on
    """
)
RULE = anywhere(
    r"""
    always | never | must | should (?:always|never|not|only|be) | in sync | convention | existing pattern | follow(?:s
    |ing)? the (?:existing|same) | same pattern | gotcha | make sure | pre-commit hook runs? | single source of truth
    | duplicated in | both (?:places|locations|files) | mirrors? | (?:is|are) required | rule of thumb | whenever
    | every time | enforces?
    """
)
CHOICE = anywhere(
    r"""
    decided | chose | chosen | opted | (?:we['’]?ll|let['’]s|i['’]ll|going to) (?:go with|use|stick) | going with
    | went with | instead of | rather than | better (?:approach|option|to) | cleanest | simplest | best (?:approach
    |option|fix) | safest | trade-?off | prefer(?:red|able)? | switch(?:ed|ing)? (?:from|to) | replac(?:ed
    |ing) .{3,60} with
    """
)
CHANGE = at_start(
    r"""
    (?:\S+: )?(?:(?:now|also|was|were) )?(?:add(?:s|ed)?|allow(?:s|ed)?|bump(?:ed)?|change[sd]?|clean(?:ed)?
    |convert(?:ed)?|correct(?:ed)?|create[sd]?|deleted?|deduplicate[sd]?|disabled?|drop(?:ped)?|enabled?|expand(?:ed)?
    |export(?:ed)?|extend(?:ed)?|extract(?:ed)?|filter(?:ed)?|fix(?:es|ed)?|group(?:ed)?|handle[sd]?|hidden|hide
    |implement(?:ed)?|import(?:ed)?|improved?|insert(?:ed)?|introduced?|made|makes?|merged?|moved?|pass(?:es|ed)?
    |propagated?|reduced?|refactor(?:ed)?|remove[sd]?|renamed?|replace[sd]?|restored?|rewrote|rewrite|shows?|simplify
    |simplified|skip(?:s|ped)?|sort(?:ed)?|split|stored?|strip(?:ped)?|support|swap(?:ped)?|switch(?:ed)?|update[sd]?
    |use[sd]?|wired?|wrap(?:ped)?|write|wrote)
    """
)
_DONE = r"""(?:adapted|added|addressed|adjusted|aligned|applied|bumped|changed|cleaned|cleared|consolidated|converted
    |copied|corrected|created|deduplicated|deferred|deleted|disabled|dropped|enabled|excluded|expanded|exported|exposed
    |extended|extracted|filtered|fixed|gated|generali[sz]ed|grouped|guarded|hardened|hidden|implemented|improved|increased
    |inserted|installed|integrated|introduced|made|merged|migrated|moved|optimi[sz]ed|patched|pinned|ported|raised|redesigned
    |reduced|refactored|regenerated|removed|renamed|replaced|restored|restructured|reverted|reworked|rewritten|rewrote
    |set up|shortened|simplified|sorted|split|stripped|swapped|switched|tightened|unified|updated|upgraded|wired|wrapped
    |written|wrote)"""
CHANGED = at_start(
    rf"""
    (?:(?:i|we)(?:['’]ve|\shave)?\s(?:(?:also|now|just|successfully)\s)*)?{_DONE}
    | now (?:both|the|all|every|each|only|[`\w.]+\s(?:is|are|has|uses?))\b.{{3,}}
    | (?!(?:this|that|it|i|you|we|if|when|let|no|not)\b)(?:(?:[^.:;!?]|[.:](?!\s)){{2,90}}?\b(?:(?:is|are|was|were
    |has been|have been|gets?)(?:\s\w+ly|\snow)*\s{_DONE}|now\s(?:\w+ly\s)?(?:is|are|has|have|use|show
    |\w{{2,}}(?<!thi)s))|(?:[\w.`/-]+\s){{1,4}}(?:inserted|updated|added|removed|renamed|created|bumped|extended))
    """
)
"""Pattern for a completed change: `added …`, `… is now hidden`, `the list now shows …`, `roadmap updated`."""
HOUSEKEEPING = anywhere(
    r"""
    remaining | unrelated | pre-existing | unstaged | untouched | already (?:committed|staged) | working tree | (?:have
    |has) been committed | files? (?:changed|committed) | insertions?
    """
)
NAMED = re.compile(r"`[^`\n]+`|\b\w+(?:[A-Z]\w*|_\w+)+\b|\b[\w-]+(?:/[\w.-]+)+|\b[\w-]+\.[a-z]{1,4}\b|\B--?[a-z][\w-]+")
"""Pattern for code, identifiers, paths, files and options."""
_BARE = re.compile(r"https?://\S+|[\w.-]*(?:[/\\][\w.-]+)+|[\w-]+\.[a-z]{1,5}\b|[\W\d_]+")
"""Pattern for URLs, paths, numbers and punctuation. A statement that contains little else is noise."""
_MARKER = re.compile(r"/[a-z][\w:-]*(?=\s|$)|\[[^\]]*\]$")
"""Pattern for a slash command of the agent, or for a note in brackets about an attachment."""
_NUMBER = re.compile(r"\d")
CUT = " …"
"""Suffix of a truncated statement."""
_NEEDS_CONTEXT = at_start(
    "this | that | these | those | it | they | which | he | she | needs? to | must | should | has to"
)


def needs_context(text: str) -> bool:
    """Return whether a sentence can be understood only together with the previous one."""
    return _NEEDS_CONTEXT.match(text) is not None


def is_noise(text: str) -> bool:
    """Return whether a sentence is only a promise, a greeting, a question or an announcement."""
    unfinished = text.endswith((":", "?", "…")) and not text.endswith(CUT)
    if len(text) < 12 or unfinished or len(_BARE.sub("", text)) < 8 or _MARKER.match(text):
        return True
    bare = _PREFACE.sub("", text, count=1) if _PREFACE.match(text) else text
    return any(pattern.search(form) for pattern in (_INTENTION, _CHATTER, _PROMISE) for form in (text, bare))


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
