"""Protocol of a configuration format. The modules `json_text.py`, `toml_text.py` and `yaml_text.py` implement it."""

from typing import Any, Protocol, cast


class ConfigFormat(Protocol):
    """Edits of a text that keep everything else in it. A path consists of keys."""

    def read(self, text: str) -> dict[str, Any]:
        """Return the values. An empty text has none."""
        ...

    def put(self, text: str, path: tuple[str, ...], value: object) -> str:
        """Set a value, and add the tables that contain it."""
        ...

    def drop(self, text: str, path: tuple[str, ...]) -> str:
        """Remove a value that exists."""
        ...


class UnusableText(ValueError):
    """Error: a text is invalid, or cannot be changed as wanted."""


def as_table(value: object, name: str) -> dict[str, Any]:
    """Return a value that has to be a table.

    Raises:
        UnusableText: It is not one.
    """
    if not isinstance(value, dict):
        raise UnusableText(f"`{name}` is not a table")
    return cast("dict[str, Any]", value)
