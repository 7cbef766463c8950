"""Edits of TOML. A new table is appended; tomlkit keeps order and comments in other edits."""

import tomllib
from collections.abc import Sequence
from typing import Any, cast

from .config_format import UnusableText, as_table


def read(text: str) -> dict[str, Any]:
    """Return the root table.

    Raises:
        UnusableText: The text is not TOML.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UnusableText(f"invalid TOML: {error}") from None
    except RecursionError:
        raise UnusableText("invalid TOML: nested too deeply") from None


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set a value in an existing table, or append a table of values.

    Raises:
        UnusableText: The text is not valid, or the path leads through a value.
    """
    holder: Any = read(text)
    for depth, key in enumerate(path):
        table = as_table(holder, ".".join(path[:depth]))
        if key not in table and isinstance(value, dict):
            after = _append(text, path, cast("dict[str, object]", value))
            if _is_valid(after):
                return after
            raise UnusableText(f"the inline table `{'.'.join(path[:depth])}` cannot be extended")
        holder = table.get(key)
    document, table = _tables(text, path)
    table[path[-1]] = value
    changed: str = document.as_string()
    return changed


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the value or table at a path, which must exist."""
    document, table = _tables(text, path)
    del table[path[-1]]
    rest: str = document.as_string()
    newline = "\r\n" if "\r\n" in text else "\n"
    # The empty line before the last table belongs to it.
    return rest.removesuffix(newline) if text.startswith(rest) and rest.endswith(newline * 2) else rest


def _is_valid(text: str) -> bool:
    try:
        read(text)
    except UnusableText:
        return False
    return True


def _append(text: str, path: Sequence[str], table: dict[str, object]) -> str:
    """Append a table, after an empty line."""
    import tomlkit

    library: Any = tomlkit
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]"]
    for name, value in table.items():
        item = library.inline_table() if isinstance(value, dict) else library.item(value)
        if isinstance(value, dict):  # A table on its own lines would be a second part of the entry.
            item.update(value)
        lines.append(f"{name} = {item.as_string()}")
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def _tables(text: str, path: Sequence[str]) -> tuple[Any, Any]:
    """Return the document and the table that contains the last key of a path."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(text)
        table = document
        for key in path[:-1]:
            table = table[key]
    except (TOMLKitError, TypeError) as error:
        raise UnusableText(f"this TOML cannot be edited: {error}") from None
    return document, table
