"""Handoff: a brief about a session for another agent, from the session card, the observations and the edited files."""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..archiver.redaction import Redactor
from ..archiver.store import Store, StoredObservation
from ..core import ids
from ..core.conversation import Kind, Milliseconds, Origin, Session, Speaker
from ..core.observation import SUMMARY, Evidence
from ..core.reports import Handoff, HandoffFile, HandoffLine
from ..core.text import repeats, truncate
from .rules.notes import NoteLabel

_TEXT: Final = 240
"""Maximum characters of a line."""
_LINES: Final = 6
"""Maximum number of lines in a section."""
_FILES: Final = 12
"""Maximum number of files."""
_SECTIONS: Final = {
    "goal": (NoteLabel.ASKED,),
    "state": (NoteLabel.OUTCOME,),
    "decisions": (NoteLabel.DECIDED,),
    "failed": (NoteLabel.CAUSE, NoteLabel.PITFALL),
    "open": (NoteLabel.OPEN, NoteLabel.NEXT),
}
"""Labels of the facts of the card by the section that lists them. `ObservationType.section` assigns the types."""
_OWN: Final = {Origin.HUMAN, Origin.ASSISTANT}
"""Origins of text that the user or the agent wrote without text of others. Other text is marked as quoted."""


class HandoffWriter:
    """Writer of briefs. Secrets are redacted again with the current rules, also in paths and names."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store, self._redactor = store, redactor

    def brief(self, number: int, folder: Path | None = None) -> Handoff:
        """Return the brief about the session with the store's ID `number`. `folder` is where its project now is."""
        session, keys = self._store.sessions.load(number), self._store.summaries.conversation(number)
        card, learned = self._store.summaries.of_session(number), self._in_force(keys)
        prompt_lines = self._prompt_lines(number) if card else set[int]()
        facts = {
            name: [] if card is None else list(self._of_card(card, labels, prompt_lines))
            for name, labels in _SECTIONS.items()
        }
        sections = {name: self._section(name, facts[name], learned) for name in _SECTIONS}
        title = card.observation.title.removeprefix(SUMMARY) if card else session.title
        return Handoff(
            id=self._store.sessions.short_ids([number])[number],
            agent=session.agent,
            title=self._clean(title),
            project=self._clean(session.project),
            folder=self._clean(str(folder) if folder else session.cwd),
            branch=self._clean(session.branch),
            ended=session.ended,
            goal=tuple(self._goal(sections["goal"], keys)),
            state=sections["state"],
            decisions=sections["decisions"],
            failed=sections["failed"],
            open=sections["open"],
            files=tuple(self._files(keys, session, folder)),
        )

    def _in_force(self, keys: Sequence[int]) -> list[StoredObservation]:
        """Return the observations of exchanges that no later observation replaces."""
        learned = self._store.summaries.summarised(keys)
        replaced = self._store.replacements.of_observations([stored.key for stored in learned])
        return [stored for stored in learned if stored.key not in replaced]

    def _prompt_lines(self, number: int) -> set[int]:
        """Return the lines that the user typed, in the file that the card of a session cites."""
        exchanges = self._store.exchanges.load(self._store.summaries.newest_exchanges(number)).values()
        turns = (turn for stored in exchanges for turn in stored.exchange.turns)
        return {turn.line for turn in turns if turn.speaker is Speaker.HUMAN}

    def _of_card(
        self, card: StoredObservation, labels: Sequence[NoteLabel], prompt_lines: Collection[int]
    ) -> Iterator[HandoffLine]:
        """Yield the facts of a card with these labels. The origin of a card is the least trusted one of its texts."""
        for fact, proof in zip(card.observation.facts, card.observation.evidence, strict=False):
            label, _, text = fact.partition(": ")
            if label in labels:
                line = self._line(text if len(labels) == 1 else fact, card, [proof])
                yield replace(line, quoted="") if proof.start_line in prompt_lines else line

    def _section(
        self, name: str, facts: Sequence[HandoffLine], learned: Sequence[StoredObservation]
    ) -> tuple[HandoffLine, ...]:
        """Return facts of the card, then the titles of the latest observations that say something else."""
        lines = [*facts]
        for stored in reversed(learned):
            title, evidence = stored.observation.title, stored.observation.evidence
            is_new = not any(repeats(title, line.text) for line in lines)
            if stored.observation.type.section == name and evidence and is_new:
                lines.append(self._line(title, stored, evidence))
        return tuple(lines[:_LINES])

    def _line(self, text: str, stored: StoredObservation, proofs: Sequence[Evidence]) -> HandoffLine:
        origin = Origin(stored.observation.origin)
        source = f"{ids.show('observation', stored.key)} {_lines(proofs)}"
        return HandoffLine(self._clean(text), source, "" if origin in _OWN else str(origin))

    def _goal(self, asked: Sequence[HandoffLine], keys: Sequence[int]) -> Iterator[HandoffLine]:
        """Yield the request of the card, or else the first prompt, and the last prompt."""
        prompts = [*self._prompt(keys[:1], "")] if not asked else [*asked]
        yield from prompts
        for last in self._prompt(keys[1:][-1:], "Last request: "):
            if not any(repeats(last.text, line.text) for line in prompts):
                yield last

    def _prompt(self, keys: Sequence[int], label: str) -> Iterator[HandoffLine]:
        for key, stored in self._store.exchanges.load(keys).items():
            turn = next((turn for turn in stored.exchange.turns if turn.kind is Kind.PROMPT), None)
            if turn is not None:
                yield HandoffLine(self._clean(label + turn.text), f"{ids.show('exchange', key)} line {turn.line}")

    def _files(self, keys: Sequence[int], session: Session, folder: Path | None) -> Iterator[HandoffFile]:
        """Yield the changed files, the latest first. Paths in the session's folder are relative to it."""
        order = {key: position for position, key in enumerate(keys)}
        edits = sorted(self._store.edits.of_exchanges(keys), key=lambda edit: -order[edit.exchange])
        latest: dict[str, int] = {}
        for edit in edits:
            latest.setdefault(edit.absolute_path, edit.exchange)
        for path, key in islice(latest.items(), _FILES):
            name = os.path.relpath(path, session.cwd) if Path(path).is_relative_to(session.cwd or "/") else path
            state, digest = _state(folder / name if folder else Path(path), session.ended)
            yield HandoffFile(self._redactor.redact(name).text, state, ids.show("exchange", key), digest)

    def _clean(self, text: str) -> str:
        return truncate(" ".join(self._redactor.redact(text).text.split()), _TEXT)


def _lines(proofs: Sequence[Evidence]) -> str:
    first, last = min(proof.start_line for proof in proofs), max(proof.end_line for proof in proofs)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _state(path: Path, ended: Milliseconds | None) -> tuple[str, str]:
    """Return the state and the content hash of a file. A file that cannot be read counts as missing."""
    try:
        if not path.is_file():
            return "missing", ""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        changed = ended is None or path.stat().st_mtime_ns // 1_000_000 > ended
    except OSError:
        return "missing", ""
    return "changed" if changed else "unchanged", digest
