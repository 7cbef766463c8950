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
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.text import TITLE_MAX, headline, shorten, strip_markdown, truncate
from .classification import VERDICT, files_title
from .exchange_analysis import CHORE, accepted_commits, analyze_exchange, most_telling, verify
from .notes import HandoffNote, NoteLabel, answer_notes, notes_of
from .outcome import remarks_of
from .prompt_parts import TOKENS_MAX, UserRequest, is_specific, read_request, stands_alone
from .rule_extractor import closing_notes, failed_end
from .salience import salience
from .shell_commands import is_repair
from .statements import Statement, is_filler, is_guess, is_pitfall, is_root_cause, names_cause, quote_of
from .titles import bottom_line, is_aside, is_clear, score, states_change, title_candidates

_CHANGES, _ANSWERS, _DECIDED, _CAUSES, _PITFALLS, _OPEN, _NEXT = 4, 3, 4, 3, 2, 3, 2
"""Maximum number of facts by label. Changes and answers are outcomes."""
_FILES, _CONCEPTS = 6, 4
_FACT_MAX = 240
"""Maximum characters of a fact, without its label and attribution. A longer sentence ends with an earlier clause."""
_TELLING = 5
"""Minimum salience of an answer, a cause or a pitfall."""
_SENTENCE = 40
"""Minimum characters of an answer. Shorter ones are usually fragments."""
_FINDINGS = {ObservationType.DEBUG, ObservationType.LEARNING, ObservationType.PATTERN}
_WORD = re.compile(r"\w{4,}")
_BESIDE = re.compile(r"\btests?\b|\.test\.|changelog", re.IGNORECASE)
"""Pattern for statements about tests and changelogs, which accompany a change."""
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
    largest_first = sorted(
        filter(_is_change, in_force), key=lambda part: len(part.files_modified) + len(part.facts), reverse=True
    )
    title = _title([*largest_first, *filter(_is_verdict, in_force)], session, exchanges, requests)
    asked = _asked(notes, exchanges, requests)
    of_label = {label: [_of_note(note) for note in notes if note.label is label] for label in NoteLabel}
    causes, pitfalls = _found(exchanges)
    lines = {commit.line for exchange in exchanges for commit in accepted_commits(exchange)}
    known = [title, *(text for text, _ in asked)]
    changes = (_result(part, known, lines) for part in largest_first)
    verdicts = [pair for part in in_force if _is_verdict(part) for pair in _pairs(part)[:1]]
    labelled = {
        NoteLabel.ASKED: asked,
        NoteLabel.OUTCOME: _outcomes(of_label[NoteLabel.OUTCOME], changes, [*verdicts, *_answers(parts, exchanges)]),
        NoteLabel.DECIDED: _decided(in_force, of_label[NoteLabel.DECIDED], exchanges),
        NoteLabel.CAUSE: causes,
        NoteLabel.PITFALL: pitfalls,
        NoteLabel.OPEN: of_label[NoteLabel.OPEN][:_OPEN],
        NoteLabel.NEXT: of_label[NoteLabel.NEXT][:_NEXT],
    }
    labelled[NoteLabel.OUTCOME] = [each for each in labelled[NoteLabel.OUTCOME] if each not in (*causes, *pitfalls)]
    told = [text for label, stated in labelled.items() if label is not NoteLabel.ASKED for text, _ in stated]
    only = [text for part in parts for text in (part.title, part.narrative, *part.facts)] if len(parts) == 1 else []
    is_repeated = only and all(any(repeats(text, stated) for stated in only) for text in told)
    if not title or is_repeated or not (told or parts):
        return None
    facts = [(f"{label}: {text}", evidence) for label, stated in labelled.items() for text, evidence in stated]
    if failed := failed_end([note for note in notes if note.label is NoteLabel.OPEN]):
        title = _with_ending(title, f" (last {failed} failed)")  # else the title would read like a success
    return _fitted(
        Observation(
            type=ObservationType.GENERAL,
            title=f"{SUMMARY}{title}",
            facts=tuple(fact for fact, _ in facts),
            concepts=_frequent((concept for part in parts for concept in part.concepts), _CONCEPTS),
            files_modified=_frequent((path for part in parts for path in part.files_modified), _FILES),
            evidence=tuple(evidence for _, evidence in facts),
            at=exchanges[-1].ended or exchanges[-1].started,
            origin=least([origin, *_origins(facts, exchanges), *(Origin(part.origin) for part in parts)]),
            extractor=parts[-1].extractor if parts else "",
        )
    )


