"""Exports of ChatGPT: trees of messages in one or several `conversations.json` files, usually in a zip."""

from collections.abc import Iterator

from ...files.lines import Record
from ..containers import ExportFormat, message_line
from ..json_values import instant, mapping, string
from ..transcript_format import ContainerFormat
from .chatgpt_reader import ChatGptReader


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
    """Yield the nodes, each after its parent, with the current branch last.

    The displayed conversation is therefore at the end. Nodes that are unreachable from any root follow, sorted by time.
    """
    children: dict[str, list[str]] = {}
    for name, value in nodes.items():
        parent = string(mapping(value).get("parent"))
        children.setdefault(parent if parent in nodes and parent != name else "", []).append(name)
    shown, seen = _path_to_root(nodes, current), set[str]()
    places = {name: place for place, name in enumerate(nodes)}

    def stacked(names: list[str]) -> list[str]:
        return sorted(names, key=lambda name: (name not in shown, -places[name]))

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
