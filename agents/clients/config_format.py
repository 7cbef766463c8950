"""Protocol of a configuration format. The modules `json_text.py` and `toml_text.py` implement it."""

from typing import Any, Protocol, cast


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
