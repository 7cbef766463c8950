"""Settings: `config.toml` in the home. Reading it creates nothing."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from .errors import ConfigInvalid


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
        """Replace the file at once with these settings."""
        lines = [f'model = "{_escaped(self.model)}"\n'] if self.model is not None else []
        beside = path.with_name(f"{path.name}.new")
        beside.write_text("".join(lines), "utf-8")
        beside.replace(path)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
