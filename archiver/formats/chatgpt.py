"""Support for exports of ChatGPT.

An export is a zip file with one or several `conversations.json` files.

- Supported: prompts with the names of attachments, replies, thoughts, tool calls with results, titles, models,
  branches.
- Not supported: pictures and sound (only type and size are recorded), hidden messages, custom instructions.
- Tested with: synthetic exports that another reader uses as fixtures.
- Test data: `examples/chatgpt.jsonl`, and `chatgpt/*.json` and `chatgpt-export.json` of the project polylogue.
"""

from collections.abc import Iterator

from ...core.conversation import Fact, Kind, Session, Turn
from ..lines import Line, Record, clean
from .containers import ExportFormat, message_line
from .json_values import EntryTree, count_of, instant, listing, mapping, mappings, string
from .record_reader import RecordReader
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type

_INSTRUCTIONS = {"user_editable_context", "model_editable_context", "reasoning_recap"}


class ChatGptReader(RecordReader):
    """Reader of one conversation. Each record contains one message."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree = EntryTree()

    def _finish(self) -> None:
        self._released += self._tree.abandoned(partial=self._partial)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            facts = {
                Fact.SESSION: ("conversation_id", "id"),
                Fact.TITLE: ("title",),
                Fact.MODEL: ("default_model_slug",),
            }
            return self._header_facts(record, line, facts)
        node, parent = string(record.get("id")), string(record.get("parent"))
        message = mapping(record.get("message"))
        self._tree.add(node, parent, partial=self._partial)
        if not message:
            return SkipReason.EMPTY
        stamp = RecordStamp(line.number, instant(message.get("create_time")), record_id("", line.data))
        events = self._message(message, stamp, node, parent)
        if not isinstance(events, str):
            self._tree.mark_events(node, line.number)
        return events

    def _message(self, message: Record, stamp: RecordStamp, node: str, parent: str) -> RecordEvents:
        content, about = mapping(message.get("content")), mapping(message.get("metadata"))
        kind, author = string(content.get("content_type")), mapping(message.get("author"))
        role = string(author.get("role"))
        hidden = about.get("is_visually_hidden_from_conversation") is True
        if hidden or kind in _INSTRUCTIONS or role == "system":
            return SkipReason.CONTEXT
        text = clean(_text(content))
        if role == "user":
            text = "\n".join(filter(None, [text, *map(_attached, mappings(about.get("attachments")))]))
        if not text:
            return SkipReason.EMPTY
        model = self._facts.note(stamp.line, Fact.MODEL, about.get("model_slug"))
        match role:
            case "user":
                return self._prompt(text, stamp)
            case "assistant":
                return [*self._reply(message, kind, text, stamp, node), *model]
            case "tool":
                failed, tool = kind == "system_error", string(author.get("name"))
                return [self._calls.result(stamp, parent, text, failed=failed, tool=tool)]
            case _:
                return unknown_type(f"role {role}")

    def _reply(self, message: Record, kind: str, text: str, stamp: RecordStamp, node: str) -> list[Turn]:
        recipient = string(message.get("recipient"))
        if kind == "system_error":
            return self._injected(text, stamp, failed=True)
        if kind == "thoughts" or message.get("channel") == "analysis":
            return stamp.reply(Kind.THINKING, text)
        if recipient not in {"", "all"}:
            return [self._calls.call(stamp, node, recipient, text)]
        return stamp.reply(Kind.PROSE, text)


def _text(content: Record) -> str:
    parts = [*map(_part_text, listing(content.get("parts"))), *map(_thought, mappings(content.get("thoughts")))]
    fields = [string(content.get(name)) for name in ("title", "url", "text", "result", "name")]
    return "\n\n".join(filter(None, [*parts, "\n".join(filter(None, fields))]))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    media = mapping(part)
    kind = string(media.get("content_type")).removesuffix("_asset_pointer")
    label = f"[{kind}, {count_of(media.get('size_bytes')) // 1024} KB]" if kind else ""
    return string(media.get("text")) or label


def _thought(thought: Record) -> str:
    return "\n".join(filter(None, [string(thought.get("summary")), string(thought.get("content"))]))


def _attached(attachment: Record) -> str:
    name = string(attachment.get("name"))
    return f"[file {clean(name)}]" if name else ""


class ChatGpt(ExportFormat):
    """Conversations of a ChatGPT export. An edited prompt or a regenerated answer starts a branch."""

    agent = "chatgpt"
    reader_class = ChatGptReader
    service = "chatgpt.com"
    messages_field, messages_type = "mapping", dict
    id_fields = ("conversation_id", "id")
    name_fields = ("title", "create_time")
    time_fields = ("update_time", "create_time")

    def _messages(self, session_id: str, found: Record) -> Iterator[bytes]:  # noqa: ARG002 - the base's signature
        for name, node in in_order(mapping(found["mapping"]), string(found.get("current_node"))):
            yield message_line(name, parent=node.get("parent"), message=node.get("message"))


def in_order(nodes: Record, current: str) -> Iterator[tuple[str, Record]]:
    """Yield the nodes of a conversation, each after its parent.

    The branch that ChatGPT displays comes after all other branches. Nodes that cannot be reached from a root come last,
    sorted by time.
    """
    children: dict[str, list[str]] = {}
    for name, value in nodes.items():
        parent = string(mapping(value).get("parent"))
        children.setdefault(parent if parent in nodes and parent != name else "", []).append(name)
    visible, seen = _path_to_root(nodes, current), set[str]()
    positions = {name: position for position, name in enumerate(nodes)}

    def stacked(names: list[str]) -> list[str]:
        return sorted(names, key=lambda name: (name not in visible, -positions[name]))

    waiting = sorted(nodes, key=lambda name: _time(nodes, name), reverse=True) + stacked(children.get("", []))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name, mapping(nodes[name])
            waiting += stacked(children.get(name, []))


def _path_to_root(nodes: Record, current: str) -> set[str]:
    path = set[str]()
    while current in nodes and current not in path:
        path.add(current)
        current = string(mapping(nodes[current]).get("parent"))
    return path


def _time(nodes: Record, name: str) -> int:
    return instant(mapping(mapping(nodes[name]).get("message")).get("create_time")) or 0


FORMAT: ContainerFormat = ChatGpt()
