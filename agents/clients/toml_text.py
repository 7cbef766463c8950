"""Edits of TOML. A new table is appended as text. For other edits, tomlkit keeps the order and the comments."""

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
    """Return the text with a value set in an existing table, or with a new table appended.

    Raises:
        UnusableText: The text is not valid, a key on the path is not a table, or an inline table cannot be extended.
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
    remaining: str = document.as_string()
    # tomlkit also removes the comments between a table and the next one.
    without_lines = _without_table(text, path)
    return without_lines if _is_valid(without_lines) and read(without_lines) == read(remaining) else remaining


def _without_table(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at the path, the tables inside it, and the empty line before it."""
    kept, after, is_inside = list[str](), list[str](), False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was_inside, is_inside = is_inside, _header(line)[: len(path)] == tuple(path)
            if is_inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
            if not is_inside:
                kept += after
            after.clear()
        elif is_inside and line.strip() and not line.lstrip().startswith("#"):
            after.clear()
        if not is_inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            after.append(line)
    return "".join(kept + after)


def _header(line: str) -> tuple[str, ...]:
    """Return the path in a table's header, or an empty path if the line is not a header."""
    if not _is_valid(line):
        return ()
    path, value = list[str](), read(line)
    while len(value) == 1:
        [(key, inner)] = value.items()
        path.append(key)
        value = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return tuple(path)


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
