"""Discretion: everything that was parsed, without secrets and private spans, before anybody else sees it."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Note, Session, Speaker, Turn
from ..files.clipping import CUT, trim
from . import Redactor, private_spans

_NAMES_TOGETHER, _TEXTS_TOGETHER = 256, 16
"""Turns that are looked through at once: most hold nothing to take out, and asking costs more than looking."""
_BETWEEN = "\n\0\n"
"""Between names, so that no rule takes two of them for one."""
_REASON_LENGTH = 60
_BARE = {Fact.USAGE, Fact.REWOUND}
"""Facts that are numbers."""


class Discretion:
    """Takes out secrets and private spans, and makes the cuts that had to wait for that."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def exchanges(self, exchanges: Sequence[Exchange], known: AbstractSet[str] = frozenset()) -> list[Exchange]:
        """The exchanges with what may be told of them. Names in `known` hold no secret."""
        told = iter(self._turns([turn for exchange in exchanges for turn in exchange.turns], known))
        return [
            replace(
                each,
                turns=tuple(islice(told, len(each.turns))),
                cwd=self.word(each.cwd),
                branch=self.word(each.branch),
            )
            for each in exchanges
        ]

    def notes(self, notes: Sequence[Note]) -> list[Note]:
        """The notes with what may be told of them."""
        return [
            note if note.fact in _BARE else replace(note, value=self.word(note.value), about=self.word(note.about))
            for note in notes
        ]

    def session(self, session: Session) -> Session:
        """The session as far as it is known from names and first lines."""
        return replace(
            session,
            native_id=self.word(session.native_id),
            parent_id=self.word(session.parent_id),
            project=self.word(session.project),
            cwd=self.word(session.cwd),
            branch=self.word(session.branch),
            title=self.word(session.title),
            version=self.word(session.version),
        )

    def records(self, records: dict[str, int]) -> dict[str, int]:
        """Ids of records, which an agent may have made from anything."""
        if not self._names_secrets(_BETWEEN.join(records)):
            return records
        return {self.word(record): line for record, line in records.items()}

    def reasons(self, outcomes: Sequence[str]) -> list[str]:
        """The outcomes of lines, some of which name what an agent wrote."""
        told = {outcome: self.word(outcome)[:_REASON_LENGTH] for outcome in set(outcomes)}
        return [told[outcome] for outcome in outcomes]

    def word(self, text: str) -> str:
        """A name, a title, a folder: short, and said again and again."""
        return self._redactor.redact_name(private_spans.typed(text)[0] if "<" in text else text)

    def _turns(self, turns: Sequence[Turn], known: AbstractSet[str]) -> Iterator[Turn]:
        named: list[Turn] = []
        for portion in _portions(turns, _NAMES_TOGETHER):
            names = _names(portion) - known
            named += map(self._named, portion) if self._names_secrets(_BETWEEN.join(names)) else portion
        return self._spoken(named)

    def _names_secrets(self, names: str) -> bool:
        return bool(self._redactor.redact(names).findings)

    def _named(self, turn: Turn) -> Turn:
        tool, call, record, group = map(self.word, (turn.tool, turn.call, turn.record, turn.group))
        reads, writes = tuple(map(self.word, turn.reads)), tuple(map(self.word, turn.writes))
        return turn._replace(tool=tool, call=call, record=record, group=group, reads=reads, writes=writes)

    def _spoken(self, turns: Sequence[Turn]) -> Iterator[Turn]:
        message = depth = 0
        for portion in _portions(turns, _TEXTS_TOGETHER):
            together = "\n".join([turn.text for turn in portion])
            plain = self._redactor.is_plain(together)
            if plain and not depth and CUT not in together:
                yield from portion
                continue
            for turn in portion:
                depth = depth if turn.line == message else 0
                text = turn.text
                if depth or not (plain or self._redactor.is_plain(text)):
                    text, depth = _shown(turn.speaker, text, depth)
                    text = self._redactor.redact(text).text
                    message = turn.line
                if CUT in text:
                    text = trim(text)
                yield turn if text is turn.text else turn._replace(text=text)


def _portions(turns: Sequence[Turn], size: int) -> Iterator[Sequence[Turn]]:
    return (turns[start : start + size] for start in range(0, len(turns), size))


def _names(turns: Sequence[Turn]) -> set[str]:
    names = {turn.record for turn in turns} | {turn.group for turn in turns}
    names |= {turn.tool for turn in turns} | {turn.call for turn in turns}
    for turn in turns:
        if turn.reads or turn.writes:
            names.update(turn.reads, turn.writes)
    return names


def _shown(speaker: Speaker, text: str, depth: int) -> tuple[str, int]:
    """A text without private spans, of which `depth` are open before it, and how many are after it."""
    if not depth and "private" not in text.lower():
        return text, 0
    if speaker is Speaker.HUMAN:
        return private_spans.typed(text, depth)
    return private_spans.printed(text), depth
