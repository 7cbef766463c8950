"""Secrecy: what a memory says, without secrets, before it is compared with anything or stored."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from ...archiver.redaction import Redactor
from ...core.errors import InvalidNamespace
from ...core.memory import Memory
from ...core.text import readable
from .changes import Revision

_TEXTS = ("content", "title", "project", "level", "source", "session_id")
"""Fields with text of users and agents. A namespace with a secret is refused, and a path is a file's."""

_Json: TypeAlias = str | Mapping[Any, Any] | tuple[Any, ...] | list[Any] | float | None


class Secrecy:
    """Puts a placeholder in the place of each secret; doing it again changes nothing."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def memory(self, memory: Memory) -> Memory:
        """Return the memory as it may be stored; raises `InvalidNamespace` where its namespace holds a secret."""
        return replace(memory, **self._told(memory))

    def revision(self, revision: Revision) -> Revision:
        """The edit as it may be stored."""
        return replace(revision, **self._told(revision))

    def text(self, text: str) -> str:
        """A reason, a context, a title; bytes of a command line that are no text become U+FFFD."""
        return self._redactor.redact(readable(text)).text

    def _told(self, said: Memory | Revision) -> dict[str, Any]:
        if said.namespace and (clean := self.text(said.namespace)) != said.namespace:
            raise InvalidNamespace(clean)
        given = {name: getattr(said, name, None) for name in (*_TEXTS, "tags", "metadata")}
        return {name: self._value(value) for name, value in given.items() if value is not None}

    def _value(self, value: _Json) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self._value(name): self._named(name, each) for name, each in value.items()}
            case tuple():
                return tuple(map(self._value, value))
            case list():
                return list(map(self._value, value))
            case _:
                return value

    def _named(self, name: object, value: Any) -> Any:
        """A value under its name, which may be all that tells that it is a password."""
        told = self._value(value)
        if told != value or not isinstance(value, str) or not isinstance(name, str):
            return told
        found = self._redactor.redact(f'{name} = "{value}"').findings
        return str(found[0]) if found and not self._redactor.redact(name).findings else told
