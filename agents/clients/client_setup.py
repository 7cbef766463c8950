"""Changes of the configuration files of MCP clients: plan a change, show it, apply it.

Files are read strictly and written atomically, with one backup beside each file. Each plan is checked before it is
returned: the new text must parse to the values of the old file, except for the entry.
"""

import difflib
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from ...core.errors import ChangedMeanwhile, ClientConfigUnusable
from ...core.runtime import sync, sync_path
from . import config_format, toml_text
from .client_table import HOME_VARIABLE, NAME, Client, ServerEntry
from .config_format import ConfigFormat, UnusableText, as_table, problem_of

_BACKUP: Final = ".before-palaver"
"""Suffix that the name of a backup file adds to the name of the configuration file."""


def backup_of(path: Path, suffix: str = "") -> Path:
    """Return the path of a configuration file's backup.

    `suffix` separates the backups of different changes to one file, such as the server entry and the hooks.
    """
    return path.with_name(path.name + _BACKUP + suffix)


def read_config(path: Path) -> bytes | None:
    """Return the content of a configuration file, or None if it does not exist.

    Raises:
        ClientConfigUnusable: The path is not a readable regular file.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # Opening a named pipe would wait for its writer.
            raise ClientConfigUnusable(path, "not a regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ClientConfigUnusable(path, error.strerror or str(error)) from None


def read_backup(path: Path) -> bytes | None:
    """Return the content of a backup, or None if there is none. A link is none: another program made it."""
    return None if path.is_symlink() else read_config(path)


def refuse_link(backup: Path) -> None:
    """Raise `ClientConfigUnusable` if a link is at the place of a backup, whose target must not be overwritten."""
    if backup.is_symlink():
        raise ClientConfigUnusable(backup, "a link is at the place of the backup", hint="Move it away.")


def write_config(path: Path, content: bytes) -> None:
    """Replace a configuration file atomically and durably.

    If the path is a link, its target is replaced. The permissions of the file are kept.

    Raises:
        ClientConfigUnusable: The file cannot be written. The previous file is kept.
    """
    target, temporary = path, None
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".palaver", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            sync(file)
        temporary.replace(target)
        sync_path(target.parent)
    except (OSError, RuntimeError) as error:  # `resolve` raises RuntimeError for a loop of links.
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise ClientConfigUnusable(path, _reason(error)) from None


def remove_config(path: Path) -> None:
    """Delete a configuration file, or do nothing if it does not exist. If the path is a link, its target is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be deleted.
    """
    try:
        target = path.resolve()
        target.unlink(missing_ok=True)
        sync_path(target.parent)
    except (OSError, RuntimeError) as error:
        raise ClientConfigUnusable(path, _reason(error)) from None


def _reason(error: OSError | RuntimeError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


Action = Literal["add", "update", "keep", "remove", "absent", "paste"]
"""Kind of a change.

