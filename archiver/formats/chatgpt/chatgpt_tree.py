"""The tree of a ChatGPT conversation: every message that was asked anew, or answered anew, begins a branch."""

from collections.abc import Iterator

from ...files.lines import Record
from ..json_values import instant, mapping, string


def in_order(nodes: Record, current: str) -> Iterator[tuple[str, Record]]:
    """The nodes, each after its parent, and where it branches the branch that is being shown last.

    So the conversation as it is shown goes on at the end. What no root leads to comes after the rest, by time.
    """
    children: dict[str, list[str]] = {}
    for name, value in nodes.items():
        parent = string(mapping(value).get("parent"))
        children.setdefault(parent if parent in nodes and parent != name else "", []).append(name)
    shown, seen = _way(nodes, current), set[str]()
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


def _way(nodes: Record, current: str) -> set[str]:
    """The nodes from the one that is shown last back to its root."""
    way = set[str]()
    while current in nodes and current not in way:
        way.add(current)
        current = string(mapping(nodes[current]).get("parent"))
    return way


def _time(nodes: Record, name: str) -> int:
    return instant(mapping(mapping(nodes[name]).get("message")).get("create_time")) or 0
