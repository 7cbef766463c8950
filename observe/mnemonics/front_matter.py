"""Memory files: Markdown with YAML front matter.

An edit replaces single values and preserves all other characters of the front matter. Round-trip YAML libraries do not
preserve every character, so values are replaced at the positions that PyYAML reports.
"""

import json
import re
from typing import Self

import yaml
from msgspec import Struct
from msgspec.structs import replace

from ...core.text import readable

_FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_OPENED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?=[\w\"']+[ \t]*:)")
_FRONT_MAX = 16_384
"""Maximum characters of front matter, because parsing time grows with its length."""
_BRACKETS_MAX = 128
"""Maximum number of opening brackets, because parsing time grows with the square of their nesting."""


class YamlInvalid(Exception):
    """Error: the front matter cannot be parsed or edited. The text states the reason."""


class MemoryFile(Struct, frozen=True):
    """Memory as a file: the front matter as written, and the body without blank lines around it.

    `declared` and `created` are the type and the creation time in the front matter, or empty.
    """

    front: str
    body: str
    declared: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""

    @classmethod
    def new(cls, body: str, declared: str, tags: tuple[str, ...], at: str) -> Self:
        """Create a memory file with a creation time."""
        listed = "".join(f"\n  - {_yaml_word(tag)}" for tag in tags) or " []"
        front = f"memory_type: {_yaml_word(declared)}\ntags:{listed}\ncreated: {at}\nmodified: {at}\n"
        return cls(front, body.strip(), declared, tags, at)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a file. Raises `YamlInvalid`. Without front matter, the whole text is the body."""
        fenced = _FENCED.match(text)
        if fenced is None:
            if _OPENED.match(text):
                raise YamlInvalid("the front matter does not end with a line `---`")
            return cls("", text.lstrip("\ufeff").strip())
        values = _values(fenced["front"])
        body = text[fenced.end() :].strip()
        return cls(
            fenced["front"], body, _scalar(values, "memory_type"), _tags(values.get("tags")), _scalar(values, "created")
        )

    @property
    def text(self) -> str:
        """Whole content of the file."""
        return f"---\n{self.front}---\n\n{self.body}\n"

    def edited(self, body: str, at: str, declared: str | None = None) -> "MemoryFile":
        """Return the file with another body and, optionally, another type. Raises `YamlInvalid`."""
        front = _with_value(self.front, "modified", at)
        if declared is not None:
            front = _with_value(front, "memory_type", declared)
        edited = MemoryFile.parse(replace(self, front=front, body=body.strip()).text)
        if (edited.declared, edited.tags) != (declared or self.declared, self.tags):
            raise YamlInvalid("the front matter uses YAML that cannot be edited automatically")
        return edited


def _values(front: str) -> dict[str, yaml.Node]:
    """Return the YAML node of each value, by key."""
    if len(front) > _FRONT_MAX:
        raise YamlInvalid(f"the front matter has more than {_FRONT_MAX:,} characters")
    if front.count("[") + front.count("{") > _BRACKETS_MAX:
        raise YamlInvalid(f"the front matter has more than {_BRACKETS_MAX} brackets")
    try:
        root = yaml.compose(front, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise YamlInvalid(f"invalid YAML{line}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlInvalid(f"invalid YAML: {type(error).__name__}") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise YamlInvalid("the front matter is not a mapping of keys to values")
    pairs = [(key.value, value) for key, value in root.value if isinstance(key, yaml.ScalarNode)]
    if len({key for key, _ in pairs}) < len(pairs):
        raise YamlInvalid("the front matter has a duplicate key")
    return dict(pairs)


def _scalar(values: dict[str, yaml.Node], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, yaml.ScalarNode):
        raise YamlInvalid(f"{key} is not a single value")
    return str(value.value).strip()


def _tags(value: yaml.Node | None) -> tuple[str, ...]:
    """Return tags that are written as a list or separated by commas."""
    if isinstance(value, yaml.SequenceNode):
        items = [item.value for item in value.value if isinstance(item, yaml.ScalarNode)]
        if len(items) < len(value.value):
            raise YamlInvalid("tags is not a list of words")
    elif isinstance(value, yaml.ScalarNode):
        items = value.value.split(",")
    else:
        items = []
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip()))


def _with_value(front: str, key: str, value: str) -> str:
    """Return the front matter with the new value and all other characters unchanged."""
    node = _values(front).get(key)
    if node is None:
        ended = front if not front or front.endswith("\n") else f"{front}\n"
        return f"{ended}{key}: {value}\n"
    start, end = node.start_mark.index, node.end_mark.index
    space = "" if front[:start].endswith((" ", "\t")) else " "
    return f"{front[:start]}{space}{value}{front[end:]}"


def _yaml_word(word: str) -> str:
    """Return a word as YAML, without quotes if YAML parses it as the same word."""
    try:
        parsed: object = yaml.safe_load(f"- {word}")
    except (yaml.YAMLError, ValueError):
        parsed = None
    return word if parsed == [word] else json.dumps(readable(word), ensure_ascii=False)
