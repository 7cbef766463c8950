"""Template environment. A user's template replaces the packaged template of the same name."""

import traceback
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from ..core.amount import dollars, grouped, many, size
from ..core.clock import show_day, show_minute
from ..core.errors import TemplateInvalid
from ..core.memory import state_label
from . import quote
from .dialogue import TurnText
from .labels import counted, has_transcript, label, other_sessions
from .status_legend import outcomes, step

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_LISTED: Final = 12
"""Maximum number of names in a list."""
_FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, OSError)
"""Errors of Python that can occur when a user's template is compiled or rendered."""


class Templates:
    """Templates by name, such as `search.md.j2`.

    A file in `user_folder` replaces the packaged template of the same name, and runs in a sandbox. Values are never
    interpreted as templates. Jinja is loaded by the first call, so that a server starts fast.
    """

    def __init__(self, user_folder: Path | None) -> None:
        self._folder = user_folder

    @cached_property
    def _trusted(self) -> "Environment":
        """Environment of the packaged templates."""
        from jinja2 import Environment, FunctionLoader

        return _with_filters(Environment(**_settings(FunctionLoader(_packaged))))  # noqa: S701 - markdown, not HTML

    @cached_property
    def _sandbox(self) -> "Environment":
        """Environment of the user's templates, and of the packaged templates that these do not replace."""
        from jinja2 import ChoiceLoader, FileSystemLoader, FunctionLoader
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        folders = [] if self._folder is None else [FileSystemLoader(self._folder)]
        return _with_filters(
            ImmutableSandboxedEnvironment(**_settings(ChoiceLoader([*folders, FunctionLoader(_packaged)])))
        )

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return the rendered template.

        Raises:
            TemplateInvalid: A user's template is invalid. The message contains its file and line.
        """
        from jinja2 import TemplateError

        # Search the folder on each call, so that users can add templates while a server runs.
        if self._folder is None or not any(self._folder.glob("*.md.j2")):
            return self._trusted.get_template(name).render(values)
        try:
            return self._sandbox.get_template(name).render(values)
        except (TemplateError, *_FAULTS) as error:
            raise TemplateInvalid(
                f"{_location(error, self._folder, name)}: {error}",
                hint="Correct this template, or delete it to use the packaged one.",
            ) from error

    def source(self, name: str) -> str:
        """Return the source text of the template with this name, or an empty text if no such template exists."""
        own = None if self._folder is None else self._folder / name
        return own.read_text("utf-8", "replace") if own and own.is_file() else _packaged(name) or ""


def _location(error: Exception, folder: Path, name: str) -> str:
    """Return the location of an error as `file, line n`, from the traceback entries that Jinja adds."""
    from jinja2 import TemplateSyntaxError

    if isinstance(error, TemplateSyntaxError):
        return f"{error.filename or folder / name}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == folder]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(folder / name)


@cache
def _packaged(name: str) -> str | None:
    source = files("palaver.templates") / name
    return source.read_text("utf-8") if source.is_file() else None


def _settings(loader: "BaseLoader") -> dict[str, Any]:
    from jinja2 import StrictUndefined

    # Autoescape is for HTML. The filters of `quote` make stored text safe as Markdown.
    return {
        "loader": loader,
        "autoescape": False,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "keep_trailing_newline": False,
    }


def _with_filters(environment: "Environment") -> "Environment":
    environment.filters.update(_FILTERS)
    return environment


def _excerpt(part: TurnText, *, is_code: bool = False) -> str:
    text = quote.block(part.text, is_code=is_code)
    return f"{text}\n[{part.hidden:,} more characters: line {part.line}]" if part.hidden else text


def _beside(part: TurnText) -> str:
    """Format a tool call or its output. A single line follows its label, several lines are placed below the label."""
    text = _excerpt(part, is_code=True)  # A code fence is only recognised at the beginning of a line.
    return "\n" + indent(text, "  ") if "\n" in text else f" {text}"


def _codes(names: Sequence[str], most: int = _LISTED) -> str:
    """Return the first `most` names as inline code, followed by the number of the other names."""
    shown = ", ".join(map(quote.code, names[:most]))
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def _files(paths: Sequence[str], verb: str, most: int = _LISTED) -> str:
    return f"{_codes(paths, most)} ({verb})" if paths else ""


_FILTERS: Mapping[str, Any] = {
    "also_in": other_sessions,
    "beside": _beside,
    "block": quote.block,
    "brief": quote.brief,
    "code": quote.code,
    "codes": _codes,
    "counted": counted,
    "day": show_day,
    "dollars": dollars,
    "excerpt": _excerpt,
    "files": _files,
    "grouped": grouped,
    "has_transcript": has_transcript,
    "inert": quote.inert,
    "label": label,
    "line": quote.line,
    "many": many,
    "marked": quote.marked,
    "around": quote.text_around,
    "minute": show_minute,
    "outcomes": outcomes,
    "size": size,
    "state_label": state_label,
    "step": step,
}
