"""Folder of Markdown notes, such as a vault of Obsidian, that repeated exports bring up to date.

A hidden file lists the notes with the hashes of their content. A note whose hash differs was edited by the user, and is
only overwritten or removed on request.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from ..core.errors import InvalidInput
from ..core.runtime import replacing
from ..core.shared_session import VaultReport

_LIST: Final = ".palaver-vault.json"
_NAME: Final = re.compile(r"(?:sessions|observations)/[^/\\\0]+\.md")
"""Pattern for the name of a note. Other names in the list, which a user can change, are ignored."""


class VaultNote(Struct, frozen=True):
    """Note of a vault: the name of its session, the hash of its content, and the archive that exported it."""

    session: str
    sha256: str
    archive: str = ""


class _NoteList(Struct):
    notes: dict[str, VaultNote] = field(default_factory=dict[str, VaultNote])
    version: int = 1


class Vault:
    """Vault in a folder, which need not exist yet. Notes that another archive exported are never removed."""

    def __init__(self, folder: Path, archive: str) -> None:
        """Read the list of notes. `archive` identifies the archive, which removes only its own notes.

        Raises:
            InvalidInput: The list is damaged, or the path is no folder.
        """
        self._folder, self._list, self._archive = folder, folder / _LIST, archive
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is not a folder", hint="Choose another folder for the vault.")
        try:
            listed = msgspec.json.decode(self._list.read_bytes(), type=_NoteList).notes
        except FileNotFoundError:
            listed = {}
        except msgspec.MsgspecError as error:
            hint = "Delete this file. Notes that were edited are then kept."
            raise InvalidInput(f"{self._list} is damaged: {error}", hint=hint) from None
        self._notes = {name: note for name, note in listed.items() if _NAME.fullmatch(name)}

    def names_of(self, session: str) -> list[str]:
        """Return the names of the notes of a session."""
        return [name for name, note in self._notes.items() if note.session == session]

    def plan(
        self, notes: Mapping[str, Mapping[str, str]], exists: Callable[[str], bool], *, force: bool
    ) -> "VaultUpdate":
        """Return the changes that bring the vault up to date. Nothing is written.

        Args:
            notes: The exported sessions by name, each with its notes: their texts by name.
            exists: Function that returns whether a session can still be exported.
            force: Whether notes that the user edited are overwritten and removed too.
        """
        update = VaultUpdate(self._folder, dict(self._notes))
        for session, texts in notes.items():
            for name, text in texts.items():
                self._plan_note(
                    update, name, VaultNote(session, _hash(text.encode()), self._archive), text, force=force
                )
        own = {name: note for name, note in self._notes.items() if note.archive == self._archive}
        gone = {note.session for note in own.values() if note.session not in notes}
        gone -= {session for session in gone if exists(session)}
        for name, note in own.items():
            if note.session in gone or name not in notes.get(note.session, {name: ""}):
                self._plan_removal(update, name, force=force)
        return update

    def _plan_note(self, update: "VaultUpdate", name: str, note: VaultNote, text: str, *, force: bool) -> None:
        """Plan to write a note. `note` has the hash of its new text."""
        current, listed = self._state(name), self._notes.get(name)
        is_edited = current not in {None, note.sha256, listed.sha256 if listed else None}
        if is_edited and not force:
            update.edited.append(name)
            return
        update.notes[name] = note
        if current == note.sha256:
            update.unchanged += 1
        else:
            update.texts[name] = text

    def _plan_removal(self, update: "VaultUpdate", name: str, *, force: bool) -> None:
        if self._state(name) in {None, self._notes[name].sha256} or force:
            update.removed.append(name)
            del update.notes[name]
        else:
            update.edited.append(name)

    def _state(self, name: str) -> str | None:
        """Return the hash of a note, or None if it does not exist."""
        try:
            return _hash((self._folder / name).read_bytes())
        except FileNotFoundError:
            return None


class VaultUpdate(Struct):
    """Changes of a vault: the notes after them, and what is written, removed and kept."""

    folder: Path
    notes: dict[str, VaultNote]
    texts: dict[str, str] = field(default_factory=dict[str, str])
    removed: list[str] = field(default_factory=list[str])
    edited: list[str] = field(default_factory=list[str])
    unchanged: int = 0

    def report(self, private: int, secrets: dict[str, int], home_paths: int) -> VaultReport:
        """Return the report of the update."""
        written, removed, edited = (tuple(sorted(names)) for names in (self.texts, self.removed, self.edited))
        return VaultReport(written, removed, edited, self.unchanged, private, secrets, home_paths)

    def apply(self) -> None:
        """Write and remove the notes. Files that stay as they are are not touched."""
        for name, text in self.texts.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(text.encode())
        for name in self.removed:
            (self.folder / name).unlink(missing_ok=True)
        content = msgspec.json.format(msgspec.json.encode(_NoteList(dict(sorted(self.notes.items())))))
        path = self.folder / _LIST
        if (self.notes or path.exists()) and not (path.exists() and path.read_bytes() == content):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(content)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