Three kinds change nothing: `keep` (the entry is current), `absent` (there is no entry), and `paste` (the user must add
the entry).
"""


_FORMATS: Final[Mapping[str, ConfigFormat]] = {"json": config_format, "toml": toml_text}
"""Formats of the files that are edited. The entry for a YAML file is only shown."""
_YAML_ENTRY: Final = re.compile(rb"^[ \t]+[\"']?" + NAME.encode() + rb"[\"']?[ \t]*:", re.MULTILINE)


class ConfigChange(Struct, frozen=True):
    """Planned change of a client's configuration file, with its content before and after.

    `before` is None if the file does not exist yet. `after` is None if no file exists after the change. For the action
    `paste`, `snippet` is the text that the user must add to the file.
    """

    client: Client
    path: Path
    action: Action
    before: bytes | None
    after: bytes | None
    suffix: str = ""
    """Suffix of the backup file for changes other than the server entry, such as `-hooks`."""
    folders: int = 0
    """Number of folders above the file that are deleted with the file if they are empty."""
    snippet: str = ""

    @property
    def backup(self) -> Path:
        """Path of the backup in the same folder. The backup may not exist."""
        return backup_of(self.path, self.suffix)

    @property
    def is_needed(self) -> bool:
        """True if the change modifies the file."""
        return self.action in {"add", "update", "remove"}

    @property
    def keeps_backup(self) -> bool:
        """True if a backup of the previous file exists after the change."""
        return self.action in {"add", "update"} and self.before is not None

    @property
    def diff(self) -> list[str]:
        """Changed rows, each after `-` or `+`. Unchanged rows are omitted, because they can contain API keys."""
        old, new = ((content or b"").decode().splitlines() for content in (self.before, self.after))
        start = same_start(old, new)
        old, new = old[start:][::-1], new[start:][::-1]
        end = same_start(old, new)
        rows = list(difflib.unified_diff(old[end:][::-1], new[end:][::-1], lineterm="", n=0))[2:]
        return [row for row in rows if not row.startswith("@@")]


def plan(client: Client, server: ServerEntry) -> ConfigChange:
    """Plan to add the server to a client's configuration, or to update its entry. Nothing is written.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content.
    """
    if client.format not in _FORMATS:
        before, text = read_config(client.path), snippet(client, server)
        return ConfigChange(
            client, client.path, "keep" if _has_yaml_entry(before) else "paste", before, before, snippet=text
        )
    path, address, form = client.path, (client.section, NAME), _FORMATS[client.format]
    before = read_config(path)
    try:
        text = (before or b"").decode()
        table = form.read(text)
        entry = _entry(table, client)
        fields = client.shape.fields(server) if entry is None else client.shape.updated(entry, server)
        if fields == entry:
            return ConfigChange(client, path, "keep", before, before)
        after = form.put(text, address, fields) if entry is None else _updated(form, text, address, entry, fields)
        others = as_table(table.get(client.section) or {}, client.section)
        expected = {**table, client.section: {**others, NAME: fields}}
        _check(form, after, expected, client.section)
        return ConfigChange(client, path, "add" if entry is None else "update", before, after.encode())
    except ValueError as error:
        raise ClientConfigUnusable(path, problem_of(error)) from None


def plan_removal(client: Client) -> ConfigChange:
    """Plan to remove the entry of the server. Nothing is written.

    If the file was not changed since the entry was added, its previous bytes are restored. A file that Palaver created
    is deleted. An entry of another program, which Palaver replaced, is restored.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content. The same
            applies if `plan` could not change the entry, because Palaver then did not write it.
    """
    if client.format not in _FORMATS:
        return _yaml_removal(client)
    path, address, form = client.path, (client.section, NAME), _FORMATS[client.format]
    before = read_config(path)
    try:
        text = (before or b"").decode()
        table = form.read(text)
        entry = _entry(table, client)
        if before is None or entry is None:
            return ConfigChange(client, path, "absent", before, before)
        _refuse_uneditable(form, text, client, table, entry)
        backup = read_backup(backup_of(path))
        if _with_entry(form, backup, client, entry) == before:
            return ConfigChange(client, path, "remove", before, backup)
        if earlier := _replaced_entry(form, backup, client):
            after = _updated(form, text, address, entry, earlier)
            expected = {**table, client.section: {**table[client.section], NAME: earlier}}
            _check(form, after, expected, client.section)
            return ConfigChange(client, path, "remove", before, after.encode())
        kept = {name: value for name, value in table[client.section].items() if name != NAME}
        after = form.drop(text, address)
        if not kept and client.section in form.read(after) and _lacks(form, backup, client.section):
            after = form.drop(after, (client.section,))
        _check(form, after, {**table, client.section: kept}, client.section)
        return ConfigChange(client, path, "remove", before, after.encode())
    except ValueError as error:
        raise ClientConfigUnusable(path, problem_of(error)) from None


def apply(change: ConfigChange) -> None:
    """Write a planned change.

    Before the first change, the file is copied to the backup. After the entry is removed, the backup is deleted.

    Raises:
        ChangedMeanwhile: Another program changed the file after the plan. Nothing was written.
        ClientConfigUnusable: The file cannot be written. It is unchanged.
    """
    if not change.is_needed:
        return
    if read_config(change.path) != change.before:
        raise ChangedMeanwhile
    backup = change.backup
    if change.before is not None and change.action != "remove" and not (change.action == "update" and backup.exists()):
        refuse_link(backup)
        write_config(backup, change.before)
        if change.path.exists():
            backup.chmod(change.path.stat().st_mode & 0o777)
    if change.after is None:
        remove_config(change.path)
    else:
        write_config(change.path, change.after)
    if change.action == "remove":
        if not backup.is_symlink():
            remove_config(backup)
        with suppress(OSError):  # A folder that is not empty stays.
            for folder in change.path.parents[: change.folders]:
                folder.rmdir()


def snippet(client: Client, server: ServerEntry) -> str:
    """Return the content of a configuration file that contains only the entry of the server."""
    fields = client.shape.fields(server)
    if client.format in _FORMATS:
        return _FORMATS[client.format].put("", (client.section, NAME), fields)
    import yaml

    entry = {client.section: {NAME: fields}}
    return str(yaml.safe_dump(entry, allow_unicode=True, sort_keys=False, width=10_000))


def _has_yaml_entry(content: bytes | None) -> bool:
    return _YAML_ENTRY.search(content or b"") is not None


def _yaml_removal(client: Client) -> ConfigChange:
    """Return that a YAML file has no entry. Raises `ClientConfigUnusable` if it has one."""
    before = read_config(client.path)
    if _has_yaml_entry(before):
        hint = f"Delete the entry `{NAME}` below `{client.section}`."
        raise ClientConfigUnusable(client.path, "Palaver does not edit YAML", hint=hint)
    return ConfigChange(client, client.path, "absent", before, before)


def same_start(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal rows, or characters of two rows, at the start.

    `diff` skips these rows, because difflib is slow for large files.
    """
    rows = enumerate(zip(old, new, strict=False))
    return next((index for index, (first, second) in rows if first != second), min(len(old), len(new)))


