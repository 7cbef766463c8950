"""Session summaries: one observation with the request, outcome, open items, next steps and decisions of a session.

Facts come from the observations of the session, and from texts in which models describe it: recaps, compaction
summaries and final answers. Each fact has the evidence of its source.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from ...core.conversation import Exchange, Kind, Session, Turn
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.origin import Origin, least
from ...core.sentences import TITLE_MAX, headline, truncate
from .choices import choices
from .exchange_analysis import CHORE, accepted_commits, most_telling
from .further_results import is_further_result
from .handoff_notes import HandoffNote, NoteLabel, notes_of
from .open_items import closing_notes, failed_end
from .outcome import PROPOSED
from .salience import CHANGED, HOUSEKEEPING, salience
from .trimming import trim_to_budget
from .user_request import is_specific, read_request
from .verification import verify

_OUTCOMES, _OPEN, _NEXT, _DECIDED, _LEARNED = 4, 3, 2, 3, 2
"""Maximum number of facts by label."""
_FILES, _READ, _CONCEPTS = 6, 4, 4
_FACT_MAX = 180
"""Maximum characters of a fact, without its label and attribution."""
_FINDINGS = {ObservationType.DEBUG, ObservationType.LEARNING, ObservationType.PATTERN}
_WORD = re.compile(r"\w{4,}")
_REPEATED = 0.7
"""Minimum share of the long words of the shorter text that the other text must contain to count as a repetition.

