"""Types of memory files, and conversion of titles and types to names of files and folders."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import PurePosixPath
from typing import Final, cast

import yaml

from ...core.errors import InvalidMemoryType
from ...core.memory_types import GOLDEN_RULE, HISTORIAN_TYPES
from .front_matter import YamlInvalid

FALLBACK: Final = "context"
"""Type of a memory if no other type fits."""
TYPES_FILE: Final = "types.yaml"
"""File in which a project defines its own types, one `name: description` per line."""
_DESCRIPTION: Final = "A type of this project"
"""Description of a type for which the project gives none."""
_STEM_BYTES: Final = 200
"""Maximum bytes of the stem of a file name. File systems allow 255 bytes, including a number and the suffix."""
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[\s_/\\-]+")


class MemoryFileTypes:
    """Types of a project: built-in types, types in `types.yaml`, and folders that users created."""

    def __init__(self, own: Mapping[str, str], folders: Iterable[str]) -> None:
        described = {kebab(name): description or _DESCRIPTION for name, description in own.items()}
        tops = {PurePosixPath(path).parts[0] for path in folders}
        known = {name: _DESCRIPTION for name in tops if name == kebab(name)} | described | HISTORIAN_TYPES
        self._known = {
            name: known[name] for name in (*HISTORIAN_TYPES, *sorted(known.keys() - HISTORIAN_TYPES)) if _is_valid(name)
        }

    def __contains__(self, name: str) -> bool:
        return name in self._known

    @property
    def descriptions(self) -> Mapping[str, str]:
        """Descriptions of all types by name, the built-in types first."""
        return self._known

    def find(self, name: str) -> str:
        """Return the type with this name in any spelling. Raises `InvalidMemoryType`, which lists the types."""
        plain = kebab(name)
        if plain not in self._known:
            hint = f"Use one of: {', '.join(self._known)}. When uncertain: {FALLBACK}."
            raise InvalidMemoryType(name, hint=hint)
        return plain


def parse_types(text: str) -> dict[str, str]:
    """Return the types of a `types.yaml` with their descriptions. Raises `YamlInvalid`."""
    try:
        parsed: object = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise YamlInvalid("invalid YAML") from None
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise YamlInvalid("it needs one `name: description` on each line")
    pairs = cast("dict[object, object]", parsed)
    if not all(isinstance(name, str) and _is_valid(kebab(name)) for name in pairs):
        raise YamlInvalid("a type name may contain only letters, digits and dashes")
    return {str(name): str(description or "") for name, description in pairs.items()}


def slug(title: str) -> str:
    """Return a title as the stem of a file name: lower case, with dashes for spaces.

    It keeps letters and digits of every script, and is `untitled` if none remain.
    """
    lowered = unicodedata.normalize("NFC", title).lower()
    kept = "".join(each for each in lowered if unicodedata.category(each)[0] in "LMN" or _SEPARATORS.match(each))
    stem = unicodedata.normalize("NFC", _SEPARATORS.sub("-", kept)).strip("-")
    return stem.encode()[:_STEM_BYTES].decode(errors="ignore").strip("-") or "untitled"


def file_names(stem: str) -> Iterator[str]:
    """Yield the possible file names of a stem: first without a number, then numbered from 2."""
    yield f"{stem}.md"
    yield from (f"{stem}-{number}.md" for number in count(2))


def title_of(stem: str) -> str:
    """Return the title of a file, derived from its name."""
    return _SEPARATORS.sub(" ", stem).strip() or stem


def kebab(name: str) -> str:
    """Return a type in kebab-case. `architecturalDecision` and `Architectural decision` become the same type."""
    return _SEPARATORS.sub("-", _CAMEL_CASE.sub("-", name.strip())).strip("-").lower()


def _is_valid(name: str) -> bool:
    return name.replace("-", "").isalnum() and name != kebab(GOLDEN_RULE)
