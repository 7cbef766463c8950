"""Trace records: who wrote which lines, in the form of the agent-trace specification, version 0.1."""

from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from ...core.clock import show_instant
from ...core.conversation import Milliseconds

VERSION = "0.1.0"


class Conversation(Struct, frozen=True):
    """A conversation in which lines were written. `ranges` are pairs of first and last line, empty where unknown."""

    url: str
    model: str
    ranges: tuple[tuple[int, int], ...]


class TracedFile(Struct, frozen=True):
    """A file and the conversations that wrote in it. `path` is relative to the repository where there is one."""

    path: str
    conversations: tuple[Conversation, ...]


class Trace(Struct, frozen=True):
    """What agents wrote for one commit; without `revision`, what one conversation wrote that is in no commit known."""

    revision: str
    at: Milliseconds | None
    tool: str
    tool_version: str
    files: tuple[TracedFile, ...]

    @property
    def id(self) -> str:
        """The same id for the same commit, or conversation, every time."""
        urls = sorted({each.url for file in self.files for each in file.conversations})
        return str(uuid5(NAMESPACE_URL, self.revision or " ".join(urls)))

    def as_json(self) -> dict[str, Any]:
        """The record as the specification writes it."""
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
    """Line numbers as ranges, both ends included."""
    found: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if found and found[-1][1] == line - 1:
            found[-1] = found[-1][0], line
        else:
            found.append((line, line))
    return tuple(found)


def _conversation(each: Conversation) -> dict[str, Any]:
    model = {"model_id": each.model} if each.model else {}
    return {
        "url": each.url,
        "contributor": {"type": "ai", **model},
        "ranges": [{"start_line": first, "end_line": last} for first, last in each.ranges],
    }
