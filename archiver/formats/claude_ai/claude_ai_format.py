"""The format of Claude.ai's export."""

from collections.abc import Iterator
from pathlib import Path

from ....core.conversation import Session
from ...files.lines import Record
from ..container import file_name, header_of, mark_of, row
from ..json_export import conversations, head
from ..json_values import instant, listing, mapping, string
from ..transcript_format import ContainedSession
from ..unrolled import InContainers
from .claude_ai_reader import ClaudeAiReader

_SERVICE = Path("claude.ai")


class ClaudeAi(InContainers):
    """Conversations in `conversations.json`, mostly in a zip: a list of messages each."""

    agent = "claude-ai"

    def containers(self) -> Iterator[Path]:
        """None: an export lies wherever it was saved, and has to be named."""
        return iter(())

    def holds(self, path: Path) -> bool:
        """Whether a file is an export, or a zip of one. Raises `OSError`."""
        return path.suffix.lower() in {".json", ".zip"} and b'"chat_messages"' in head(path)

    def state(self, path: Path) -> int:
        """The file's."""
        found = path.stat()
        return mark_of(found.st_ino, found.st_size, found.st_mtime_ns)

    def conversations(self, path: Path) -> Iterator[ContainedSession]:
        """Each conversation, its header before its messages."""
        for found in conversations(path):
            if isinstance(found.get("chat_messages"), list):
                yield _conversation(found)

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells, else the name."""
        header = header_of(head)
        return Session(self.agent, string(header.get("uuid")) or path.stem)

    def reader(self, session: Session, *, shorten: bool = True) -> ClaudeAiReader:
        """A reader for one conversation."""
        return ClaudeAiReader(session, shorten=shorten)


def _conversation(found: Record) -> ContainedSession:
    header = {name: value for name, value in found.items() if name != "chat_messages"}
    number = string(header.get("uuid")) or f"{mark_of(header.get('name'), header.get('created_at')):x}"
    rows = [row(number, conversation=header)]
    for place, message in enumerate(map(mapping, listing(found["chat_messages"]))):
        rows.append(row(string(message.get("uuid")) or f"{number}/{place}", message=message))
    name = file_name(number)
    at = instant(header.get("updated_at")) or instant(header.get("created_at")) or 0
    return ContainedSession(_SERVICE / name, f"conversations/{name}", mark_of(*rows), at, lambda: rows)