Only the first five letters of each word are compared.
"""
_BY_ME = re.compile(r"(?:i|we)(?: have|['’]ve)?\s+(?=\w+ed\b|made\b|wrote\b)", re.IGNORECASE)
SummaryFact = tuple[str, Evidence]


def build_summary(
    parts: Sequence[Observation],
    session: Session,
    exchanges: Sequence[Exchange],
    replaced: Collection[Observation] = (),
) -> Observation | None:
    """Return the summary of a session, or None if it would be empty or only repeat the session's only observation.

    Args:
        parts: Observations of the session, in order. Further results are counted, but the summary does not list them.
        session: The session.
        exchanges: The last exchanges of the session, in order.
        replaced: Observations that a later one replaces. They are not results of the session.
    """
    count = len(parts)
    parts = [part for part in parts if part.evidence and not is_further_result(part)]
    notes, origin = _verified(_notes(exchanges), exchanges)
    reported = next((note for note in notes if note.label is NoteLabel.OUTCOME), None)
    if not (parts or reported) or (len(parts) == 1 and not any(_is_new(note, parts[0]) for note in notes)):
        return None
    in_force = [part for part in parts if part not in replaced] or parts
    asked = _asked(parts, notes, exchanges)
    of_label = {label: [note for note in notes if note.label is label] for label in NoteLabel}
    labelled = {
        NoteLabel.ASKED: asked,
        NoteLabel.OUTCOME: _outcomes(in_force, reported, asked),
        NoteLabel.OPEN: [*map(_of_note, of_label[NoteLabel.OPEN][:_OPEN])],
        NoteLabel.NEXT: [*map(_of_note, of_label[NoteLabel.NEXT][:_NEXT])],
        NoteLabel.DECIDED: _decided(in_force, of_label[NoteLabel.DECIDED]),
        "Learned": _learned(in_force),
    }
    facts = [(f"{label}: {text}", evidence) for label, found in labelled.items() for text, evidence in found]
    title = _title(in_force, reported, session, exchanges)
    if failed := failed_end(of_label[NoteLabel.OPEN]):  # else the title would read like a success
        ending = f" (last {failed} failed)"
        title = f"{truncate(title, TITLE_MAX - len(ending))}{ending}"
    return trim_to_budget(
        Observation(
            type=ObservationType.GENERAL,
            title=f"{SUMMARY}{title}",
            subtitle=_subtitle(count, session),
            facts=tuple(fact for fact, _ in facts),
            concepts=_frequent((concept for part in parts for concept in part.concepts), _CONCEPTS),
            files_read=_frequent((path for part in parts for path in part.files_read), _READ),
            files_modified=_frequent((path for part in parts for path in part.files_modified), _FILES),
            evidence=tuple(evidence for _, evidence in facts),
            at=parts[-1].at if parts else exchanges[-1].ended,
            origin=least([origin, *(Origin(part.origin) for part in parts)]),
            extractor=parts[-1].extractor if parts else "",
        )
    )


def _notes(exchanges: Sequence[Exchange]) -> list[HandoffNote]:
    """Return the request in the newest compaction summary, the choices in replies, and the notes at the end."""
    turns = [turn for exchange in exchanges for turn in exchange.turns if turn.kind is Kind.COMPACTION and turn.active]
    asked = [note for turn in turns for note in notes_of(turn) if note.label is NoteLabel.ASKED]
    made = chain.from_iterable(choices(reply) for reply in map(_last_reply, exchanges) if reply)
    return [*asked[-1:], *made, *closing_notes(exchanges)]


def _last_reply(exchange: Exchange) -> Turn | None:
    return next((turn for turn in reversed(exchange.turns) if turn.is_reply and turn.active), None)


def _verified(notes: Iterable[HandoffNote], exchanges: Sequence[Exchange]) -> tuple[list[HandoffNote], Origin]:
    """Return the notes whose quotes occur on the lines that they cite, and the least trusted origin of their texts.

    A recap or a compaction summary can repeat text of any exchange, so its origin is that of the whole session.
    """
    whole = replace(exchanges[-1], turns=tuple(turn for exchange in exchanges for turn in exchange.turns))
    of_line = {turn.line: exchange for exchange in exchanges for turn in exchange.turns}
    kept: list[HandoffNote] = []
    origins = [Origin.HUMAN]
    for note in notes:
        stated = Observation(
            ObservationType.GENERAL, note.text, facts=(note.text,), evidence=(note.evidence,), origin=Origin.HUMAN
        )
        source = whole if note.source else of_line[note.evidence.start_line]
        for valid in verify(source, [stated]).observations:
            kept.append(note)
            origins.append(Origin(valid.origin))
    return kept, least(origins)


def _is_new(note: HandoffNote, part: Observation) -> bool:
    """Return whether a note adds something to an observation."""
    said = (part.title, part.narrative, *part.facts)
    return not any(_repeats(note.text, text) for text in said)


def _asked(
    parts: Sequence[Observation], notes: Sequence[HandoffNote], exchanges: Sequence[Exchange]
) -> list[SummaryFact]:
    """Return the request of the session.

    It is the first specific request, or the request in an earlier compaction summary. Without both, it is the quote
    that proves the narrative of the first observation.
    """
    from_start = (each for place, each in enumerate(exchanges) if each.ordinal == exchanges[0].ordinal + place)
    requests = map(read_request, from_start)
    first = next((each for each in requests if each.quote and is_specific(each.title) and not each.routine), None)
    stated = next((note for note in notes if note.label is NoteLabel.ASKED), None)
    if stated and (first is None or stated.evidence.start_line < first.line):
        return [_of_note(stated)]
    if first:
        text = first.title if first.plan else first.text
        return [(truncate(text, _FACT_MAX), Evidence(first.line, first.line, first.quote))]
    quoted = parts[0].evidence[len(parts[0].facts) :] if parts else ()
    return [(headline(proof.quote), proof) for proof in quoted[:1]]


def _outcomes(
    parts: Sequence[Observation], reported: HandoffNote | None, asked: Sequence[SummaryFact]
) -> list[SummaryFact]:
    """Return the reported result, then the observed results with the most files and facts, sorted by time."""
    stated = [_of_note(reported)] if reported else []
    found = [_finding(part, asked) for part in sorted(filter(_is_result, parts), key=_size, reverse=True)]
    results = [each for each in found if headline(each[0]) not in {headline(text) for text, _ in asked}] or found
    largest = _distinct([*stated, *results])[:_OUTCOMES]
    return [*stated, *sorted(largest[len(stated) :], key=_line)]


def _is_result(part: Observation) -> bool:
    """Return whether an observation describes a change. A plan without approval is not a result."""
    return part.type not in {*_FINDINGS, ObservationType.DECISION} and not part.title.startswith(PROPOSED)


def _size(part: Observation) -> int:
    return len(part.files_modified) + len(part.facts)


def _finding(part: Observation, asked: Sequence[SummaryFact] = ()) -> SummaryFact:
    """Return the title of an observation, or its best fact if the title is a question or repeats the request."""
    proven = [each for each in zip(part.facts, part.evidence, strict=False) if not HOUSEKEEPING.search(each[0])]
    if proven and (part.title.endswith("?") or any(_repeats(part.title, text) for text, _ in asked)):
        fact, evidence = max(proven, key=lambda each: (CHANGED.match(each[0]) is not None, salience(each[0])))
        return truncate(fact, _FACT_MAX), evidence
    return part.title, part.evidence[0]


def _decided(parts: Sequence[Observation], notes: Iterable[HandoffNote]) -> list[SummaryFact]:
    """Return the decisions of the user, and then those that replies state, in chronological order."""
    decisions = [(part.title, part.evidence[0]) for part in parts if part.type is ObservationType.DECISION]
    return sorted(_distinct([*decisions, *map(_of_note, notes)])[:_DECIDED], key=_line)


def _learned(parts: Sequence[Observation]) -> list[SummaryFact]:
    return _distinct(_finding(part) for part in parts if part.type in _FINDINGS)[-_LEARNED:]


def _of_note(note: HandoffNote) -> SummaryFact:
    return replace(note, text=truncate(note.text, _FACT_MAX)).attributed, note.evidence


def _line(fact: SummaryFact) -> int:
    _, evidence = fact
    return evidence.start_line


def _title(
    parts: Sequence[Observation], reported: HandoffNote | None, session: Session, exchanges: Sequence[Exchange]
) -> str:
    """Return the reported outcome, or else the main commit, the plan that was carried out, or the largest result.

    A commit of tests or chores is the title only if nothing else has a result.
    """
    if reported:
        return headline(_BY_ME.sub("", reported.text, count=1))
    commit = most_telling([commit for exchange in exchanges for commit in accepted_commits(exchange)])
    if commit and not CHORE.match(commit.subject):
        return headline(commit.subject)
    plans = [request.title for request in map(read_request, filter(_has_edits, exchanges)) if request.plan]
    ranked = sorted(parts, key=lambda part: (_is_result(part), _size(part)), reverse=True)
    subjects = [commit.subject] if commit else []
    results = [_finding(part)[0] for part in ranked if _is_result(part)]
    titles = [*plans, *results[:1], *subjects, *(_finding(part)[0] for part in ranked), session.title, ranked[0].title]
    return headline(next((title for title in titles if title and not title.endswith("?")), titles[0]))


def _has_edits(exchange: Exchange) -> bool:
    return bool(exchange.writes)


def _subtitle(count: int, session: Session) -> str:
    """Return the number of observations, and the title that the agent gave to the session."""
    counted = f"Summary of {count} observation{'' if count == 1 else 's'}"
    return f"{counted}: {headline(session.title)}" if session.title else counted


def _distinct(facts: Iterable[SummaryFact]) -> list[SummaryFact]:
    """Return the facts without repetitions. For example, a commit can repeat the plan that it carries out."""
    kept: list[SummaryFact] = []
    for fact in facts:
        if not any(_repeats(fact[0], known) for known, _ in kept):
            kept.append(fact)
    return kept


def _repeats(text: str, known: str) -> bool:
    """Return whether two texts share most of the long words of the shorter text."""
    words, others = ({word[:5].lower() for word in _WORD.findall(each)} for each in (text, known))
    return bool(words and others) and len(words & others) >= _REPEATED * min(len(words), len(others))


def _frequent(names: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in Counter(names).most_common(most))
