"""Trace records in the format of the agent-trace specification, version 0.1."""

from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from ...core.clock import show_instant
from ...core.conversation import Milliseconds

VERSION = "0.1.0"


class TracedConversation(Struct, frozen=True):
    """Conversation that wrote lines. `ranges` are pairs of first and last line, empty if unknown."""

    url: str
    model: str
    ranges: tuple[tuple[int, int], ...]


class TracedFile(Struct, frozen=True):
    """File with the conversations that wrote it. `path` is relative to the repository, or absolute without one."""

    path: str
    conversations: tuple[TracedConversation, ...]


class Trace(Struct, frozen=True):
    """Lines that agents wrote for one commit, or uncommitted lines of one conversation if `revision` is empty."""

    revision: str
    at: Milliseconds | None
    tool: str
    tool_version: str
    files: tuple[TracedFile, ...]

    @property
    def id(self) -> str:
        """Stable ID of the commit or the conversation."""
        urls = sorted({each.url for file in self.files for each in file.conversations})
        return str(uuid5(NAMESPACE_URL, self.revision or " ".join(urls)))

    def as_json(self) -> dict[str, Any]:
        """Return the record in the JSON format of the specification."""
        return {
            "version": VERSION,
            "id": self.id,
            "timestamp": None if self.at is None else show_instant(self.at),
            "vcs": {"type": "git", "revision": self.revision} if self.revision else None,
            "tool": {"name": self.tool, "version": self.tool_version},
            "files": [
                {"path": file.path, "conversations": [_conversation(each) for each in file.conversations]}
                for file in self.files
            ],
        }


def ranges(lines: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return line numbers as inclusive ranges: `3, 1, 2, 7` becomes `(1, 3), (7, 7)`."""
    found: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if found and found[-1][1] == line - 1:
            found[-1] = found[-1][0], line
        else:
            found.append((line, line))
    return tuple(found)


def _conversation(each: TracedConversation) -> dict[str, Any]:
    model = {"model_id": each.model} if each.model else {}
    return {
        "url": each.url,
        "contributor": {"type": "ai", **model},
        "ranges": [{"start_line": first, "end_line": last} for first, last in each.ranges],
    }
