"""Filler: true statements that are not worth remembering, and guesses that later text may refute."""

from .phrase_patterns import anywhere, at_start
from .salience import HOUSEKEEPING, needs_context
from .statements import Statement

_BOOKKEEPING = anywhere(
    r"""
    (?:remains?|stays?|left|were|was|are|is)(?: \w+)? (?:un)?(?:staged|touched|tracked|committed)
    | (?:unrelated|unstaged|uncommitted)(?: [\w/.-]+){0,3} (?:files?|changes?)
    | (?:files?|changes?)(?: \([^)]*\))? (?:are|is|were|was) (?:unrelated|pre-existing
    |(?:included|saved) (?:in|on|to|as|with) (?:\S+ ){0,2}(?:commit|branch|stash|index|pr|pull request))
    | only (?:\S+ ){0,5}(?:files?|changes?) (?:are|is|were|was) (?:\w+ )?(?:(?:un)?(?:staged|tracked|committed)|pushed
    |(?:in|part of) (?:the|this|that) (?:commit|branch|diff|index|pr|pull request)|(?:changed|modified)(?=\W*\Z))
    | only (?:repo(?:sitory)?|local|remaining) (?:files?|changes?) (?:are|is|were|was)
    | (?:\d+|no) files? changed | files? changed(?=:)
    | (?:in|into) (?:a|the|one) (?:single )?commit | working tree (?:is )?clean | scope is clean
    | net diff | head and \S+ (?:both )?(?:match|point) | review comment
    | (?:is|are) now in [0-9a-f]{7,} | changelog (?:has been|was|is)? ?updated | updated the changelog
    | (?:bundled|squashed) into
    """
)
"""Pattern for the state of files, commits and changelogs, which git records better."""
_LABEL = at_start(
    r"""
    (?:the |a )?(?:draft )?(?:pr|pull request) (?:link|url|created|opened|is|here)
    | (?:files?|sources?|paths?|locations?|authors?|dates?|branch|pr|commits?|worktree|repo(?:sitory)?):
    | [0-9a-f]{7,40}(?::| —| -) | option (?:\d|[a-d]) is(?! .*\bthan\b)
    | (?:[\w./-]+(?: \(.*?\))?(?::| —| -) )?(?:imports? \S+ |import(?:ed)? (?:type )?\S+(?: type)? from
    |added (?:(?:the|an?) )?(?:\S+ )?imports?|removed (?:the )?(?:now-?)? ?unused (?:\S+ )?(?:imports?|variables?))
    """
)
"""Pattern for the beginning of labels and import lines, which only repeat what the files show."""
_PROGRESS = anywhere(
    r"""
    good catch | false alarm | i (?:misread|mistyped|overlooked|apologi[sz]e) | rebuild your | say the word
    | (?:sub-?)?agents? (?:is|are|was|were|has|have) (?:still |now |been )?(?:running|launched|dispatched|working|done
    |finished|idle|waiting|started|blocked)(?: in (?:the )?(?:background|parallel))?(?=\W*\Z)
    | agents? (?:is|are|was|were) instructed | reports? back | still running | when (?:it|the agent) finishes
    | i (?:bet|wonder) | i(?:['’]ll| will) (?:review|wait|check|report|continue) | waiting (?:for|on) (?:the|your|it)
    | (?:next|remaining) (?:\w+ )?(?:phase|wave|task|step) (?:is|starts|begins)
    | i(?:['’]m| am) (?:still |now )?(?:in the middle|continuing|waiting|resolving) | continu\w+ to wait
    | (?:agents?|workers?|run|job) (?:is|are) (?:now|still) (?:running|working|waiting|going) | the likely slow part
    """
)
"""Pattern for reports of an agent about its own progress."""
_UNSURE_START = at_start(
    r"""
    if so | so | however | i (?:see|think|wonder|suspect|notice) | hmm | maybe | perhaps | but | and | or | wait
    | actually | interesting | two | since | typescript error | looks like | the error is clear | good | great | yes
    | right | perfect
    """
)
_UNSURE = anywhere(
    r"""
    probably | maybe | perhaps | presumably | theoretically | i (?:think|suspect|guess|bet|wonder|assume)
    | (?:might|may|could|likely) (?:be|have|need) | (?:seems?|appears?) (?:to|like|that)
    | (?:should be|looks?) (?:fine|good|correct|right|ok|okay|enough)
    | my (?:earlier|edit|change|grep|script|regex|first|last|own)
    | (?:is|are) currently | blocked until | i (?:just )?(?:removed|forgot|missed|broke|introduced)
    | is still (?:flagging|failing|complaining|reporting)
    | needs? (?:one|another|an?) (?:more )?(?:tab|space|line|level)
    """
)
_DIAGNOSIS = anywhere(
    r"""
    root cause | the (?:(?:actual|real) )?(?:issue|problem|bug|cause|culprit|error|failure)s? (?:is|are|was|were|comes?)
    | caused by | (?:problem|cause|result):
    """
)
"""Pattern for statements that name a cause. A cause in the conclusion replaces causes that were named while working."""


_PITFALL = anywhere(
    r"""
    gotchas? | pitfalls? | caveat | beware | watch out | silently | must (?:not|never|always)
    | does(?:n['’]t|\snot) work (?:in|on|with|for|when|if) | only works? (?:in|on|with|for|when|if) | not supported
    """
)
"""Pattern for statements that warn, or state a rule."""


_POSSIBILITIES = anywhere(
    r"""
    (?:likely | probably | perhaps | maybe | possibly)\s(?:one|some|any)\sof\s(?:these|the\sfollowing)
    | one of (?:these|the following) (?:is|are|must be) | (?:possible|likely) (?:causes | reasons | explanations)
    """
)
"""Pattern for the introduction of a list whose items exclude each other."""


def is_diagnosis(statement: Statement) -> bool:
    """Return whether a statement, or the heading above it, names a cause."""
    return _DIAGNOSIS.search(f"{statement.heading}: {statement.text}") is not None


def names_cause(text: str) -> bool:
    """Return whether a sentence itself names a cause."""
    return _DIAGNOSIS.search(text) is not None


def is_pitfall(statement: Statement) -> bool:
    """Return whether a statement warns of a pitfall or states a rule of the project."""
    return _PITFALL.search(f"{statement.heading}: {statement.raw}") is not None


def is_filler(statement: Statement) -> bool:
    """Return whether a statement reports only files, commits, imports, the progress of an agent, or a possibility."""
    text = statement.text
    if _POSSIBILITIES.search(statement.topic):
        return True
    return any(pattern.search(text) for pattern in (_BOOKKEEPING, _LABEL, _PROGRESS))


def is_guess(statement: Statement) -> bool:
    """Return whether a remark made while working is a guess, or not worth keeping.

    A remark is not worth keeping if it is about the agent's own mistake or the working tree, or if it depends on the
    sentence before it.
    """
    text = statement.text
    if needs_context(statement.raw) or HOUSEKEEPING.search(statement.raw):
        return True
    return _UNSURE_START.match(text) is not None or _UNSURE.search(text) is not None
