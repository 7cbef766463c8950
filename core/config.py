"""Settings in the file `config.toml` of the home. Reading the settings does not create the file."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec import Struct, field

from .errors import ConfigInvalid
from .hooks import HookEvent
from .runtime import replacing

_NAME = re.compile(r"""\s*["']?(\w+)["']?\s*=""")
_TABLE = re.compile(r"\s*\[\s*prices\s*\]")
"""Start of the only table. What follows belongs to it."""


PROVIDERS: Final = ("anthropic", "openai", "command")
"""Allowed values of the setting `llm`."""


class Config(Struct, frozen=True):
    """Settings of the user. Each setting has a default."""

    model: str | None = None
    """Embedding model: a name known to sentence-transformers, or a folder. None selects the packaged model."""
    llm: str = "anthropic"
    """Provider of the language model for `palaver observe` and `palaver ask`: `anthropic` (Messages API), `openai`
    (chat completions of any server) or `command` (the user's own agent).
    """
    llm_model: str = "claude-haiku-5-5"
    """Name of the language model. Palaver calls it only if a budget is set or if its calls are free."""
    llm_url: str | None = None
    """Address of another server with the API of the provider. None selects the server of Anthropic or OpenAI."""
    llm_command: tuple[str, ...] = ()
    """Words of the command that answers a prompt on standard input, for the provider `command`."""
    llm_calls_day: int = 50
    """Maximum number of runs of `llm_command` in any 24 hours."""
    llm_price: tuple[float, float] | None = None
    """Prices in US dollars per million input and output tokens, for models without a listed price. Use 0 for a local
    model.
    """
    prices: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Prices of models in US dollars per million tokens: of input and output, or of input, output, cache reads, and
    cache writes for five minutes and for one hour.
    """
    budget_run: float | None = None
    """Budget in US dollars for one run of `palaver observe` or one question. Without any budget, no model is called."""
    budget_hour: float | None = None
    """Budget in US dollars for any 60 minutes."""
    budget_day: float | None = None
    """Budget in US dollars for any 24 hours."""
    budget_month: float | None = None
    """Budget in US dollars for a calendar month in UTC."""
    llm_judge: bool = False
    """True to let the language model judge contradictions that the rules cannot judge, within the budgets."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of folders to exclude: full paths (`~/private*`), or names at any depth (`secret-*`)."""
    document_roots: tuple[str, ...] = ()
    """Additional folders whose documents agents may index. Their working folder and the user's home are always
    allowed.
    """
    private_projects: tuple[str, ...] = ()
    """Names or folders of projects that are never sent to a language model or a team."""
    team_search: bool = True
    """False to keep the words of searches on this machine. By default, members of a team also search there."""
    strict_memories: bool = False
    """True to refuse memories of the toolset `rag` that look like an injection. By default they are stored and marked.
    """
    timezone: str | None = None
    """Time zone of days and shown times: `UTC` or an IANA name. None selects the time zone of the system."""
    hooks: tuple[str, ...] = (HookEvent.SESSION_START,)
    """Events at which hooks inject text into sessions, as `HookEvent` lists them.

    Write the list on one line. The hooks' shell script then skips disabled events without starting Palaver.
    """
    hooks_off: tuple[str, ...] = ()
    """Names or folders of projects into whose sessions no hook injects text."""

    @classmethod
    def read(cls, path: Path) -> "Config":
        """Load the settings from a file, or return the defaults if the file does not exist.

        Raises:
            ConfigInvalid: The file is invalid or unreadable.
        """
        try:
            text = path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except OSError as error:
            raise ConfigInvalid(f"{path}: {error.strerror}", hint="Check the permissions of the file.") from None
        except ValueError as error:
            raise _broken(path, error) from None
        import tomllib  # Import only if there is a file to parse.

        try:
            values = tomllib.loads(text)
        except ValueError as error:
            raise _broken(path, error) from None
        if unknown := sorted(values.keys() - _READERS.keys()):
            known = ", ".join(sorted(_READERS))
            raise ConfigInvalid(f"{path}: unknown setting {unknown[0]}", hint=f"Settings: {known}.")
        config = cls(**_checked(path, values))
        if config.llm == "command" and not config.llm_command:
            raise ConfigInvalid(f'{path}: llm = "command" needs llm_command', hint="Run `palaver observe --setup`.")
        return config

    @property
    def llm_name(self) -> str:
        """Name of the language model, or of the program in `llm_command` for the provider `command`."""
        return Path(self.llm_command[0]).name if self.llm == "command" else self.llm_model

    @property
    def may_spend(self) -> bool:
        """True if the calls of the language model are free, or if any budget is set."""
        budgets = (self.budget_run, self.budget_hour, self.budget_day, self.budget_month)
        return self.llm_price == (0.0, 0.0) or any(each is not None for each in budgets)

    @property
    def display_zone(self) -> tzinfo | None:
        """Time zone of days and shown times, for `clock.use_time_zone`. None is the time zone of the system."""
        return None if self.timezone is None else _zone(self.timezone)

    def write(self, path: Path) -> None:
        """Write the name of the embedding model to the file atomically, and keep all other lines.

        Raises:
            OSError: The file cannot be written.
        """
        write_settings(path, {"model": self.model})


Setting = str | int | float | Sequence[str] | Sequence[float] | None
"""Value of a setting. None means that the setting has its default value."""


def write_settings(path: Path, values: Mapping[str, Setting]) -> None:
    """Replace settings in the file atomically, or remove them if their value is None. Other lines are kept.

    Raises:
        OSError: The file cannot be written.
    """
    rows = path.read_text("utf-8").splitlines() if path.exists() else []
    end = next((index for index, row in enumerate(rows) if _TABLE.match(row)), len(rows))
    kept = list(_without_settings(rows[:end], values.keys()))
    kept += [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]
    kept += rows[end:]
    with replacing(path) as file:
        file.writelines(f"{line}\n".encode() for line in kept)


def _without_settings(rows: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Yield the lines of a file without the lines of these settings. A setting can span several lines."""
    import tomllib

    setting: list[str] = []
    for row in rows:
        match = _NAME.match(row)
        if not setting and (match is None or match[1] not in names):
            yield row
            continue
        setting.append(row)
        try:
            tomllib.loads("\n".join(setting))
        except ValueError:
            continue
        setting = []


def _toml(value: Setting) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)


def _broken(path: Path, error: ValueError) -> ConfigInvalid:
    return ConfigInvalid(f"{path}: {error}", hint="Correct the file, or delete it to get the defaults.")


def _checked(path: Path, values: Mapping[str, object]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in values.items():
        reader, wanted, example = _READERS[name]
        try:
            read[name] = reader(value)
        except ValueError:
            raise ConfigInvalid(f"{path}: {name} is not {wanted}", hint=f"Write {name} = {example}.") from None
    return read


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - the caller reports every invalid value
    return value


def _address(value: object) -> str:
    """Return the value if it is a valid HTTP address. Raises `ValueError` for any other value."""
    text = _text(value)
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError
    return text


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 <= value < 1e9:
        raise ValueError
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1_000_000:
        raise ValueError
    return value


def _provider(value: object) -> str:
    if value not in PROVIDERS:
        raise ValueError
    return str(value)


def _two_amounts(value: object) -> tuple[float, float]:
    tokens_in, tokens_out = _list(value)
    return _amount(tokens_in), _amount(tokens_out)


def _prices(value: object) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004
    prices = {model: tuple(map(_amount, _list(amounts))) for model, amounts in cast("dict[str, object]", value).items()}
    if any(len(amounts) not in {2, 5} for amounts in prices.values()):
        raise ValueError
    return prices


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _projects(value: object) -> tuple[str, ...]:
    """Return project names unchanged. In paths of folders, expand `~` and remove a trailing slash."""
    return tuple(_project(text) for text in _texts(value))


def _project(text: str) -> str:
    if "/" not in text and not text.startswith("~"):
        return text
    try:
        return str(Path(text).expanduser())
    except RuntimeError:  # The user in `~user` is unknown.
        raise ValueError from None


def _zone_name(value: object) -> str:
    name = _text(value)
    _zone(name)
    return name


def _zone(name: str) -> tzinfo:
    """Return the time zone with a name. Raises `ValueError` if it is unknown."""
    if name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # Import only if the setting is used.

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError(name) from None


def _events(value: object) -> tuple[str, ...]:
    return tuple(HookEvent(_text(each)) for each in _list(value))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004
    return cast("list[object]", value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004
    return value


_DOLLARS = (_amount, "an amount in dollars", "5.00")
_READERS: Final[Mapping[str, tuple[Callable[[object], object], str, str]]] = {
    "model": (_text, "a string", '"NAME"'),
    "llm": (_provider, "a provider", " or ".join(f'"{name}"' for name in PROVIDERS)),
    "llm_model": (_text, "a string", '"NAME"'),
    "llm_url": (_address, "an HTTP address", '"http://127.0.0.1:8080"'),
    "llm_command": (_texts, "a list of strings", '["claude", "-p"]'),
    "llm_calls_day": (_count, "a number of calls", "50"),
    "llm_price": (_two_amounts, "two amounts in dollars", "[1.00, 5.00]"),
    "prices": (_prices, "a table with 2 or 5 amounts in dollars for each model", '{ "NAME" = [1.00, 5.00] }'),
    "budget_run": _DOLLARS,
    "budget_hour": _DOLLARS,
    "budget_day": _DOLLARS,
    "budget_month": _DOLLARS,
    "llm_judge": (_flag, "true or false", "true"),
    "exclude": (_texts, "a list of strings", '["secret-*", "/a/folder"]'),
    "document_roots": (_texts, "a list of strings", '["/a/folder"]'),
    "private_projects": (_projects, "a list of strings", '["NAME", "/a/folder"]'),
    "strict_memories": (_flag, "true or false", "true"),
    "team_search": (_flag, "true or false", "false"),
    "timezone": (_zone_name, "UTC or an IANA name", '"Europe/London"'),
    "hooks": (_events, "a list of events of hooks", json.dumps([*HookEvent])),
    "hooks_off": (_projects, "a list of strings", '["NAME", "/a/folder"]'),
}
"""Parser, expected value and example of each setting."""


def _quoted(text: str) -> str:
    """Return a text as a TOML string in double quotes. Characters are escaped as in JSON, and DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
