"""The format of ChatGPT's export."""

from collections.abc import Iterator
from pathlib import Path

from ....core.conversation import Session
from ...files.lines import Record
from ..container import file_name, header_of, mark_of, row
from ..json_export import conversations, head
from ..json_values import instant, mapping, string
from ..transcript_format import ContainedSession
from ..unrolled import InContainers
from .chatgpt_reader import ChatGptReader
from .chatgpt_tree import in_order

_SERVICE = Path("chatgpt.com")


class ChatGpt(InContainers):
    """Conversations in `conversations.json`, or in several such files, mostly in a zip: a tree of messages each."""

    agent = "chatgpt"

    def containers(self) -> Iterator[Path]:
        """None: an export lies wherever it was saved, and has to be named."""
        return iter(())

    def holds(self, path: Path) -> bool:
        """Whether a file is an export, or a zip of one. Raises `OSError`."""
        return path.suffix.lower() in {".json", ".zip"} and b'"mapping"' in head(path)

    def state(self, path: Path) -> int:
        """The file's."""
        found = path.stat()
        return mark_of(found.st_ino, found.st_size, found.st_mtime_ns)

    def conversations(self, path: Path) -> Iterator[ContainedSession]:
        """Each conversation, its header before its messages."""
        for found in conversations(path):
            if isinstance(found.get("mapping"), dict):
                yield _conversation(found)

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells, else the name."""
        header = header_of(head)
        return Session(self.agent, _id(header) or path.stem)

    def reader(self, session: Session, *, shorten: bool = True) -> ChatGptReader:
        """A reader for one conversation."""
        return ChatGptReader(session, shorten=shorten)


def _conversation(found: Record) -> ContainedSession:
    header = {name: value for name, value in found.items() if name != "mapping"}
    number = _id(header) or f"{mark_of(header.get('title'), header.get('create_time')):x}"
    rows = [row(number, conversation=header)]
    for node, told in in_order(mapping(found["mapping"]), string(found.get("current_node"))):
        rows.append(row(node, parent=told.get("parent"), message=told.get("message")))
    name = file_name(number)
    at = instant(header.get("update_time")) or instant(header.get("create_time")) or 0
    return ContainedSession(_SERVICE / name, f"conversations/{name}", mark_of(*rows), at, lambda: rows)


def _id(header: Record) -> str:
    return string(header.get("conversation_id")) or string(header.get("id"))
