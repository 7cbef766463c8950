"""Session cards: one observation with the request, outcome, decisions, causes, open items and next steps of a session.

Facts come from the observations of the session, from its exchanges, and from texts in which models describe it:
recaps, compaction summaries and final answers. Each fact has the evidence of its source. A later statement replaces
earlier ones with mostly the same words.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...core.conversation import Exchange, Kind, Origin, Session, least
from ...core.observation import SUMMARY, CardPart, Evidence, Observation, ObservationType
from ...core.text import TITLE_MAX, headline, strip_markdown, truncate
from .exchange_analysis import CHORE, accepted_commits, analyze_exchange, most_telling, verify
from .notes import HandoffNote, NoteLabel, notes_of
from .outcome import remarks_of
from .rule_extractor import bad_end, closing_notes
from .salience import CHANGED, salience
from .statements import Statement, is_filler, is_guess, is_pitfall, names_cause
from .titles import is_aside
from .user_request import UserRequest, is_specific, read_request, stands_alone, trim_to_budget

_OUTCOMES, _DECIDED, _CAUSES, _PITFALLS, _OPEN, _NEXT = 4, 3, 2, 2, 5, 3
"""Maximum number of facts by label."""
_FILES, _READ, _CONCEPTS = 6, 4, 4
_FACT_MAX = 180
"""Maximum characters of a fact, without its label and attribution."""
_TELLING = 5
"""Minimum salience of a cause or a pitfall."""
_ADDITIONS = {ObservationType.BUG_FIX, ObservationType.REFACTOR, ObservationType.TEST}
_WORD = re.compile(r"\w{4,}")
_REPEATED = 0.7
"""Minimum share of the long words of the shorter text that the other text must contain to count as a repetition.

Only the first five letters of each word are compared.
"""
CardFact = tuple[str, Evidence]


def build_card(
    parts: Sequence[Observation],
    session: Session,
    exchanges: Sequence[Exchange],
    replaced: Collection[Observation] = (),
) -> Observation | None:
    """Return the card of a session, or None if it would only repeat the request or the session's only observation.

    Args:
        parts: Observations of the session, in order.
        session: The session.
        exchanges: The last exchanges of the session, in order.
        replaced: Observations that a later one replaces. They are not results of the session.
    """
    parts = [part for part in parts if part.evidence]
    requests = [*map(read_request, exchanges)]
    notes, origin = _verified(_notes(exchanges), exchanges)
    in_force = [part for part in parts if part not in replaced] or parts
    title = _title(in_force, session, exchanges, requests)
    asked = _asked(notes, exchanges, requests)
    of_label = {label: [_of_note(note) for note in notes if note.label is label] for label in NoteLabel}
    causes, pitfalls = _found(exchanges)
    labelled = {
        NoteLabel.ASKED: asked,
        NoteLabel.OUTCOME: _outcomes(in_force, of_label[NoteLabel.OUTCOME], asked),
        NoteLabel.DECIDED: _decided(in_force, of_label[NoteLabel.DECIDED]),
        NoteLabel.CAUSE: causes,
        NoteLabel.PITFALL: pitfalls,
        NoteLabel.OPEN: of_label[NoteLabel.OPEN][:_OPEN],
        NoteLabel.NEXT: of_label[NoteLabel.NEXT][:_NEXT],
    }
    told = [text for label, stated in labelled.items() if label is not NoteLabel.ASKED for text, _ in stated]
    is_finished = not (labelled[NoteLabel.OPEN] or labelled[NoteLabel.NEXT])
    is_repeated = is_finished and len(parts) == 1 and all(_is_in(text, parts[0]) for text in told)
    if not title or is_repeated or not (told or parts):
        return None
    facts = [(f"{label}: {text}", evidence) for label, stated in labelled.items() for text, evidence in stated]
    if ending := bad_end([note for note in notes if note.label is NoteLabel.OPEN]):
        title = _with_ending(title, f" (last {ending})")  # else the title would read like a success
    return trim_to_budget(
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
    """Return the agent's own title, the heading of the plan, the main commit, or the request and its result."""
    if session.title_rank > 0 and is_specific(session.title) and not session.title.endswith("?"):
        return headline(session.title) or truncate(session.title, TITLE_MAX)
    planned = zip(requests, exchanges, strict=True)
    plans = [request.title for request, exchange in planned if request.plan and exchange.writes]
    commit = most_telling([commit for exchange in exchanges for commit in accepted_commits(exchange)])
    subjects = [commit.subject] if commit and not CHORE.match(commit.subject) and is_specific(commit.subject) else []
    changes = [part.title for part in sorted(filter(_is_change, parts), key=_size, reverse=True)]
    orders = [request.title for request in requests if request.title and not request.routine]
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
    return [(truncate(first.title if first.plan else first.text, _FACT_MAX), _proof(first))]


def _proof(request: UserRequest) -> Evidence:
    return Evidence(request.line, request.line, request.quote)


def _outcomes(parts: Sequence[Observation], reported: Sequence[CardFact], asked: Sequence[CardFact]) -> list[CardFact]:
    """Return the reported result or the largest change that lasted, and then further ones, sorted by time."""
    made = [*filter(_is_change, parts)]
    lasting = [part for place, part in enumerate(made) if not _is_overtaken(part, made[place + 1 :])]
    changes = [_head(part, asked) for part in sorted(lasting, key=_size, reverse=True)]
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


def _head(part: Observation, asked: Sequence[CardFact]) -> CardFact | None:
    """Return the title of a change, or its most telling fact if the title only repeats the request."""
    if not any(repeats(part.title, text) for text, _ in asked):
        return part.title, part.evidence[0]
    stated = [each for each in zip(part.facts, part.evidence, strict=False) if CHANGED.match(each[0])]
    fact, proof = max(stated, key=lambda each: salience(each[0]), default=("", None))
    return (fact, proof) if proof is not None and len(fact) <= _FACT_MAX else None


def _decided(parts: Sequence[Observation], notes: Sequence[CardFact]) -> list[CardFact]:
    """Return the last decisions of the user, in chronological order, or else those that a summary names."""
    decisions = [
        fact
        for part in parts
        if part.type is ObservationType.DECISION and part.origin == Origin.HUMAN
        for fact in zip(part.facts, part.evidence, strict=False)
    ]
    return _latest(decisions or notes, _DECIDED)


def _found(exchanges: Sequence[Exchange]) -> tuple[list[CardFact], list[CardFact]]:
    """Return the last causes that the assistant named, and the last pitfalls."""
    causes: list[CardFact] = []
    pitfalls: list[CardFact] = []
    for exchange in exchanges:
        analysis = analyze_exchange(exchange)
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
    return replace(note, text=truncate(strip_markdown(note.text), _FACT_MAX)).attributed, note.evidence


def _line(fact: CardFact) -> int:
    _, evidence = fact
    return evidence.start_line


def _distinct(facts: Iterable[CardFact]) -> list[CardFact]:
    """Return the facts without repetitions. For example, a commit can repeat the plan that it carries out."""
    kept: list[CardFact] = []
    for fact in facts:
        if not any(repeats(fact[0], text) for text, _ in kept):
            kept.append(fact)
    return kept


def repeats(text: str, other: str) -> bool:
    """Return whether two texts share most of the long words of the shorter text."""
    words, others = ({word[:5].lower() for word in _WORD.findall(each)} for each in (text, other))
    return bool(words and others) and len(words & others) >= _REPEATED * min(len(words), len(others))


def _frequent(names: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(name for name, _ in Counter(names).most_common(most))
