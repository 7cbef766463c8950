"""Filling: templates with values put in. Packaged ones, each replaceable by the user's own of the same name."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..core.amount import grouped, many, size
from ..core.clock import show_day, show_minute
from ..core.errors import TemplateInvalid
from ..core.memory import spoken
from ..core.money import dollars
from . import quote
from .called import called, counted
from .elsewhere import also_in

if TYPE_CHECKING:
    from .dialogue import Excerpt

_SHOWN = 12
_FAULTS = (TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, OSError)
"""What a template of the user can raise while it is compiled or rendered."""


class Filling:
    """Fills templates by name, such as `search.md.j2`.

    A file in `user_folder` replaces the packaged template of the same name. It runs in a sandbox, and when it is
    broken `TemplateInvalid` names the file and the line. Values are only ever values, never templates.
    """

    def __init__(self, user_folder: Path | None) -> None:
        self._packaged = _prepared(Environment(**_settings(FunctionLoader(_packaged))))  # noqa: S701 - markdown, not HTML
        self._override = None if user_folder is None else _Override(user_folder)

    def fill(self, name: str, values: dict[str, object]) -> str:
        """The template with these values; raises `TemplateInvalid` where the user's own is broken."""
        if self._override is None or not self._override.used():
            return self._packaged.get_template(name).render(values)
        return self._override.render(name, values)

    def source(self, name: str) -> str:
        """The template of this name as it would be used now."""
        own = self._override and self._override.source(name)
        return own or _packaged(name) or ""


class _Override:
    """The user's templates, which may include packaged ones and be included by them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        loader = ChoiceLoader([FileSystemLoader(folder), FunctionLoader(_packaged)])
        self._environment = _prepared(ImmutableSandboxedEnvironment(**_settings(loader)))

    def used(self) -> bool:
        """Looked up each time, so that a template can be written while a server runs."""
        return any(self._folder.glob("*.md.j2"))

    def source(self, name: str) -> str:
        """The person's own template, empty where there is none."""
        path = self._folder / name
        return path.read_text("utf-8", "replace") if path.is_file() else ""

    def render(self, name: str, values: dict[str, object]) -> str:
        try:
            return self._environment.get_template(name).render(values)
        except _FAULTS as error:
            raise TemplateInvalid(
                f"{self._place(error, name)}: {error}",
                hint="Correct this template, or delete it to get the packaged one back.",
            ) from error

    def _place(self, error: Exception, name: str) -> str:
        """`file, line n` of what failed; Jinja puts its templates into the traceback."""
        if isinstance(error, TemplateSyntaxError):
            return f"{error.filename or self._folder / name}, line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if Path(frame.filename).parent == self._folder]
        return f"{ours[-1].filename}, line {ours[-1].lineno}" if ours else str(self._folder / name)


@cache
def _packaged(name: str) -> str | None:
    source = files("palaver.templates") / name
    return source.read_text("utf-8") if source.is_file() else None


def _settings(loader: BaseLoader) -> dict[str, Any]:
    # Autoescape is for HTML; markdown is made safe by the filters of `quote`.
    return {
        "loader": loader,
        "autoescape": False,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "keep_trailing_newline": False,
    }


def _prepared(environment: Environment) -> Environment:
    for name, function in _FILTERS.items():
        environment.filters[name] = function
    return environment


def _excerpt(part: Excerpt, *, is_code: bool = False) -> str:
    text = quote.block(part.text, is_code=is_code)
    return f"{text}\n[{part.hidden:,} more characters: line {part.line}]" if part.hidden else text


def _beside(part: Excerpt) -> str:
    """Return a tool call or its output to follow a label: beside it, or below it if there are several lines, since a
    fence must begin its line.
    """
    text = _excerpt(part, is_code=True)
    return "\n" + indent(text, "  ") if "\n" in text else f" {text}"


def _codes(names: Sequence[str], room: int = _SHOWN) -> str:
    """Names, the first so many of them, and how many more there are."""
    shown = ", ".join(map(quote.code, names[:room]))
    return f"{shown} and {len(names) - room:,} more" if len(names) > room else shown


def _files(paths: Sequence[str], verb: str, room: int = _SHOWN) -> str:
    return f"{_codes(paths, room)} ({verb})" if paths else ""


_FILTERS: Mapping[str, Any] = {
    "also_in": also_in,
    "beside": _beside,
    "block": quote.block,
    "brief": quote.brief,
    "called": called,
    "code": quote.code,
    "codes": _codes,
    "counted": counted,
    "day": show_day,
    "dollars": dollars,
    "excerpt": _excerpt,
    "files": _files,
    "grouped": grouped,
    "line": quote.line,
    "many": many,
    "marked": quote.marked,
    "minute": show_minute,
    "size": size,
    "spoken": spoken,
}
