"""Settings: `config.toml` in the home. Reading it creates nothing."""

import json
import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from .errors import ConfigInvalid

_MODEL = re.compile(r"""\s*(?:model|"model"|'model')\s*=""")


@dataclass(frozen=True, slots=True)
class Config:
    """What a person can set. Every setting has a default that needs no file."""

    model: str | None = None
    """The embedding model: a name sentence-transformers knows, or a folder. None for the packaged one."""

    @classmethod
    def read(cls, path: Path) -> "Config":
        """The settings in a file, or the defaults where there is none; raises `ConfigInvalid`."""
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except OSError as error:
            raise ConfigInvalid(f"{path}: {error.strerror}", hint="Check the rights of the file.") from None
        except ValueError as error:
            raise ConfigInvalid(
                f"{path}: {error}", hint="Correct the file, or delete it to get the defaults."
            ) from None
        known = {setting.name for setting in fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise ConfigInvalid(f"{path}: unknown setting {unknown[0]}", hint=f"Settings: {', '.join(sorted(known))}.")
        if not isinstance(values.get("model", ""), str):
            raise ConfigInvalid(f"{path}: model is not text", hint='Write model = "NAME".')
        return cls(**values)

    def write(self, path: Path) -> None:
        """Replace the file at once with these settings; comments and blank lines stay. Raises `OSError`."""
        told = path.read_text("utf-8").splitlines() if path.exists() else []
        kept = [line for line in told if not _MODEL.match(line)]
        if self.model is not None:
            kept.append(f"model = {_quoted(self.model)}")
        beside = path.with_name(f"{path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in kept)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def _quoted(text: str) -> str:
    """The text as a basic string of TOML, whose escapes are those of JSON and which refuses a bare DEL as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
