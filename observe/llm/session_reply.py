"""Parser of session replies, which keeps only the facts of a summary that the session proves."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

from ...archiver.store import StoredExchange
from ...core.observation import SUMMARY, Observation, ObservationType
from ...core.origin import Origin
from ..rules.trimming import trim_to_budget
from ..rules.verification import includes_external
from .excerpt import Excerpt
from .extraction_reply import ReplyFact, keep_proven_sentences, one_line, prove_facts, validate
from .grounding import SourceText
from .model_errors import ReplyInvalid
from .model_request import ReplyModel

_FACTS_MAX, _CONCEPTS_MAX = 16, 8
_TITLE, _NARRATIVE, _FACT, _CONCEPT = 120, 900, 280, 40
"""Maximum characters of each field."""
_READ_MAX, _MODIFIED_MAX = 6, 24
_KINDS: Final = ("asked", "outcome", "open", "next", "decided", "superseded")
"""Kinds of facts, in the order in which they are stored. Summaries by rules use the same labels."""


class SessionFact(ReplyFact):
    """Fact about a session. `kind` is the part of the summary that contains it, such as `outcome` or `open`."""

    kind: Literal["asked", "outcome", "open", "next", "decided", "superseded"]


class SessionReply(ReplyModel):
    """Complete reply. The verdict `nothing` means that the session contains nothing to summarise."""

    verdict: Literal["summary", "nothing"]
    title: str
    narrative: str
    facts: list[SessionFact]
    concepts: list[str]


def read_session_reply(text: str) -> SessionReply:
    """Parse a reply.

    Raises:
        ReplyInvalid: The text is not JSON, has an unexpected structure, or contradicts its own verdict.
    """
    reply = validate(text, SessionReply)
    if (reply.verdict == "nothing") != (not reply.facts):
        raise ReplyInvalid(f"the verdict is `{reply.verdict}`, but the reply has {len(reply.facts)} facts", text)
    return reply


def verify_session_reply(
    reply: SessionReply, exchanges: Sequence[StoredExchange], excerpt: Excerpt, extractor: str, raw: str
) -> tuple[Observation | None, int]:
    """Return the summary and the number of rejected facts. Return None if the verdict is `nothing`.

    Raises:
        ReplyInvalid: The title contains a name that does not occur in the session, or no fact is proven.
    """
    if reply.verdict == "nothing":
        return None, 0
    every = [stored.exchange for stored in exchanges]
    read = Counter(path for exchange in every for path in exchange.reads)
    modified = Counter(path for exchange in every for path in exchange.writes)
    source = SourceText((*(passage.turn.text for passage in excerpt.passages), *read, *modified))
    if not reply.title.strip() or not source.contains_names_of(reply.title):
        raise ReplyInvalid("the title of the reply contains a name that does not occur in the session", raw)
    facts = reply.facts[:_FACTS_MAX]
    proven = sorted(prove_facts(facts, excerpt, source), key=lambda each: _KINDS.index(each[0].kind))
    if not proven:
        raise ReplyInvalid(f"the session proves none of the {len(facts)} facts in the reply", raw)
    concepts = (one_line(word.lower(), _CONCEPT) for word in reply.concepts if source.contains_names_of(word))
    summary = Observation(
        type=ObservationType.GENERAL,
        title=SUMMARY + one_line(reply.title, _TITLE).removeprefix(SUMMARY),
        subtitle=f"Summary of {len(every)} exchanges",
        narrative=one_line(keep_proven_sentences(reply.narrative, source), _NARRATIVE),
        facts=tuple(f"{fact.kind.capitalize()}: {one_line(fact.text, _FACT)}" for fact, _ in proven),
        concepts=tuple(dict.fromkeys(concepts))[:_CONCEPTS_MAX],
        files_read=_frequent(read, _READ_MAX),
        files_modified=_frequent(modified, _MODIFIED_MAX),
        evidence=tuple(evidence for _, evidence in proven),
        at=every[-1].ended or every[-1].started,
        origin=Origin.EXTERNAL if any(map(includes_external, every)) else Origin.ASSISTANT,
        extractor=extractor,
    )
    return trim_to_budget(summary), len(facts) - len(proven)


def _frequent(counted: Counter[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in counted.most_common(most))
