"""Memory files: Markdown with YAML front matter in a `.mnemonics` folder, with their types and names.

Paths are relative to the folder, and symbolic links are never followed.

An edit replaces single values and preserves all other characters of the front matter. Round-trip YAML libraries do
not preserve every character, so values are replaced at the positions that PyYAML reports.
"""

import errno
import json
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final, Self, cast

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.errors import InvalidMemoryType, MnemonicsUnusable
from ...core.home import MNEMONICS, home_of
from ...core.memory import GOLDEN_RULE, HISTORIAN_TYPES
from ...core.runtime import sync, sync_path
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
        descriptions = {name: _DESCRIPTION for name in tops if name == kebab(name)} | described | HISTORIAN_TYPES
        self._known = {
            name: descriptions[name]
            for name in (*HISTORIAN_TYPES, *sorted(descriptions.keys() - HISTORIAN_TYPES))
            if _is_valid(name)
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
    kept = "".join(
        character
        for character in lowered
        if unicodedata.category(character)[0] in "LMN" or _SEPARATORS.match(character)
    )
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


_SIZE_MAX: Final = 131_072
"""Maximum size in bytes of a file that is read, more than twice the maximum size of a memory."""
_DEPTH_MAX: Final = 8
_NO_HARD_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of file systems without hard links, as on memory cards."""
_LINK: Final = "it is a link, and links are not followed"


class FolderListing(Struct, frozen=True):
    """Content of a `.mnemonics` folder: its files, its subfolders, and the files that cannot be used.

    `files` maps each path to file attributes that change with every edit. `problems` maps each unusable path to the
    reason.
    """

    files: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    folders: list[str] = field(default_factory=list[str])
    problems: dict[str, str] = field(default_factory=dict[str, str])


class MnemonicsFolder:
    """`.mnemonics` folder of a project. Methods raise `MnemonicsUnusable` for a system error or a symbolic link."""

    def __init__(self, project: Path) -> None:
        self.project = project.resolve()
        self.path = self.project / MNEMONICS

    def absolute(self, path: str) -> str:
        """Return the absolute path, as the store records it."""
        return f"{self.path}/{path}"

    def scan(self) -> FolderListing:
        """Return all Markdown files that are not hidden, without reading them."""
        listing = FolderListing()
        if home_of(self.project) is not None:  # Palaver's own data is never a source.
            return listing
        try:
            _scan(self._checked(()), PurePosixPath(), listing)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._unusable("", error) from None
        return listing

    def read(self, path: str) -> bytes:
        """Return the bytes of a file. Raises `OSError`."""
        descriptor = os.open(self._file(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            return file.read(_SIZE_MAX)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file and its folder. Return False if the file already exists."""
        try:
            file = self._file(path, make=True)
            new = _write_beside(file, data, 0o666)
            try:
                os.link(new, file, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC))
                new.replace(file)
            finally:
                new.unlink(missing_ok=True)
            sync_path(file.parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unusable(path, error) from None
        return True

    def replace(self, path: str, data: bytes, digest: str) -> None:
        """Replace the content of a file atomically, if its current content has this digest."""
        try:
            file = self._file(path)
            new = _write_beside(file, data, stat.S_IMODE(file.lstat().st_mode))
            try:
                self._check_unedited(path, digest)
                new.replace(file)
            finally:
                new.unlink(missing_ok=True)
            sync_path(file.parent)
        except OSError as error:
            raise self._unusable(path, error) from None

    def remove(self, path: str, digest: str) -> None:
        """Delete a file, if its current content has this digest."""
        try:
            self._check_unedited(path, digest)
            file = self._file(path)
            file.unlink()
            sync_path(file.parent)
        except OSError as error:
            raise self._unusable(path, error) from None

    def _check_unedited(self, path: str, digest: str) -> None:
        if digest_of(self.read(path)) != digest:
            raise MnemonicsUnusable(
                self.absolute(path), "the file was edited in the meantime", hint="Read the file, then call again."
            )

    def _file(self, path: str, *, make: bool = False) -> Path:
        *parents, name = PurePosixPath(path).parts
        assert ".." not in (*parents, name)
        assert not path.startswith("/")
        return self._checked(tuple(parents), make=make) / name

    def _checked(self, parents: tuple[str, ...], *, make: bool = False) -> Path:
        """Return a folder below the project after checking that no part of its path is a link. Raises `OSError`."""
        folder = self.project
        for part in (MNEMONICS, *parents):
            folder /= part
            if make:
                with suppress(FileExistsError):
                    folder.mkdir()
            mode = folder.lstat().st_mode
            if not stat.S_ISDIR(mode):
                error = errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTDIR
                raise OSError(error, os.strerror(error))
        return folder

    def _unusable(self, path: str, error: OSError) -> MnemonicsUnusable:
        return MnemonicsUnusable(self.absolute(path).rstrip("/"), error_reason(error))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of the content of a file."""
    return sha256(data).hexdigest()


def error_reason(error: OSError) -> str:
    """Return the reason for an error. The path is omitted, because the callers add the path themselves."""
    return _LINK if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()


def _scan(folder: Path, below: PurePosixPath, listing: FolderListing) -> None:
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        path = (below / entry.name).as_posix()
        if entry.name.startswith("."):
            continue
        if entry.name != entry.name.encode(errors="replace").decode():
            listing.problems[path.encode(errors="replace").decode()] = "its name is not UTF-8"
        elif entry.is_symlink():
            listing.problems[path] = _LINK
        elif entry.is_dir(follow_symlinks=False):
            _scan_folder(folder / entry.name, below / entry.name, listing)
        elif entry.name.lower().endswith(".md"):
            _add_file(entry, path, listing)


def _scan_folder(folder: Path, below: PurePosixPath, listing: FolderListing) -> None:
    path = below.as_posix()
    if len(below.parts) > _DEPTH_MAX:
        listing.problems[path] = f"it is more than {_DEPTH_MAX} folders deep"
        return
    listing.folders.append(path)
    try:
        _scan(folder, below, listing)
    except OSError as error:
        listing.problems[path] = error_reason(error)


def _add_file(entry: os.DirEntry[str], path: str, listing: FolderListing) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        listing.problems[path] = "it is not a regular file"
    elif status.st_size >= _SIZE_MAX:
        listing.problems[path] = f"it is larger than {_SIZE_MAX:,} bytes"
    else:
        listing.files[path] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _write_beside(file: Path, data: bytes, mode: int) -> Path:
    """Write a hidden file durably into the folder of another file. Return its path."""
    new = file.with_name(f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, mode), "wb") as opened:
            opened.write(data)
            sync(opened)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new
