"""Decisions of the user: answers to questions of the agent, and rulings that name their subject."""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange
from ...core.observation import Evidence, Observation, ObservationType
from ...core.sentences import TITLE_MAX, headline, sentences, shorten, strip_markdown, truncate
from .concepts import concepts
from .exchange_analysis import ExchangeAnalysis, UserAnswer
from .phrase_patterns import phrases
from .salience import NAMED
from .selection import evidence, narrative, observed_at
from .statements import Statement
from .user_request import is_specific

_RECOMMENDED = re.compile(r"\s*\(recommended\)", re.IGNORECASE)
_PROCEDURAL = phrases("decisions.procedural")
"""Pattern for questions about the next step, whose answers have no lasting effect."""
_NO_CHOICE = phrases("decisions.no_choice")
"""Pattern for answers that leave the decision open."""
_POINTER = phrases("decisions.pointer")
"""Pattern for answers that point to something outside the answer."""
_FOR_NOW = phrases("decisions.for_now")
_LASTING = phrases("decisions.lasting")
_POINTS = re.compile(
    r"\b(?:this|that|these|those|there|the (?:[\w-]+ ){0,2}ones?)\b|\bones?(?=\W*$|[.,;])", re.IGNORECASE
)
_PRONOUN = re.compile(r"\b(?:it|them|they)\b", re.IGNORECASE)
"""Patterns for words whose meaning only the conversation gives, always or often."""
_PREFERENCE = phrases("decisions.preference")


def extract_decisions(exchange: Exchange, analysis: ExchangeAnalysis) -> Iterator[Observation]:
    """Yield up to two observations: one of the answered choices, and one of the user's own rulings."""
    answers = [each for each in analysis.answers if _is_choice(each)]
    if any(is_specific(f"{_subject(each.question)} {each.choice}") for each in answers):
        yield _from_answers(exchange, analysis, answers)
    typed = analysis.request.statements if analysis.request.human else ()
    if rulings := [each for each in (*typed, *analysis.objections) if _is_ruling(each)][:4]:
        yield _from_rulings(exchange, rulings)


def _is_choice(answer: UserAnswer) -> bool:
    """Return whether an answer decides something. One that points elsewhere, or leaves the choice open, does not."""
    undecided = _NO_CHOICE.match(answer.choice) or _POINTER.match(answer.choice)
    return not (undecided or _PROCEDURAL.search(answer.question))


def _is_ruling(statement: Statement) -> bool:
    """Return whether a sentence of the user rules something by name, and can be understood alone."""
    sentence = statement.text
    if not 15 < len(sentence) < 240 or "?" in sentence or _PREFERENCE.search(sentence) is None:
        return False
    if _POINTS.search(sentence) or _FOR_NOW.search(sentence):
        return False
    lasting = _LASTING.search(sentence) is not None and is_specific(sentence, 3)
    return lasting or (NAMED.search(statement.raw) is not None and _PRONOUN.search(sentence) is None)


def _from_answers(exchange: Exchange, analysis: ExchangeAnalysis, answers: Sequence[UserAnswer]) -> Observation:
    kept = answers[:8]
    about = analysis.request.title
    return Observation(
        type=ObservationType.DECISION,
        title=_title(kept),
        subtitle=truncate(kept[0].question, 160),
        narrative=narrative([f"Asked while working on: {about}" if about else "", _answer_text(kept[0])]),
        facts=tuple(_answer_text(answer) for answer in kept),
        concepts=concepts([f"{answer.question} {answer.choice}" for answer in kept], ()),
        evidence=tuple(Evidence(answer.line, answer.line, answer.quote) for answer in kept),
        at=observed_at(exchange),
        origin="human",
    )


def _title(answers: Sequence[UserAnswer]) -> str:
    """Return the first question with its answer, and the number of further answers."""
    choice = strip_markdown(_RECOMMENDED.sub("", answers[0].choice))
    more = f" (and {len(answers) - 1} more)" if len(answers) > 1 else ""
    room = TITLE_MAX - len(more)
    question = _subject(answers[0].question)
    short = shorten(choice, room - len(question) - 2) or headline(choice, room)
    if question and short and len(question) + len(short) + 2 <= room:
        return f"{question}: {short}{more}"
    stands_alone = short and not (_POINTS.search(short) or _PRONOUN.search(short))
    return f"{short if stands_alone else truncate(answers[0].question, room)}{more}"


def _subject(question: str) -> str:
    """Return the last sentence of a question, without its question mark."""
    last = [question[start:end] for start, end in sentences(question)][-1:]
    return headline(" ".join(last).rstrip("?"), TITLE_MAX * 2 // 3)


def _answer_text(answer: UserAnswer) -> str:
    return f"{truncate(answer.question, 180).rstrip(' :')} → {truncate(answer.choice, 120)}"


def _from_rulings(exchange: Exchange, rulings: Sequence[Statement]) -> Observation:
    return Observation(
        type=ObservationType.DECISION,
        title=headline(rulings[0].text) or truncate(rulings[0].text, TITLE_MAX),
        narrative=narrative([f"The user said: “{' '.join(each.text for each in rulings)}”"]),
        facts=tuple(ruling.text for ruling in rulings),
        concepts=concepts([each.raw for each in rulings], ()),
        evidence=evidence(rulings),
        at=observed_at(exchange),
        origin="human",
    )
