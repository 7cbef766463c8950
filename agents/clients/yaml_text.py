"""Edits of YAML by the positions of its nodes. Everything outside the edited value is kept byte for byte."""

import json
from collections.abc import Sequence
from typing import Any, Final

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from .config_format import UnusableText, as_table

_INDENT: Final = 2


def read(text: str) -> dict[str, Any]:
    """Return the root mapping. An empty text is an empty mapping.

    Raises:
        UnusableText: The text is not one YAML document with a mapping.
    """
    try:
        root = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise UnusableText(f"invalid YAML: {getattr(error, 'problem', None) or type(error).__name__}{where}") from None
    return {} if root is None else as_table(root, "the root")


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set the value at a path of keys, and add missing mappings.

    Raises:
        UnusableText: The text is not valid, or a key on the path is not a mapping.
    """
    read(text)
    node = _root(text)
    if node is None or _is_null(node):
        return _append(text, path, value, 0)
    for depth, key in enumerate(path):
        if not isinstance(node, MappingNode):
            raise UnusableText(f"`{'.'.join(path[:depth])}` is not a mapping")
        index = _index(node, key)
        if index < 0:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, node, key, value)
        name, node = node.value[index]
        if depth == len(path) - 1:
            return f"{text[: name.end_mark.index]}: {_flow(value)}{text[_end(node) :]}"
        if isinstance(node, ScalarNode) and not node.value and node.style is None:
            line = _line_end(text, name.end_mark.index)
            return _append(text[:line], path[depth + 1 :], value, name.start_mark.column + _INDENT) + text[line:]
    raise AssertionError("the path is empty")


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the value at a path of keys, which must exist."""
    node: Any = _root(text)
    for key in path[:-1]:
        node = node.value[_index(node, key)][1]
    index = _index(node, path[-1])
    name, value = node.value[index]
    if not node.flow_style:
        start = text.rfind("\n", 0, name.start_mark.index) + 1
        return text[:start] + text[_line_end(text, _end(value)) :]
    if index:
        return text[: _end(node.value[index - 1][1])] + text[_end(value) :]
    end = node.value[1][0].start_mark.index if len(node.value) > 1 else _end(value)
    return text[: name.start_mark.index] + text[end:]


def _insert(text: str, node: MappingNode, key: str, value: object) -> str:
    """Return the text with a key and its value added at the end of a mapping."""
    if node.flow_style:
        end = _end(node.value[-1][1]) if node.value else node.start_mark.index + 1
        return f"{text[:end]}{', ' if node.value else ''}{json.dumps(key)}: {_flow(value)}{text[end:]}"
    line = _line_end(text, _end(node))
    return _append(text[:line], [key], value, node.start_mark.column) + text[line:]


def _append(text: str, path: Sequence[str], value: object, column: int) -> str:
    """Return the text with the value at a path of keys appended in block style, indented by `column`."""
    for key in reversed(path):
        value = {key: value}
    newline = "\r\n" if "\r\n" in text else "\n"
    block = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, indent=_INDENT, width=10_000)
    rows = [" " * column + row + newline for row in block.splitlines()]
    return text + ("" if not text or text.endswith("\n") else newline) + "".join(rows)


def _flow(value: object) -> str:
    """Return a value in flow style. JSON is valid YAML."""
    return json.dumps(value, ensure_ascii=False)


def _root(text: str) -> Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _index(node: MappingNode, key: str) -> int:
    return next((index for index, (name, _) in enumerate(node.value) if name.value == key), -1)


def _end(node: Node) -> int:
    """Return the position at which a node ends, before the comments and empty lines that follow."""
    if isinstance(node, MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    assert isinstance(node, (ScalarNode, CollectionNode))
    return int(node.end_mark.index)


def _line_end(text: str, position: int) -> int:
    """Return the start of the next line, or the position itself if a line starts there."""
    if position == 0 or text[position - 1] == "\n":
        return position
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1
