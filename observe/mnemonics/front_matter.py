"""Front matter: the YAML that a Markdown file begins with. What people wrote there stays as they wrote it."""

import json
import re
from typing import Self

import yaml
from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import parse_instant
from ...core.conversation import Milliseconds
from ...core.text import readable

_FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_OPENED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?=[\w\"']+[ \t]*:)")
_FRONT_MAX = 16_384
"""Characters of YAML that are read: the parser takes time for each of them."""
_BRACKETS_MAX = 128
"""Opening brackets that are read: the parser's time grows with the square of how deep they are nested."""


class YamlInvalid(Exception):
    """YAML that cannot be read or changed; the text says what is wrong with it."""


class Mnemonic(Struct, frozen=True):
    """A memory as a file: the front matter as it stands there, what it says, and the body without blank ends.

    `declared` is the type it names, empty where it names none. Raises `YamlInvalid` where it is made.
    """

    front: str
    body: str
    declared: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""

    @classmethod
    def new(cls, body: str, kind: str, tags: tuple[str, ...], at: str) -> Self:
        """A memory made at an instant."""
        listed = "".join(f"\n  - {_written(tag)}" for tag in tags) or " []"
        front = f"memory_type: {_written(kind)}\ntags:{listed}\ncreated: {at}\nmodified: {at}\n"
        return cls(front, body.strip(), kind, tags, at)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The memory that a file holds; without front matter all of it is body."""
        fenced = _FENCED.match(text)
        if fenced is None:
            if _OPENED.match(text):
                raise YamlInvalid("the front matter is not closed by a line of ---")
            return cls("", text.lstrip("\ufeff").strip())
        front = fenced["front"]
        known = _mapping(front)
        return cls(
            front,
            text[fenced.end() :].strip(),
            _word(known, "memory_type"),
            _words(known.get("tags")),
            _word(known, "created"),
        )

    @property
    def text(self) -> str:
        """The whole file."""
        return f"---\n{self.front}---\n\n{self.body}\n"

    @property
    def created_at(self) -> Milliseconds | None:
        """When it was made, where it says so."""
        return parse_instant(self.created)

    def changed(self, body: str, at: str, kind: str | None = None) -> "Mnemonic":
        """The memory with another body and, where one is given, another type; the rest of the file as it was."""
        front = _with(self.front, "modified", at)
        if kind is not None:
            front = _with(front, "memory_type", kind)
        told = Mnemonic.parse(replace(self, front=front, body=body.strip()).text)
        if (told.declared, told.tags) != (kind or self.declared, self.tags):
            raise YamlInvalid("the front matter is written in a way that cannot be changed")
        return told


def _mapping(front: str) -> dict[str, yaml.Node]:
    """The values by their keys."""
    if len(front) > _FRONT_MAX:
        raise YamlInvalid(f"the front matter has over {_FRONT_MAX:,} characters")
    if front.count("[") + front.count("{") > _BRACKETS_MAX:
        raise YamlInvalid(f"the front matter has over {_BRACKETS_MAX} brackets")
    try:
        root = yaml.compose(front, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise YamlInvalid(f"broken YAML{line}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlInvalid(f"broken YAML: {type(error).__name__}") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise YamlInvalid("the front matter is no list of keys and values")
    pairs = [(key.value, value) for key, value in root.value if isinstance(key, yaml.ScalarNode)]
    if len({key for key, _ in pairs}) < len(pairs):
        raise YamlInvalid("a key stands twice in the front matter")
    return dict(pairs)


def _word(known: dict[str, yaml.Node], key: str) -> str:
    value = known.get(key)
    if value is None:
        return ""
    if not isinstance(value, yaml.ScalarNode):
        raise YamlInvalid(f"{key} is no single word")
    return str(value.value).strip()


def _words(value: yaml.Node | None) -> tuple[str, ...]:
    """Tags, as a list or with commas between them."""
    if isinstance(value, yaml.SequenceNode):
        items = [item.value for item in value.value if isinstance(item, yaml.ScalarNode)]
        if len(items) < len(value.value):
            raise YamlInvalid("tags is no list of words")
    elif isinstance(value, yaml.ScalarNode):
        items = value.value.split(",")
    else:
        items = []
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip()))


def _with(front: str, key: str, value: str) -> str:
    """The front matter with this value, every other character of it untouched."""
    node = _mapping(front).get(key)
    if node is None:
        ended = front if not front or front.endswith("\n") else f"{front}\n"
        return f"{ended}{key}: {value}\n"
    start, end = node.start_mark.index, node.end_mark.index
    apart = "" if front[:start].endswith((" ", "\t")) else " "
    return f"{front[:start]}{apart}{value}{front[end:]}"


def _written(word: str) -> str:
    """A word as YAML, bare where it is read back as the same word."""
    try:
        plain: object = yaml.safe_load(f"- {word}")
    except (yaml.YAMLError, ValueError):
        plain = None
    return word if plain == [word] else json.dumps(readable(word), ensure_ascii=False)
