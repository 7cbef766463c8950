"""Decisions of the user: answers to questions, objections, and stated rules and preferences."""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange
from ...core.observation import Evidence, Observation, ObservationType
from ...core.sentences import TITLE_MAX, headline, sentences, truncate
from .concepts import concepts
from .exchange_analysis import ExchangeAnalysis, UserAnswer
from .phrase_patterns import anywhere, whole_text
from .selection import evidence, narrative, observed_at
from .statements import Statement

_RECOMMENDED = re.compile(r"\s*\(recommended\)", re.IGNORECASE)
_PROCEDURAL = anywhere(
    r"""
    (?:can|could|may) i | (?:shall|should) (?:i|we) (?:proceed|continue|go ahead|start|commit|push) | ready to
    | what (?:would|do) you (?:like|want) to do | what should (?:i|we)
    | which (?:areas?|topics?) | (?:proceed|continue) with
    """
)
"""Pattern for questions about the next step, whose answers have no lasting effect."""
_NO_CHOICE = whole_text(
    "you (?:decide|choose|pick) | your (?:call|choice) | up to you | next(?: area| topic| one)? | either"
    " | no preference | skip(?: it| this)? | not sure | i don['’]?t know | continue"
)
"""Pattern for answers that leave the decision open."""
_PREFERENCE = anywhere(
    r"""
    \A(?:please )?(?:always|never) | from now on | in (?:the )?future | i (?:would )?prefer | i (?:don['’]?t
    |do not) (?:want|like) | let['’]?s (?:use|go with|keep|stick) | we(?:['’]ll|\swill) (?:use|go with|keep
    |stick) | (?:don['’]?t|do not) use | i(?:['’]?ve|\shave) (?:decided|chosen
    |reverted) | no need to | stop (?:using|adding|doing)
    """
)


def extract_decisions(exchange: Exchange, analysis: ExchangeAnalysis) -> Iterator[Observation]:
    """Yield up to three observations: one of the answers, one of the objections, one of the rules in the request."""
    decided = [each for each in analysis.answers if not _NO_CHOICE.match(each.choice)]
    if answers := [each for each in decided if not _PROCEDURAL.search(each.question)]:
        yield _from_answers(exchange, analysis, answers)
    if analysis.objections:
        yield _from_objections(exchange, analysis)
    request = analysis.request
    if request.human and (rules := [each for each in request.statements if _is_rule(each.text)][:4]):
        yield _from_rules(exchange, analysis, rules)


def _is_rule(sentence: str) -> bool:
    return 15 < len(sentence) < 240 and "?" not in sentence and _PREFERENCE.search(sentence) is not None


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
    """Return the first question with its answer. An answer alone rarely says what was decided."""
    question = answers[0].question
    last = [question[start:end] for start, end in sentences(question)][-1]
    choice = _RECOMMENDED.sub("", answers[0].choice)
    return f"{headline(last.rstrip('?'), TITLE_MAX // 2)}: {truncate(choice, TITLE_MAX // 2)}"


def _answer_text(answer: UserAnswer) -> str:
    return f"{truncate(answer.question, 180).rstrip(' :')} → {truncate(answer.choice, 120)}"


def _from_objections(exchange: Exchange, analysis: ExchangeAnalysis) -> Observation:
    about = analysis.request.title
    objections = analysis.objections[:4]
    return Observation(
        type=ObservationType.DECISION,
        title=headline(objections[0].text),
        subtitle=f"Objection while working on: {about}" if about else "Objection to what was about to be done",
        narrative=narrative(["The user stopped a tool call and said:", *(each.text for each in objections)]),
        facts=tuple(each.text for each in objections),
        concepts=concepts([each.raw for each in objections], ()),
        evidence=evidence(objections),
        at=observed_at(exchange),
        origin="human",
    )


def _from_rules(exchange: Exchange, analysis: ExchangeAnalysis, rules: Sequence[Statement]) -> Observation:
    request = analysis.request
    return Observation(
        type=ObservationType.DECISION,
        title=headline(rules[0].text),
        subtitle=truncate(rules[0].text, 160),
        narrative=narrative([f"The user said: “{request.text}”"]),
        facts=tuple(rule.text for rule in rules),
        concepts=concepts([request.text], ()),
        evidence=evidence(rules),
        at=observed_at(exchange),
        origin="human",
    )
