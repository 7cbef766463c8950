"""Changes of clients' configuration files: plan a change, show it, apply it.

A change is planned from the current file and checked before it is offered: the new file parses to the old values plus
the entry, or minus the entry.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from ...core.errors import ChangedMeanwhile, ClientConfigUnusable
from . import json_text, toml_text, yaml_text
from .client_file import backup_of, read_config, remove_config, write_config
from .client_table import Client
from .server_entry import NAME, ServerEntry

_ROW: Final = 160
"""Maximum characters of a row of a diff."""

Action = Literal["add", "update", "keep", "remove", "absent"]
"""Kind of a change. `keep` and `absent` change nothing: the entry is already as planned."""


class ConfigFormat(Protocol):
    """Format of a configuration file. Each module `*_text.py` implements it."""

    def read(self, text: str) -> dict[str, Any]: ...
    def put(self, text: str, path: tuple[str, ...], value: object) -> str: ...
    def drop(self, text: str, path: tuple[str, ...]) -> str: ...


_FORMATS: Final[Mapping[str, ConfigFormat]] = {"json": json_text, "toml": toml_text, "yaml": yaml_text}


class ConfigChange(Struct, frozen=True):
    """Planned change of a client's configuration file. None stands for a missing file."""

    client: Client
    path: Path
    action: Action
    before: bytes | None
    after: bytes | None

    @property
    def is_needed(self) -> bool:
        """True if the change modifies the file."""
        return self.action in {"add", "update", "remove"}

    @property
    def keeps_backup(self) -> bool:
        """True if the change leaves a copy of the previous file beside it."""
        return self.action in {"add", "update"} and self.before is not None

    @property
    def diff(self) -> str:
        """Changed lines as a unified diff without context, because neighbouring lines can contain keys."""
        old, new = ((content or b"").decode("utf-8").splitlines() for content in (self.before, self.after))
        rows = list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]
        return "\n".join(row if len(row) <= _ROW else f"{row[: _ROW - 1]}…" for row in rows)


def plan(client: Client, server: ServerEntry) -> ConfigChange:
    """Plan to add the server to a client's configuration, or to update its entry. Nothing is written.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content.
    """
    path, place, form = client.path, (client.section, NAME), _FORMATS[client.format]
    before = read_config(path)
    try:
        text = (before or b"").decode()
        known = form.read(text)
        entry = _entry(known, client)
        wanted = client.shape.fields(server) if entry is None else client.shape.updated(entry, server)
        if wanted == entry:
            return ConfigChange(client, path, "keep", before, before)
        after = form.put(text, place, wanted) if entry is None else _updated(form, text, place, entry, wanted)
        expected = {**known, client.section: {**(known.get(client.section) or {}), NAME: wanted}}
        _check(form, after, expected, client.section)
        return ConfigChange(client, path, "add" if entry is None else "update", before, after.encode())
    except ValueError as error:
        raise ClientConfigUnusable(path, _reason(error)) from None


def plan_removal(client: Client) -> ConfigChange:
    """Plan to remove the entry of the server. Nothing is written.

    A file that nobody changed since the entry was added gets its previous bytes back, and a file that did not exist
    before is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content.
    """
    path, place, form = client.path, (client.section, NAME), _FORMATS[client.format]
    before = read_config(path)
    try:
        text = (before or b"").decode()
        known = form.read(text)
        entry = _entry(known, client)
        if before is None or entry is None:
            return ConfigChange(client, path, "absent", before, before)
        backup = read_config(backup_of(path))
        earlier = _parsed(form, backup)
        if earlier is not None and _entry(earlier, client) is None:
            if form.put((backup or b"").decode(), place, entry).encode() == before:
                return ConfigChange(client, path, "remove", before, backup)
        rest = {name: value for name, value in known[client.section].items() if name != NAME}
        after = form.drop(text, place)
        was_added = backup is not None and earlier is not None and client.section not in earlier
        if not rest and was_added and client.section in form.read(after):
            after = form.drop(after, (client.section,))
        _check(form, after, {**known, client.section: rest}, client.section)
        return ConfigChange(client, path, "remove", before, after.encode())
    except ValueError as error:
        raise ClientConfigUnusable(path, _reason(error)) from None


def apply(change: ConfigChange) -> None:
    """Write a planned change.

    Before the first change, the file is copied to the backup. The removal of the entry deletes the backup.

    Raises:
        ChangedMeanwhile: Another program changed the file after the plan. Nothing was written.
        ClientConfigUnusable: The file cannot be written. It is unchanged.
    """
    if not change.is_needed:
        return
    if read_config(change.path) != change.before:
        raise ChangedMeanwhile
    backup = backup_of(change.path)
    if change.before is not None and change.action != "remove" and not (change.action == "update" and backup.exists()):
        write_config(backup, change.before)
        if change.path.exists():
            backup.chmod(change.path.stat().st_mode & 0o777)
    if change.after is None:
        remove_config(change.path)
    else:
        write_config(change.path, change.after)
    if change.action == "remove":
        remove_config(backup)


def snippet(client: Client, server: ServerEntry) -> str:
    """Return the text of a configuration file that contains only the server."""
    return _FORMATS[client.format].put("", (client.section, NAME), client.shape.fields(server))


def _entry(known: Mapping[str, Any], client: Client) -> dict[str, Any] | None:
    """Return the entry of the server in a parsed file, or None.

    Raises:
        ValueError: The section or the entry is not a table.
    """
    section = known.get(client.section)
    if section is None and (client.section not in known or client.format == "yaml"):
        return None
    if not isinstance(section, dict):
        raise ValueError(f"`{client.section}` is not a table of servers")
    entry = section.get(NAME)
    if entry is not None and not isinstance(entry, dict):
        raise ValueError(f"the server `{NAME}` is not a table")
    return entry


def _updated(
    form: ConfigFormat, text: str, place: tuple[str, ...], entry: Mapping[str, Any], wanted: Mapping[str, Any]
) -> str:
    """Change only the fields that differ."""
    for name in entry.keys() - wanted.keys():
        text = form.drop(text, (*place, name))
    for name, value in wanted.items():
        if name not in entry or entry[name] != value:
            text = form.put(text, (*place, name), value)
    return text


def _check(form: ConfigFormat, after: str, expected: Mapping[str, Any], section: str) -> None:
    """Raise `ValueError` if the new text does not parse to the expected values. The section may be missing if empty."""
    found = form.read(after)
    if {**found, section: found.get(section) or {}} != expected:
        raise ValueError("an automatic change would alter other settings")


def _parsed(form: ConfigFormat, content: bytes | None) -> dict[str, Any] | None:
    """Return the values of a backup, or None if it is damaged. A missing backup has no values."""
    try:
        return form.read((content or b"").decode())
    except ValueError:
        return None


def _reason(error: ValueError) -> str:
    return "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