def _entry(table: Mapping[str, Any], client: Client) -> dict[str, Any] | None:
    """Return the entry of the server in a parsed file, or None.

    Raises:
        UnusableText: The section or the entry is not a table.
    """
    section = table.get(client.section)
    if section is None and client.section not in table:
        return None
    entry = as_table(section, client.section).get(NAME)
    return None if entry is None else as_table(entry, f"{client.section}.{NAME}")


def _updated(
    form: ConfigFormat, text: str, address: tuple[str, ...], entry: Mapping[str, Any], fields: Mapping[str, Any]
) -> str:
    """Return the text with the wanted entry. Only the fields that differ are edited."""
    for name in entry.keys() - fields.keys():
        text = form.drop(text, (*address, name))
    for name, value in fields.items():
        if name not in entry or entry[name] != value:
            text = form.put(text, (*address, name), value)
    return text


def _check(form: ConfigFormat, after: str, expected: Mapping[str, Any], section: str) -> None:
    """Raise `UnusableText` if the new text does not parse to the expected values.

    A missing section counts as an empty one.
    """
    parsed = form.read(after)
    if {**parsed, section: parsed.get(section) or {}} != expected:
        raise UnusableText("an automatic change would alter other settings")


def _with_entry(form: ConfigFormat, backup: bytes | None, client: Client, entry: Mapping[str, Any]) -> bytes | None:
    """Return the backup's content with the entry added, or None if this is impossible.

    A missing backup counts as an empty file.
    """
    try:
        text = (backup or b"").decode()
        is_new = _entry(form.read(text), client) is None
        return form.put(text, (client.section, NAME), entry).encode() if is_new else None
    except ValueError:
        return None


def _refuse_uneditable(
    form: ConfigFormat, text: str, client: Client, table: Mapping[str, Any], entry: Mapping[str, Any]
) -> None:
    """Raise `UnusableText` if `plan` cannot edit the entry, so that it cannot be an entry of Palaver."""
    edited = client.shape.updated(entry, ServerEntry(NAME, ("mcp", NAME), {HOME_VARIABLE: NAME}))
    after = _updated(form, text, (client.section, NAME), entry, edited)
    _check(form, after, {**table, client.section: {**table[client.section], NAME: edited}}, client.section)


def _replaced_entry(form: ConfigFormat, backup: bytes | None, client: Client) -> dict[str, Any] | None:
    """Return the entry of another program in the backup, which Palaver replaced, or None if there is none."""
    try:
        entry = None if backup is None else _entry(form.read(backup.decode()), client)
    except ValueError:
        return None
    words = [] if entry is None else [entry.get(client.shape.command), entry.get("args")]
    return entry if entry is not None and NAME not in str(words) else None


def _lacks(form: ConfigFormat, backup: bytes | None, section: str) -> bool:
    """Return whether the backup exists and has no such section, which means that Palaver added the section."""
    try:
        return backup is not None and section not in form.read(backup.decode())
    except ValueError:
        return False