def _fitted(card: Observation) -> Observation:
    """Return the card within its size limit, without the least telling facts of the labels with most facts."""
    while card.tokens > TOKENS_MAX and len(card.facts) > 1:
        labels = [fact.partition(":")[0] for fact in card.facts]
        ranks = [(-labels.count(label), salience(fact)) for label, fact in zip(labels, card.facts, strict=True)]
        kept = [n for n in range(len(labels)) if n != ranks.index(min(ranks))]
        facts, proofs = tuple(card.facts[n] for n in kept), tuple(card.evidence[n] for n in kept)
        card = replace(card, facts=facts, evidence=proofs)
    return card


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


def _origins(facts: Sequence[CardFact], exchanges: Sequence[Exchange]) -> Iterator[Origin]:
    """Yield the least trusted origin of the facts of each exchange."""
    for exchange in exchanges:
        lines = range(exchange.span.start_line, exchange.span.end_line + 1)
        proofs = tuple(proof for _, proof in facts if proof.start_line in lines)
        stated = Observation(ObservationType.GENERAL, "", evidence=proofs, origin=Origin.HUMAN)
        yield from (Origin(valid.origin) for valid in verify(exchange, [stated]).observations)


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
    changes = [part.title for part in parts if _is_change(part)]
    orders = [headline(request.title) for request in requests if request.title and not request.routine]
    verdicts = [part.title for part in parts if _is_verdict(part)]
    specific = [order for order in orders if stands_alone(order)]
    candidates = (*plans, *subjects, *changes[:1], *specific[:1], *verdicts[:1], *specific[1:], *orders)
    return next(filter(None, map(headline, candidates)), "")


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
    return [_request(first)] if first else []


def _request(request: UserRequest) -> CardFact:
    """Return the sentence that states a request. For a plan, it is the reason, after the heading of the plan."""
    whole = (each for each in request.reasons if not each.listed)
    reason = next((each for each in whole if len(each.text) <= _FACT_MAX - len(request.title)), None)
    if request.plan and reason:
        return f"{request.title}: {reason.text}", Evidence(reason.line, reason.line, reason.quote)
    ordered = next((each for each in request.statements if request.title.casefold() in each.text.casefold()), None)
    if ordered and len(ordered.text) <= _FACT_MAX:
        return ordered.text, Evidence(ordered.line, ordered.line, ordered.quote)
    return headline(request.title, _FACT_MAX) or truncate(request.text, _FACT_MAX), _proof(request)


def _proof(request: UserRequest) -> Evidence:
    return Evidence(request.line, request.line, request.quote)


def _outcomes(
    reported: Sequence[CardFact], changes: Iterable[CardFact | None], answers: Sequence[CardFact]
) -> list[CardFact]:
    """Return the reported result, and then the largest changes and the last answers of the session, sorted by time."""
    largest = _distinct([*reported[:1], *filter(None, changes)])[:_CHANGES]
    latest = sorted(answers, key=_line)[-_ANSWERS:]
    return [*reported[:1], *sorted(_distinct([*largest, *latest])[len(reported[:1]) :], key=_line)]


def _is_change(part: Observation) -> bool:
    """Return whether an observation says what changed."""
    return part.type not in {*_FINDINGS, ObservationType.DECISION} and part.title != files_title(part.files_modified)


def _is_verdict(part: Observation) -> bool:
    """Return whether an observation answers the user."""
    return part.type in _FINDINGS and not is_repair(part)


def _pairs(part: Observation) -> list[CardFact]:
    """Return the facts of an observation, shortened for a card, with their evidence."""
    pairs = zip(part.facts, part.evidence, strict=False)
    return [(short, proof) for text, proof in pairs if (short := shorten(text, _FACT_MAX))]


