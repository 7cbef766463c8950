"""Handoff notes, and observations that a later one replaces.

- A handoff note describes the state of the model's own session. Sources are compaction summaries, recaps, and the
  sections of a final answer such as "Next steps" or "Not done".
- An earlier observation is replaced if the next prompt corrects it, or if its commit is reverted.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import CardPart, Evidence, Observation, ObservationType
from ...core.text import headline
from .exchange_analysis import accepted_commits
from .salience import is_status, phrases, regex
from .statements import Statement, statements, with_valid_quotes

TEXT_MAX = 240
"""Maximum characters of a note. A longer text usually describes several items."""
_TEXT_MIN = 16


class NoteLabel(StrEnum):
    """Subject of a note, such as an open item or a decision."""

    ASKED = "Asked"
    OUTCOME = "Outcome"
    DECIDED = "Decided"
    OPEN = "Open"
    CAUSE = "Cause"
    PITFALL = "Gotcha"
    NEXT = "Next"


class HandoffNote(Struct, frozen=True):
    """Statement of a model about its session, with its evidence.

    `source` is the kind of text, such as "compaction summary". It is empty for a final answer.
    """

    label: NoteLabel
    text: str
    evidence: Evidence
    source: str = ""

    @property
    def attributed(self) -> str:
        """Text of the note with its source."""
        return (
            f"{self.text} (from the agent's {self.source}, line {self.evidence.start_line})"
            if self.source
            else self.text
        )


_HEADED = (NoteLabel.ASKED, NoteLabel.NEXT, NoteLabel.OPEN, NoteLabel.DECIDED, NoteLabel.OUTCOME)
"""Labels that the heading of a section can give to its notes."""
_LABELLED = {label: phrases(f"handoff_notes.{label.name.lower()}") for label in _HEADED}
_HEADING = regex("notes.heading")
_BEFORE = regex("notes.before")
"""Pattern for words and symbols before the name of a section, as in "⚠ A few loose ends"."""
_NUMBERED = regex("notes.numbered")
_NUMBERED_MIN = 3
_RULE_LINE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*\Z")
_BEGIN = re.compile(r"^\s*(?:<summary>|Summary:)", re.MULTILINE)
_END = re.compile(r"^\s*(?:</summary>|If you need specific details from before compaction)", re.MULTILINE)
_NEXT_ACTION = re.compile(r"next (?:action|step|up)s?\s*(?:is|:|—|-)\s*", re.IGNORECASE)
_NOTHING = phrases("handoff_notes.nothing")
_FINISHED = regex("notes.finished")
_UNINFORMATIVE = phrases("handoff_notes.uninformative")


def compaction_notes(turn: Turn) -> Iterator[HandoffNote]:
    """Yield the notes of a compaction summary. The heading of each section determines the label of its notes."""
    begin, end = _BEGIN.search(turn.text), _END.search(turn.text)
    text = turn.text[begin.end() if begin else 0 : end.start() if end else None]
    for label, section in _sections(text):
        most = None if label is NoteLabel.OPEN else 1  # Later sentences of the other sections only give details.
        if label:
            yield from (_note(label, each, "compaction summary") for each in islice(_usable(turn, section), most))


def recap_notes(turn: Turn) -> Iterator[HandoffNote]:
    """Yield the notes of a recap: sentences about the outcome, and the next action."""
    for stated in _usable(turn, turn.text):
        announced = _NEXT_ACTION.match(stated.text)
        label = NoteLabel.NEXT if announced else NoteLabel.OUTCOME
        text = stated.text[announced.end() :] if announced else stated.text
        yield HandoffNote(label, text, Evidence(stated.line, stated.line, stated.quote), "recap")


def answer_notes(turn: Turn) -> Iterator[HandoffNote]:
    """Yield the notes of the sections of a final answer about open items, next steps and decisions."""
    for label, section in _sections(turn.text):
        if label is not None and label in {NoteLabel.OPEN, NoteLabel.NEXT, NoteLabel.DECIDED}:
            yield from (_note(label, stated) for stated in _usable(turn, section))


def notes_of(turn: Turn) -> Sequence[HandoffNote]:
    """Return the notes of a compaction summary or a recap."""
    if turn.kind is Kind.COMPACTION:
        return tuple(compaction_notes(turn))
    return tuple(recap_notes(turn)) if turn.kind is Kind.RECAP else ()


def _note(label: NoteLabel, stated: Statement, source: str = "") -> HandoffNote:
    return HandoffNote(label, stated.text, Evidence(stated.line, stated.line, stated.quote), source)


def _sections(text: str) -> Iterator[tuple[NoteLabel | None, str]]:
    """Yield the label and the text of each section. The label is None for a section about another subject.

    A section ends at a horizontal rule. If a text has at least three numbered headings, only these start a section.
    """
    label: NoteLabel | None = None
    lines: list[str] = []
    pattern = _NUMBERED if len(_NUMBERED.findall(text)) >= _NUMBERED_MIN else _HEADING
    for line in text.split("\n"):
        heading = pattern.match(line)
        named = _label(heading) if heading else None
        after = (heading.groupdict().get("after") or "").strip(" —–-") if heading else ""
        after = "" if after.endswith(":") else after.lstrip(": ")
        if pattern is _HEADING and _RULE_LINE.match(line) and any(map(str.strip, lines)):
            yield label, "\n".join(lines)
            label, lines = None, []
        elif heading and (named or pattern is _NUMBERED or not (heading["plain"] or after)):
            yield label, "\n".join(lines)
            label, lines = named, [after]
        else:
            lines.append(line)
    yield label, "\n".join(lines)


def _label(heading: re.Match[str]) -> NoteLabel | None:
    names = heading.groupdict()
    name = next((names[kind] for kind in ("marked", "bold", "numbered", "plain") if names.get(kind)), "").strip()
    name = _BEFORE.sub("", name, count=1)
    return next((label for label, pattern in _LABELLED.items() if pattern.match(name)), None)


def _usable(turn: Turn, text: str) -> Iterator[Statement]:
    """Yield the statements of a text that are specific, and not about finished work."""
    shown = Turn(turn.line, turn.speaker, turn.kind, text)
    for stated in with_valid_quotes(statements(shown), turn):
        if (
            len(stated.text) >= _TEXT_MIN
            and not (_NOTHING.match(stated.text) or _FINISHED.search(stated.raw) or _UNINFORMATIVE.match(stated.text))
            and not (is_status(stated.text) and turn.kind is Kind.PROSE)
        ):
            yield stated


_CORRECTED = phrases("replacements.corrected")
_REVERT = re.compile(r'revert:? ["“]?(.+?)["”]?$', re.IGNORECASE)
_WORD = re.compile(r"\w{4,}")
_SAME_TOPIC = 0.4
"""Minimum share of the words of an earlier title that a later observation must contain to replace it."""


class Replacement(Struct, frozen=True):
    """Positions of a replaced observation and of its replacement, and the line that proves the replacement."""

    earlier: int
    later: int
    line: int


def find_replacements(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> list[Replacement]:
    """Return the replacements among the observations of a session.

    Args:
        parts: Pairs of the index of an exchange in `exchanges`, and an observation, in order.
        exchanges: Exchanges of the session, in order.
    """
    found = [*_corrected(parts, exchanges), *_reverted(parts, exchanges)]
    return list({each.earlier: each for each in reversed(found)}.values())


def _corrected(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> Iterator[Replacement]:
    """Yield the results that the prompt of the next exchange corrects."""
    for earlier, (place, old) in enumerate(parts):
        following = exchanges[place + 1 : place + 2]
        is_next = bool(following) and following[0].ordinal == exchanges[place].ordinal + 1
        line = _correction_line(following[0]) if is_next else None
        if line is None or old.type is ObservationType.DECISION:
            continue
        for later, (other, new) in enumerate(parts):
            if other == place + 1 and new.type is not ObservationType.DECISION and _is_about_same(old, new):
                yield Replacement(earlier, later, line)
                break


def _correction_line(exchange: Exchange) -> int | None:
    """Return the line of a prompt that begins with a correction."""
    prompts = (turn for turn in exchange.turns if turn.kind is Kind.PROMPT)
    return next((turn.line for turn in prompts if _CORRECTED.match(turn.text.lstrip())), None)


def _is_about_same(old: Observation, new: Observation) -> bool:
    if {*old.files_modified} & {*new.files_modified}:
        return True
    words = _words(old.title)
    return len(words & _words(f"{new.title} {' '.join(new.facts)}")) >= max(2, _SAME_TOPIC * len(words))


def _reverted(parts: Sequence[tuple[int, Observation]], exchanges: Sequence[Exchange]) -> Iterator[Replacement]:
    """Yield the observations of commits that a later commit reverts.

    If no observation has the subject of the commit as its title, the last observed change up to the commit is
    replaced.
    """
    made: dict[str, int] = {}
    for place, exchange in enumerate(exchanges):
        for commit in accepted_commits(exchange):
            subject = _REVERT.match(commit.subject)
            committed = made.get(subject[1]) if subject else None
            later = next((number for number, (other, _) in enumerate(parts) if other == place), None)
            if subject and committed is not None and committed < place and later is not None:
                earlier = _committed(subject[1], committed, parts)
                yield from [Replacement(earlier, later, commit.line)] if earlier is not None else []
            made[commit.subject] = place


def _committed(subject: str, place: int, parts: Sequence[tuple[int, Observation]]) -> int | None:
    """Return the index of the observation of a commit, or else of the last observed change up to the commit."""
    named = (number for number, (other, old) in enumerate(parts) if other == place and headline(subject) in old.title)
    done = (number for number, (other, old) in enumerate(parts) if other <= place and _changed_files(old))
    return next(named, max(done, default=None))


def _changed_files(observation: Observation) -> bool:
    # Other observations can list the files of their exchange too.
    return bool(observation.files_modified) and observation.type.card is CardPart.CHANGE


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:5].lower() for word in _WORD.findall(text))
