"""Protocol of a configuration format, and its implementation for JSON with comments (JSONC).

An edit keeps everything outside the edited member byte for byte. The module `toml_text.py` implements the protocol
for TOML.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, cast


class ConfigFormat(Protocol):
    """Functions that read and edit a configuration text, and keep everything outside the edited value.

    A path is the sequence of keys from the root to a value, such as `("mcpServers", "palaver")`.
    """

    def read(self, text: str) -> dict[str, Any]:
        """Parse the text and return its root table. An empty text is an empty table."""
        ...

    def put(self, text: str, path: tuple[str, ...], value: object) -> str:
        """Return the text with the value at this path set. Missing tables on the path are added."""
        ...

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """Return the text without the value at this path, which must exist."""
        ...


class UnusableText(ValueError):
    """Error: a configuration text is invalid, or the planned edit is impossible."""


def as_table(value: object, name: str) -> dict[str, Any]:
    """Return the value if it is a table.

    Raises:
        UnusableText: The value is not a table. The message contains `name`.
    """
    if not isinstance(value, dict):
        raise UnusableText(f"`{name}` is not a table")
    return cast("dict[str, Any]", value)


def problem_of(error: ValueError) -> str:
    """Return a description of the error for the user: why a configuration file cannot be read or edited."""
    return "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)


_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf"({_STRING}|[\[{{]\s*,)|,(?=\s*[\]}}])", re.DOTALL)
_INDENT: Final = re.compile(r"[ \t]*")


class _Member(NamedTuple):
    """Member of an object, with the positions of its key and value."""

    key: str
    start: int
    value: int
    end: int


class _Object(NamedTuple):
    """Object with its members and the positions of its braces."""

    start: int
    members: list[_Member]
    close: int

    def find(self, key: str) -> int:
        """Return the index of the member with this key, or -1 if there is none.

        Raises:
            UnusableText: Several members have this key. Programs differ in which of them they use.
        """
        positions = [index for index, member in enumerate(self.members) if member.key == key]
        if len(positions) > 1:
            raise UnusableText(f"the key `{key}` occurs {len(positions)} times in one object")
        return positions[0] if positions else -1


def read(text: str) -> dict[str, Any]:
    """Return the root object. An empty text is an empty object.

    Raises:
        UnusableText: The text is not an object in JSON with comments.
    """
    plain = _plain(text)
    if not plain.strip():
        return {}
    try:
        root = json.loads(plain, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise UnusableText(f"invalid JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise UnusableText("invalid JSON: nested too deeply") from None
    return as_table(root, "the root")


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set the value at a path of keys, and add missing objects.

    Raises:
        UnusableText: The text is not valid, or a key on the path is not an object.
    """
    read(text)
    if not _plain(text).strip():
        text += "{}\n"
    plain = _plain(text)
    brace = _skip(plain, 0)
    for depth, key in enumerate(path):
        holder = _object(plain, brace, path[:depth])
        index = holder.find(key)
        if index < 0:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, holder, key, value)
        if depth == len(path) - 1:
            member = holder.members[index]
            return text[: member.value] + _render(text, value, _base(text, member.start)) + text[member.end :]
        brace = holder.members[index].value
    raise AssertionError("the path is empty")


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path of keys, which must exist."""
    plain = _plain(text)
    holder = _object(plain, _skip(plain, 0), ())
    for depth, key in enumerate(path[:-1]):
        holder = _object(plain, holder.members[holder.find(key)].value, path[: depth + 1])
    index = holder.find(path[-1])
    member, is_last = holder.members[index], index == len(holder.members) - 1
    commas = _without_comments(text)
    end = holder.close if is_last else holder.members[index + 1].start
    comma = commas.find(",", member.end, end)
    after = text[comma + 1 :] if comma >= 0 else text[member.end :]
    before = text[: member.start].rstrip()
    if is_last and comma < 0 and index:
        previous = commas.index(",", holder.members[index - 1].end, member.start)
        before = text[:previous] + before[previous + 1 :]
    if len(holder.members) == 1 and before.endswith("{") and after.lstrip().startswith("}"):
        after = after.lstrip()
    return before + after


def _insert(text: str, holder: _Object, key: str, value: object) -> str:
    """Insert a member as the last one of an object."""
    inside = text[holder.start + 1 : holder.close]
    stripped = text.strip().lstrip("\ufeff")
    if "\n" not in inside and (holder.members or ("\n" not in stripped and stripped != "{}")):
        member = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        if not holder.members:
            return text[: holder.start + 1] + member + text[holder.close :]
        end = holder.members[-1].end
        return f"{text[:end]}, {member}{text[end:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    base = _base(text, holder.start)
    indent = _base(text, holder.members[-1].start) if holder.members else base + _unit(text)
    member = newline + indent + f"{json.dumps(key)}: {_render(text, value, indent)}"
    if not holder.members:
        kept = text[: holder.start + 1] + inside.rstrip()
        return kept + member + newline + base + text[holder.close :]
    end = holder.members[-1].end
    tail = text[end : holder.close]
    has_comma = "," in _without_comments(text)[end : holder.close]
    kept = text[:end] + ("" if has_comma else ",") + tail.rstrip()
    space = tail[len(tail.rstrip()) :] or newline + base
    return kept + member + ("," if has_comma else "") + space + text[holder.close :]


def _render(text: str, value: object, indent: str) -> str:
    """Return a value as indented JSON, in the style of the text."""
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", newline + indent)


def _unit(text: str) -> str:
    """Return the indentation of the root object's members. The default is two spaces."""
    plain = _plain(text)
    root = _object(plain, _skip(plain, 0), ())
    return (_base(text, root.members[0].start) if root.members else "") or "  "


def _base(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    indent = _INDENT.match(text, text.rfind("\n", 0, position) + 1)
    return indent[0] if indent else ""


def _object(plain: str, brace: int, path: Sequence[str]) -> _Object:
    """Return the object that starts at a position."""
    if plain[brace] != "{":
        raise UnusableText(f"`{'.'.join(path)}` is not an object")
    decoder, members = json.JSONDecoder(), list[_Member]()
    position = _skip(plain, brace + 1)
    while plain[position] != "}":
        key, end = decoder.raw_decode(plain, position)
        value = _skip(plain, _skip(plain, end) + 1)
        end = decoder.raw_decode(plain, value)[1]
        members.append(_Member(key, position, value, end))
        position = _skip(plain, end)
        if plain[position] == ",":
            position = _skip(plain, position + 1)
    return _Object(brace, members, position)


def _skip(plain: str, position: int) -> int:
    """Return the position of the next character that is not white space."""
    while plain[position] in " \t\r\n":
        position += 1
    return position


def _is_plain(text: str) -> bool:
    """Return whether a text is JSON without comments. This check avoids the slower search for comments."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _without_comments(text: str) -> str:
    if _is_plain(text):
        return text
    return _COMMENT.sub(_blank, text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text)


def _plain(text: str) -> str:
    """Return the text as plain JSON of the same length, with spaces in place of comments and trailing commas."""
    return text if _is_plain(text) else _TRAILING_COMMA.sub(_blank, _without_comments(text))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[1] else re.sub(r"[^\r\n]", " ", match[0])


def _refuse(name: str) -> None:
    raise UnusableText(f"invalid JSON: {name} is not a value")