def _result(part: Observation, told: Sequence[str], commits: Collection[int]) -> CardFact | None:
    """Return the whole sentence of which the title of a change is a part, or the title itself.

    If the title repeats the request or the title of the card, return the most telling change that the answer or a
    commit message states. `commits` are the lines of commits.
    """
    if any(repeats(part.title, text) for text in told):
        stated = [pair for pair in _pairs(part) if states_change(pair[0]) or _line(pair) in commits]
        fresh = [pair for pair in stated if not any(pair[0] in text for text in told)]
        return max(fresh, key=lambda pair: (not _BESIDE.search(pair[0]), salience(pair[0])), default=None)
    whole = ((bottom_line(text), proof) for text, proof in _pairs(part) if part.title.casefold() in text.casefold())
    return next(whole, (part.title, part.evidence[0]))


def _decided(parts: Sequence[Observation], notes: Sequence[CardFact], exchanges: Sequence[Exchange]) -> list[CardFact]:
    """Return the last decisions of the user, in order, with those in plans, or else those that a summary names."""
    turns = (turn for exchange in exchanges for turn in exchange.turns if turn.kind is Kind.PROMPT)
    planned = [_of_note(note) for turn in turns for note in answer_notes(turn) if note.label is NoteLabel.DECIDED]
    decisions = [
        pair
        for part in parts
        if part.type is ObservationType.DECISION and part.origin == Origin.HUMAN
        for pair in _pairs(part)
    ]
    return _latest([*planned[:_DECIDED], *decisions] or notes, _DECIDED)


def _answers(parts: Sequence[Observation], exchanges: Sequence[Exchange]) -> list[CardFact]:
    """Return the most telling sentence of each answer to a request without an observation."""
    cited = {proof.start_line for part in parts for proof in part.evidence}
    answers: list[CardFact] = []
    for exchange in exchanges:
        analysis = analyze_exchange(exchange)
        is_told = any(exchange.span.start_line <= line <= exchange.span.end_line for line in cited)
        if is_told or analysis.request.routine or not analysis.request.human:
            continue
        sure = {each.raw: each for each in analysis.conclusion if len(each.raw) >= _SENTENCE and _is_sure(each, 1)}
        stated = [each for each in title_candidates(analysis) if is_clear(each, analysis)]
        lines = [each for each in stated if each.raw in sure or VERDICT.match(each.raw)]
        lines.sort(key=lambda each: (not each.listed, score(each, analysis) + salience(each.raw) / 10), reverse=True)
        for line in lines[:1]:
            proof = Evidence(analysis.conclusion[0].line, analysis.conclusion[0].line, quote_of(line.raw))
            answers.append(_of_statement(sure[line.raw]) if line.raw in sure else (line.text, proof))
    return answers


def _found(exchanges: Sequence[Exchange]) -> tuple[list[CardFact], list[CardFact]]:
    """Return the most telling causes and pitfalls that the assistant named, sorted by time.

    Each exchange contributes one cause: from its conclusion, or else from the work before it.
    """
    causes: list[Statement] = []
    pitfalls: list[Statement] = []
    for exchange in exchanges:
        analysis = analyze_exchange(exchange)
        concluded = [*filter(_is_sure, analysis.conclusion)]
        remarks = [*filter(_is_sure, remarks_of(analysis))]
        named = [each for each in analysis.conclusion if names_cause(each) and _is_sure(each, 3)]
        hypotheses = [each for each in remarks if names_cause(each)]
        causes += sorted(named, key=_telling)[-1:] or sorted(hypotheses, key=is_root_cause)[-1:]
        pitfalls += [each for each in (*remarks, *concluded) if not names_cause(each) and is_pitfall(each)]
    return _most_telling(causes, _CAUSES), _most_telling(pitfalls, _PITFALLS)


def _telling(statement: Statement) -> tuple[bool, int]:
    return is_root_cause(statement), salience(statement.raw)


def _most_telling(statements: Sequence[Statement], most: int) -> list[CardFact]:
    ranked = sorted(statements, key=_telling, reverse=True)
    return sorted(_distinct(map(_of_statement, ranked))[:most], key=_line)


def _of_statement(statement: Statement) -> CardFact:
    return shorten(statement.text, _FACT_MAX), Evidence(statement.line, statement.line, statement.quote)


def _is_sure(statement: Statement, least: int = _TELLING) -> bool:
    if not shorten(statement.text, _FACT_MAX) or salience(statement.raw) < least:
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
