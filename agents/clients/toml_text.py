"""Edits of TOML. A new table is appended; tomlkit keeps order and comments in other edits."""

import tomllib
from collections.abc import Sequence
from typing import Any, cast


def read(text: str) -> dict[str, Any]:
    """Return the root table.

    Raises:
        ValueError: The text is not TOML.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"invalid TOML: {error}") from None
    except RecursionError:
        raise ValueError("invalid TOML: nested too deeply") from None


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set a value in an existing table, or append a table of values.

    Raises:
        ValueError: The text is not valid, or the path leads through a value.
    """
    holder: Any = read(text)
    for depth, key in enumerate(path):
        if not isinstance(holder, dict):
            raise ValueError(f"`{'.'.join(path[:depth])}` is not a table")  # noqa: TRY004
        if key not in holder and isinstance(value, dict):
            after = _append(text, path, cast("dict[str, object]", value))
            if _is_valid(after):
                return after
            raise ValueError(f"the inline table `{'.'.join(path[:depth])}` cannot be extended")
        holder = cast("dict[str, Any]", holder).get(key)
    document, table = _tables(text, path)
    table[path[-1]] = value
    return document.as_string()


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
    except ValueError:
        return False
    return True


def _append(text: str, path: Sequence[str], table: dict[str, object]) -> str:
    """Append a table, after an empty line."""
    import tomlkit

    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]"]
    for name, value in table.items():
        item = tomlkit.item(cast("Any", value))
        if isinstance(value, dict):  # A table on its own lines would be a second part of the entry.
            item = tomlkit.inline_table()
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
        raise ValueError(f"this TOML cannot be edited: {error}") from None
    return document, table
