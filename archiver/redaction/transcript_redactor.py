"""Redaction of all parsed transcript content before it is processed further."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Note, Session, Speaker, Turn
from ..files.clipping import CUT, trim
from . import Redactor, private_spans
from .redactor import normal_form

_NAMES_TOGETHER, _TEXTS_TOGETHER = 256, 16
"""Number of turns whose names, or whose texts, are joined and checked at once. One large check is faster than many."""
_BETWEEN = "\n\0\n"
"""Separator between joined names. No rule matches across it."""
_REASON_LENGTH = 60
_NUMERIC = {Fact.USAGE, Fact.REWOUND}
"""Facts with numeric values, which contain no secrets."""


class TranscriptRedactor:
    """Redactor of secrets and private spans in transcripts.

    After redaction, it removes the margins that `clip` kept in shortened texts.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def exchanges(self, exchanges: Sequence[Exchange], known: AbstractSet[str] = frozenset()) -> list[Exchange]:
        """Redact exchanges.

        `known` contains names, such as record IDs, that were already checked and contain no secret.
        """
        turns = iter(self._turns([turn for exchange in exchanges for turn in exchange.turns], known))
        return [
            replace(
                each,
                turns=tuple(islice(turns, len(each.turns))),
                cwd=self.name(each.cwd),
                branch=self.name(each.branch),
            )
            for each in exchanges
        ]

    def notes(self, notes: Sequence[Note]) -> list[Note]:
        """Redact the values of notes."""
        return [
            note if note.fact in _NUMERIC else replace(note, value=self.name(note.value), about=self.name(note.about))
            for note in notes
        ]

    def session(self, session: Session) -> Session:
        """Redact the IDs, names and titles of a session."""
        return replace(
            session,
            native_id=self.name(session.native_id),
            parent_id=self.name(session.parent_id),
            scope=self.name(session.scope),
            project=self.name(session.project),
            cwd=self.name(session.cwd),
            branch=self.name(session.branch),
            title=self.name(session.title),
            version=self.name(session.version),
        )

    def records(self, records: dict[str, int]) -> dict[str, int]:
        """Redact record IDs, because an agent may derive an ID from any text. `records` maps each ID to its line."""
        if not self._has_secret(_BETWEEN.join(records)):
            return records
        return {self.name(record): line for record, line in records.items()}

    def outcomes(self, outcomes: Sequence[str]) -> list[str]:
        """Redact the outcomes of lines. An outcome such as `unknown-type:<type>` quotes the transcript."""
        redacted = {outcome: self.name(outcome)[:_REASON_LENGTH] for outcome in set(outcomes)}
        return [redacted[outcome] for outcome in outcomes]

    def name(self, text: str) -> str:
        """Redact a short text, such as a name, a title or a folder. Results are cached."""
        plain = normal_form(text)
        return self._redactor.redact_name(private_spans.redact_typed(plain)[0] if "<" in plain else plain)

    def _turns(self, turns: Sequence[Turn], known: AbstractSet[str]) -> Iterator[Turn]:
        named: list[Turn] = []
        for batch in _batches(turns, _NAMES_TOGETHER):
            names = _names(batch) - known
            named += map(self._redact_names, batch) if self._has_secret(_BETWEEN.join(names)) else batch
        return self._redact_texts(named)

    def _has_secret(self, names: str) -> bool:
        return bool(self._redactor.redact(names).findings)

    def _redact_names(self, turn: Turn) -> Turn:
        tool, call, record, group = map(self.name, (turn.tool, turn.call, turn.record, turn.group))
        reads, writes = tuple(map(self.name, turn.reads)), tuple(map(self.name, turn.writes))
        return turn._replace(tool=tool, call=call, record=record, group=group, reads=reads, writes=writes)

    def _redact_texts(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        message = depth = 0
        for batch in _batches(turns, _TEXTS_TOGETHER):
            together = "\n".join([turn.text for turn in batch])
            plain = self._redactor.is_plain(together)
            if plain and not depth and CUT not in together:
                yield from batch
                continue
            for turn in batch:
                depth = depth if turn.line == message else 0
                text = turn.text
                if depth or not (plain or self._redactor.is_plain(text)):
                    text, depth = _without_private(turn.speaker, normal_form(text), depth)
                    text = self._redactor.redact(text).text
                    message = turn.line
                if CUT in text:
                    text = trim(text)
                yield turn if text is turn.text else turn._replace(text=text)


def _batches(turns: Sequence[Turn], size: int) -> Iterator[Sequence[Turn]]:
    return (turns[start : start + size] for start in range(0, len(turns), size))


def _names(turns: Sequence[Turn]) -> set[str]:
    names = {turn.record for turn in turns} | {turn.group for turn in turns}
    names |= {turn.tool for turn in turns} | {turn.call for turn in turns}
    for turn in turns:
        if turn.reads or turn.writes:
            names.update(turn.reads, turn.writes)
    return names


def _without_private(speaker: Speaker, text: str, depth: int) -> tuple[str, int]:
    """Return a text without private spans, and the number of open spans after it.

    `depth` is the number of open spans before it.
    """
    if not depth and "private" not in text.lower():
        return text, 0
    if speaker is Speaker.HUMAN:
        return private_spans.redact_typed(text, depth)
    return private_spans.redact_printed(text), depth
