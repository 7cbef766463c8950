"""Files that offer the archive in Codex, Gemini CLI and OpenCode: skill, agent, slash commands, and a plugin.

Each file is written as a whole. A file at the same path that Palaver did not write is never changed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from ...core.errors import ClientConfigUnusable
from .client_file import read_config
from .client_setup import ConfigChange
from .client_table import Client
from .companion_texts import (
    COMMANDS,
    MARK,
    SKILL,
    codex_agent,
    gemini_agent,
    gemini_command,
    opencode_agent,
    opencode_command,
    skill_text,
)

_AGENT: Final = "search-conversation"


class CompanionFile(Struct, frozen=True):
    """File of a coding agent, and the function that returns its text."""

    client: Client
    text: Callable[[], str]


def plan_file(file: CompanionFile) -> ConfigChange:
    """Plan to write a file. Nothing is written.

    Raises:
        ClientConfigUnusable: Another program or the user wrote the file, or it cannot be read.
    """
    before, after = _own(file.client), file.text().encode()
    action = "add" if before is None else "keep" if before == after else "update"
    return ConfigChange(file.client, file.client.path, action, before, after, top=file.client.top)


def plan_file_removal(file: CompanionFile) -> ConfigChange:
    """Plan to delete a file that Palaver wrote. Nothing is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be read.
    """
    path = file.client.path
    before = read_config(path)
    is_own = before is not None and MARK.encode() in before
    return ConfigChange(file.client, path, "remove" if is_own else "absent", before, None, top=file.client.top)


def _own(client: Client) -> bytes | None:
    """Return the content of a file that Palaver wrote, or None if the file does not exist."""
    before = read_config(client.path)
    if before is not None and MARK.encode() not in before:
        raise ClientConfigUnusable(client.path, "not written by Palaver. Rename it to get Palaver's version")
    return before


def _files(template: Client, title: str, texts: dict[str, tuple[str, Callable[[], str]]]) -> Sequence[CompanionFile]:
    ...
