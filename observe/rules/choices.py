"""What did the person decide? Their answers to questions, and the rules and preferences they stated."""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange
from ...core.observation import Evidence, Observation, ObservationType
from .concepts import concepts
from .draft import evidence, narrative, when
from .phrases import anywhere
from .statements import Statement
from .story import Answer, Story
from .wording import TITLE_MAX, clip, headline, sentences

_RECOMMENDED = re.compile(r"\s*\(recommended\)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?i:there|it|i|you|we|they|this|that|yes|no|ok|okay|hm+|the)\b|[a-z]")
"""How an answer begins that was typed rather than chosen."""
_PROCEDURAL = anywhere(
    r"""
    (?:can|could|may) i | (?:shall|should) (?:i|we) (?:proceed|continue|go ahead|start|commit|push) | ready to
    | what (?:would|do) you (?:like|want) to do | which (?:areas?|topics?) | (?:proceed|continue) with
    """
)
"""Questions about how to go on, which decide nothing that holds beyond the moment."""
_PREFERENCE = anywhere(
    r"""
    \A(?:please )?(?:always|never) | from now on | in (?:the )?future | i (?:would )?prefer | i (?:don['’]?t
    |do not) (?:want|like) | let['’]?s (?:use|go with|keep|stick) | we(?:['’]ll|\swill) (?:use|go with|keep
    |stick) | (?:don['’]?t|do not) use | i(?:['’]?ve|\shave) (?:decided|chosen
    |reverted) | no need to | stop (?:using|adding|doing)
    """
)


def choices(exchange: Exchange, told: Story) -> Iterator[Observation]:
    """One observation for the answers of an exchange, one for its objections, one for what its request laid down."""
    if answers := [answer for answer in told.answers if not _PROCEDURAL.search(answer.question)]:
        yield _answered(exchange, told, answers)
    if told.objections:
        yield _objected(exchange, told)
    asked = told.request
    if asked.human and (rules := [said for said in asked.said if _is_rule(said.text)][:4]):
        yield _stated(exchange, told, rules)


def _is_rule(sentence: str) -> bool:
    return 15 < len(sentence) < 240 and "?" not in sentence and _PREFERENCE.search(sentence) is not None


def _answered(exchange: Exchange, told: Story, answers: Sequence[Answer]) -> Observation:
    kept = answers[:8]
    about = told.request.title
    return Observation(
        type=ObservationType.DECISION,
        title=_title(kept),
        subtitle=clip(kept[0].question, 160),
        narrative=narrative([f"Asked while working on: {about}" if about else "", _told(kept[0])]),
        facts=tuple(_told(answer) for answer in kept),
        concepts=concepts([f"{answer.question} {answer.choice}" for answer in kept], ()),
        evidence=tuple(Evidence(answer.line, answer.line, answer.quote) for answer in kept),
        at=when(exchange),
        origin="human",
    )


def _title(answers: Sequence[Answer]) -> str:
    """The choices where they are names of options, else the question with what the person answered."""
    choices = [_RECOMMENDED.sub("", answer.choice) for answer in answers]
    if len("; ".join(choices)) > 20 and not any(map(_SENTENCE.match, choices)):
        return headline(f"Chose {'; '.join(choices)}")
    question = answers[0].question
    last = [question[start:end] for start, end in sentences(question)][-1]
    return f"{headline(last.rstrip('?'), TITLE_MAX // 2)}: {clip(choices[0], TITLE_MAX // 2)}"


def _told(answer: Answer) -> str:
    return f"{clip(answer.question, 180).rstrip(' :')} → {clip(answer.choice, 120)}"


def _objected(exchange: Exchange, told: Story) -> Observation:
    about = told.request.title
    said = told.objections[:4]
    return Observation(
        type=ObservationType.DECISION,
        title=headline(said[0].text),
        subtitle=f"Objection while working on: {about}" if about else "Objection to what was about to be done",
        narrative=narrative(["The person stopped a tool call and said:", *(one.text for one in said)]),
        facts=tuple(one.text for one in said),
        concepts=concepts([one.raw for one in said], ()),
        evidence=evidence(said),
        at=when(exchange),
        origin="human",
    )


def _stated(exchange: Exchange, told: Story, rules: Sequence[Statement]) -> Observation:
    asked = told.request
    return Observation(
        type=ObservationType.DECISION,
        title=headline(rules[0].text),
        subtitle=clip(rules[0].text, 160),
        narrative=narrative([f"The person said: “{asked.text}”"]),
        facts=tuple(rule.text for rule in rules),
        concepts=concepts([asked.text], ()),
        evidence=evidence(rules),
        at=when(exchange),
        origin="human",
    )
