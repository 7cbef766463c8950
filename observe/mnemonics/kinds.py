"""Kinds: the types a memory of a project may have, built-in and the project's own."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final, cast

import yaml
from msgspec import Struct

from ...core.errors import InvalidMemoryType
from ...core.memory_types import GOLDEN_RULE, HISTORIAN, known_types
from .front_matter import YamlInvalid
from .names import kebab

FALLBACK: Final = "context"
OWN: Final = "types.yaml"
"""The file in which a project describes types of its own, one `name: description` on each line."""

_PLAIN: Final = "A type of this project"


class Kind(Struct, frozen=True):
    """A type and what belongs under it."""

    name: str
    description: str


class Kinds:
    """The types that are known. A folder that people made beside the others is a type, too."""

    def __init__(self, own: Mapping[str, str], folders: Iterable[str]) -> None:
        built_in = {known.name: known.description for known in known_types(HISTORIAN)}
        named = {kebab(name): description or _PLAIN for name, description in own.items()}
        placed = {PurePosixPath(path).parts[0] for path in folders}
        made = {name: _PLAIN for name in sorted(placed) if name == kebab(name)}
        known = made | named | built_in
        self._known = {name: known[name] for name in (*built_in, *sorted(known.keys() - built_in)) if _fits(name)}

    def __contains__(self, name: str) -> bool:
        return name in self._known

    @property
    def all(self) -> tuple[Kind, ...]:
        """Every type, the built-in ones first."""
        return tuple(Kind(name, description) for name, description in self._known.items())

    def named(self, name: str) -> str:
        """The type that a name means, however it is spelled; raises `InvalidMemoryType`, which lists the types."""
        plain = kebab(name)
        if plain not in self._known:
            hint = f"Use one of: {', '.join(self._known)}. When uncertain: {FALLBACK}."
            raise InvalidMemoryType(name, hint=hint)
        return plain


def described(text: str) -> dict[str, str]:
    """The types that a project's own file describes; raises `YamlInvalid`."""
    try:
        told: object = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise YamlInvalid("broken YAML") from None
    if told is None:
        return {}
    if not isinstance(told, dict):
        raise YamlInvalid("write one `name: description` on each line")
    pairs = cast("dict[object, object]", told)
    if not all(isinstance(name, str) and _fits(kebab(name)) for name in pairs):
        raise YamlInvalid("the name of a type is made of letters, digits and dashes")
    return {str(name): str(description or "") for name, description in pairs.items()}


def _fits(name: str) -> bool:
    return name.replace("-", "").isalnum() and name != kebab(GOLDEN_RULE)
