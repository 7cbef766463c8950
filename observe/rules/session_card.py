"""Session cards: one observation with the request, outcome, decisions, causes, open items and next steps of a session.

Facts come from the observations of the session, from its exchanges, and from texts in which models describe it:
recaps, compaction summaries and final answers. Each fact has the evidence of its source. A later statement replaces
earlier ones with mostly the same words.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...archiver.store import MODEL_PREFIX
from ...core.conversation import Exchange, Kind, Origin, Session, least
from ...core.observation import SUMMARY, CardPart, Evidence, Observation, ObservationType
from ...core.reports import many
from ...core.text import TITLE_MAX, headline, repeats, strip_markdown, truncate
from .exchange_analysis import (
    CHORE,
    MINOR,
    CommitMessage,
    ExchangeAnalysis,
    accepted_commits,
    analyze_exchange,
    most_telling,
    verify,
)
from .notes import HandoffNote, NoteLabel, notes_of
from .outcome import remarks_of
from .rule_extractor import bad_end, closing_notes
from .salience import CHANGED, phrases, salience
from .statements import Statement, is_filler, is_guess, is_pitfall, names_cause
from .titles import UNNAMED, bottom_line, is_aside
from .user_request import UserRequest, is_specific, stands_alone, trim_to_budget

_OUTCOMES, _DECIDED, _CAUSES, _PITFALLS, _OPEN, _NEXT = 4, 3, 2, 2, 5, 3
"""Maximum number of facts by label."""
_FILES, _READ, _CONCEPTS = 6, 4, 4
_FACT_MAX = 180
"""Maximum characters of a fact, without its label and attribution."""
_TELLING = 5
"""Minimum salience of a cause or a pitfall."""
_ADDITIONS = {ObservationType.BUG_FIX, ObservationType.REFACTOR, ObservationType.TEST}
_REPORTED = phrases("session_card.reported")
"""Pattern for a result that is no change of code: `drafted the plan at …`."""
_BESIDE = re.compile(r"also\b|.{0,90}\btests? (?:added|confirm|cover|pass|verif)", re.IGNORECASE)
"""Pattern for a change beside the result: a further detail, or a test of the result."""
CardFact = tuple[str, Evidence]
Work = tuple[Exchange, ExchangeAnalysis]
"""Exchange with its analysis."""


def build_card(
    parts: Sequence[Observation],
    session: Session,
    exchanges: Sequence[Exchange],
    replaced: Collection[Observation] = (),
) -> Observation | None:
    """Return the card of a session, or None if it would only repeat the request or the session's only finding.

    Args:
        parts: Observations of the session, in order.
        session: The session.
        exchanges: The last exchanges of the session, in order.
        replaced: Observations that a later one replaces. They are not results of the session.
    """
    parts = [part for part in parts if part.evidence]
    work = [(exchange, analyze_exchange(exchange)) for exchange in exchanges]
    requests = [analysis.request for _, analysis in work]
    notes, origin = _verified(_notes(exchanges), exchanges)
    in_force = [part for part in parts if part not in replaced] or parts
    title = _title(in_force, session, exchanges, requests)
    asked = _asked(notes, exchanges, requests)
    of_label = {label: [_of_note(note) for note in notes if note.label is label] for label in NoteLabel}
    causes, pitfalls = _found(work)
    decided = _decided(in_force, of_label[NoteLabel.DECIDED])
    labelled = {
        NoteLabel.ASKED: asked,
        NoteLabel.OUTCOME: _outcomes(in_force, work, of_label[NoteLabel.OUTCOME], asked),
        NoteLabel.DECIDED: decided[-_DECIDED:],
        NoteLabel.CAUSE: causes,
        NoteLabel.PITFALL: pitfalls,
        NoteLabel.OPEN: of_label[NoteLabel.OPEN][:_OPEN],
        NoteLabel.NEXT: of_label[NoteLabel.NEXT][:_NEXT],
    }
    texts = [text for label, stated in labelled.items() if label is not NoteLabel.ASKED for text, _ in stated]
    is_finished = not (labelled[NoteLabel.OPEN] or labelled[NoteLabel.NEXT])
    is_lone = is_finished and len(parts) == 1 and not labelled[NoteLabel.OUTCOME]
    is_repeated = is_lone and all(_is_in(text, parts[0]) for text in texts)
    if not title or is_repeated or not (texts or parts):
        return None
    facts = [(f"{label}: {text}", evidence) for label, stated in labelled.items() for text, evidence in stated]
    if ending := bad_end([note for note in notes if note.label is NoteLabel.OPEN]):
        title = _with_ending(title, f" (last {ending})")  # else the title would read like a success
    card = trim_to_budget(
        Observation(
            type=ObservationType.GENERAL,
            title=f"{SUMMARY}{title}",
            facts=tuple(fact for fact, _ in facts),
            concepts=_frequent((concept for part in parts for concept in part.concepts), _CONCEPTS),
            files_read=_frequent((path for part in parts for path in part.files_read), _READ),
            files_modified=_frequent((path for part in parts for path in part.files_modified), _FILES),
            evidence=tuple(evidence for _, evidence in facts),
            at=exchanges[-1].ended or exchanges[-1].started,
            origin=least([origin, *_origins(facts, exchanges), *(Origin(part.origin) for part in parts)]),
            extractor=parts[-1].extractor if parts else "",
        )
    )
    return _with_count(card, NoteLabel.DECIDED, len(decided))


def _with_count(card: Observation, label: NoteLabel, total: int) -> Observation:
    """Return a card whose last fact with a label counts the earlier facts that it leaves out."""
    places = [place for place, fact in enumerate(card.facts) if fact.startswith(f"{label}: ")]
    if not places or len(places) >= total:
        return card
    facts = [*card.facts]
    facts[places[-1]] += f" (and {many(total - len(places), 'earlier decision')})"
    return replace(card, facts=tuple(facts))


def _origins(facts: Iterable[CardFact], exchanges: Sequence[Exchange]) -> Iterator[Origin]:
    """Yield the least trusted origin of the facts of each exchange."""
    for exchange in exchanges:
        lines = range(exchange.span.start_line, exchange.span.end_line + 1)
        proofs = tuple(proof for _, proof in facts if proof.start_line in lines)
        stated = Observation(ObservationType.GENERAL, "", evidence=proofs, origin=Origin.HUMAN)
        yield from (Origin(valid.origin) for valid in verify(exchange, [stated]).observations)


def _is_in(text: str, part: Observation) -> bool:
    """Return whether an observation states what a text states."""
    return any(repeats(text, stated) for stated in (part.title, part.narrative, *part.facts))


def _notes(exchanges: Sequence[Exchange]) -> list[HandoffNote]:
    """Return the request in the newest compaction summary, and the notes at the end of the session."""
    turns = [turn for exchange in exchanges for turn in exchange.turns if turn.kind is Kind.COMPACTION and turn.active]
    asked = [note for turn in turns for note in notes_of(turn) if note.label is NoteLabel.ASKED]
    return [*asked[-1:], *closing_notes(exchanges)]


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


def _title(
    parts: Sequence[Observation], session: Session, exchanges: Sequence[Exchange], requests: Sequence[UserRequest]
) -> str:
    """Return the agent's own title, the heading of the plan, the main commit, or the request and its result.

    A title by a model that claims a change needs a change that was made.
    """
    is_true = not session.claims_change or any(map(_is_change, parts)) or any(exchange.writes for exchange in exchanges)
    if session.title_rank > 0 and is_true and is_specific(session.title) and not session.title.endswith("?"):
        return headline(session.title) or truncate(session.title, TITLE_MAX)
    planned = zip(requests, exchanges, strict=True)
    plans = [request.title for request, exchange in planned if request.plan and exchange.writes]
    commit = most_telling([commit for exchange in exchanges for commit in accepted_commits(exchange)])
    subjects = [commit.subject] if commit and not CHORE.match(commit.subject) and is_specific(commit.subject) else []
    orders = [request.title for request in requests if request.title and not request.routine]
    later = {*map(headline, orders[1:])}
    made = sorted(filter(_is_change, parts), key=lambda part: (part.title in later, -_size(part)))
    changes = [part.title for part in made]
    verdicts = [part.title for part in parts if part.type.card is CardPart.FINDING]
    specific = [order for order in orders if stands_alone(order)]
    candidates = (*plans, *subjects, *changes[:1], *specific[:1], *verdicts[:1], *specific[1:], *orders)
    return next((short for candidate in candidates if (short := headline(candidate))), "")


def _with_ending(title: str, ending: str) -> str:
    return f"{headline(title, TITLE_MAX - len(ending)) or truncate(title, TITLE_MAX - len(ending))}{ending}"


def _asked(
    notes: Sequence[HandoffNote], exchanges: Sequence[Exchange], requests: Sequence[UserRequest]
) -> list[CardFact]:
    """Return the first specific request of the session, or the request in an earlier compaction summary."""
    from_start = (
        request
        for place, (exchange, request) in enumerate(zip(exchanges, requests, strict=True))
        if exchange.ordinal == exchanges[0].ordinal + place
    )
    first = next((each for each in from_start if each.quote and is_specific(each.title) and not each.routine), None)
    stated = next((note for note in notes if note.label is NoteLabel.ASKED), None)
    if stated and (first is None or stated.evidence.start_line < first.line):
        return [_of_note(stated)]
    if first is None:
        return []
    return [(_shortened(first.title if first.plan else first.text), _proof(first))]


def _shortened(text: str) -> str:
    """Return at most `_FACT_MAX` characters of a text, with “…” if it does not end with a sentence."""
    short = truncate(text, _FACT_MAX)
    return short if short == text or short.endswith((".", "!", "?")) else f"{short} …"


def _proof(request: UserRequest) -> Evidence:
    return Evidence(request.line, request.line, request.quote)


def _outcomes(
    parts: Sequence[Observation], work: Sequence[Work], reported: Sequence[CardFact], asked: Sequence[CardFact]
) -> list[CardFact]:
    """Return the reported result or the largest change that lasted, and then further ones, sorted by time."""
    made = [*filter(_is_change, parts)]
    lasting = [part for place, part in enumerate(made) if not _is_overtaken(part, made[place + 1 :])]
    places = {_place(part, work) for part in made}
    named = (part for part in sorted(lasting, key=_size, reverse=True) if not UNNAMED.match(part.title))
    changes = [_result(part, work, places, asked) for part in named]
    largest = _distinct([*reported[:1], *filter(None, changes)])[:_OUTCOMES]
    return [*largest[:1], *sorted(largest[1:], key=_line)]


def _is_overtaken(part: Observation, later: Sequence[Observation]) -> bool:
    """Return whether a later change rewrote all files of a change. A repair or a test of the change leaves it valid."""
    files = {*part.files_modified}
    rewrites = (other for other in later if other.type is part.type or other.type not in _ADDITIONS)
    return bool(files) and any(files <= {*other.files_modified} and _size(part) <= _size(other) for other in rewrites)


def _is_change(part: Observation) -> bool:
    return part.type.card is CardPart.CHANGE


def _size(part: Observation) -> int:
    return len(part.files_modified) + len(part.facts)


def _place(part: Observation, work: Sequence[Work]) -> int | None:
    """Return the index of the exchange of an observation, or None if the exchange is not among those of the card."""
    line = part.evidence[0].start_line
    exchanges = enumerate(exchange for exchange, _ in work)
    return next((place for place, exchange in exchanges if any(turn.line == line for turn in exchange.turns)), None)


def _result(
    part: Observation, work: Sequence[Work], places: Collection[int | None], asked: Sequence[CardFact]
) -> CardFact | None:
    """Return the commit of a change, or else a change that the assistant states, or None.

    The user's own words, a cause and a limit are no result. A statement that repeats the request is the last choice.
    `places` are the exchanges with changes. A commit in a later exchange belongs to the change before it.
    """
    place = _place(part, work)
    if part.extractor.startswith(MODEL_PREFIX) or place is None:
        results = [(part.title, part.evidence[0])] if place is not None or CHANGED.match(part.title) else []
    else:
        following = (later for later in range(place + 1, len(work)) if later in places)
        done = work[place : next(following, len(work))]
        commits = [commit for _, analysis in done for commit in analysis.accepted_commits]
        if main := [commit for commit in commits if not _is_minor(commit)]:
            return _of_commit(main[-1], asked)
        results = [*_stated_title(part, work[place][1]), *_stated_facts(part, work[place][0])]
        results += [_of_commit(commit, asked) for commit in commits[-1:]]
    is_new = (fact for fact in results if not _repeats_any(fact[0], asked))
    return next(is_new, next(iter(results), None))


def _is_minor(commit: CommitMessage) -> bool:
    return MINOR.match(commit.subject) is not None or "changelog" in commit.subject.lower()


def _of_commit(commit: CommitMessage, asked: Sequence[CardFact]) -> CardFact:
    """Return the subject of a commit, named as a commit if the subject only repeats the request."""
    text = headline(commit.subject) or truncate(commit.subject, TITLE_MAX)
    text = f"Committed “{text}”" if _repeats_any(text, asked) else text
    return text, Evidence(commit.line, commit.line, commit.quote)


def _repeats_any(text: str, facts: Iterable[CardFact]) -> bool:
    return any(repeats(text, other) for other, _ in facts)


def _stated_title(part: Observation, analysis: ExchangeAnalysis) -> Iterator[CardFact]:
    """Yield the title of a change if a reply states it as a result."""
    for stated in analysis.conclusion:
        if _is_result(part.title) and headline(bottom_line(stated.text)).startswith(part.title):
            yield part.title, Evidence(stated.line, stated.line, stated.quote)


def _stated_facts(part: Observation, exchange: Exchange) -> list[CardFact]:
    """Return the facts that state a result and that the user did not write, the most telling one first."""
    prompts = {turn.line for turn in exchange.turns if turn.kind is Kind.PROMPT}
    facts = [fact for fact in zip(part.facts, part.evidence, strict=False) if len(fact[0]) <= _FACT_MAX]
    results = [(text, proof) for text, proof in facts if _is_result(text) and proof.start_line not in prompts]
    return sorted(results, key=lambda fact: -salience(fact[0]))


def _is_result(text: str) -> bool:
    is_stated = (CHANGED.match(text) or _REPORTED.match(text)) is not None
    return is_stated and is_specific(text) and not _BESIDE.match(text)


def _decided(parts: Sequence[Observation], notes: Sequence[CardFact]) -> list[CardFact]:
    """Return the decisions of the user, in chronological order, or else those that a summary names."""
    decisions = [
        fact
        for part in parts
        if part.type is ObservationType.DECISION and part.origin == Origin.HUMAN
        for fact in zip(part.facts, part.evidence, strict=False)
    ]
    return _latest(decisions or notes, len(decisions or notes))


def _found(work: Sequence[Work]) -> tuple[list[CardFact], list[CardFact]]:
    """Return the last causes that the assistant named, and the last pitfalls."""
    causes: list[CardFact] = []
    pitfalls: list[CardFact] = []
    for _, analysis in work:
        for stated in filter(_is_sure, (*remarks_of(analysis), *analysis.conclusion)):
            kind = causes if names_cause(stated.text) else pitfalls if is_pitfall(stated) else None
            if kind is not None:
                kind.append((stated.text, Evidence(stated.line, stated.line, stated.quote)))
    return _latest(causes, _CAUSES), _latest(pitfalls, _PITFALLS)


def _is_sure(statement: Statement) -> bool:
    if len(statement.text) > _FACT_MAX or salience(statement.raw) < _TELLING:
        return False
    return not (is_filler(statement) or is_guess(statement) or is_aside(statement))


def _latest(facts: Sequence[CardFact], most: int) -> list[CardFact]:
    """Return the last facts in order, without those that a later one repeats."""
    return _distinct(reversed(facts))[:most][::-1]


def _of_note(note: HandoffNote) -> CardFact:
    return replace(note, text=_shortened(strip_markdown(note.text))).attributed, note.evidence


def _line(fact: CardFact) -> int:
    _, evidence = fact
    return evidence.start_line


def _distinct(facts: Iterable[CardFact]) -> list[CardFact]:
    """Return the facts without repetitions. For example, a commit can repeat the plan that it carries out."""
    kept: list[CardFact] = []
    for fact in facts:
        if not _repeats_any(fact[0], kept):
            kept.append(fact)
    return kept


def _frequent(names: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in Counter(names).most_common(most))
