"""Toolsets that are served together, by name: what one connection offers."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from msgspec import Struct

from ..core.errors import InvalidInput
from .toolset import Tool, Toolset

TOOLSETS: Final = {"conversation": ".conversation", "theo": ".theo", "historian": ".historian"}
"""Each toolset, and the module here that has it as a constant. A module is loaded when its toolset is asked for."""


class Surface(Struct, frozen=True):
    """The tools of one or more toolsets under the names they are listed by, with the toolset each belongs to."""

    instructions: str
    tools: Mapping[str, tuple[Toolset, Tool]]

    @classmethod
    def of(cls, toolsets: Sequence[Toolset], *, prefix: bool = False) -> "Surface":
        """These toolsets as one surface; with `prefix` each name begins with its toolset's, as in `theo_search`.

        Raises `InvalidInput` where two of them define the same name.
        """
        tools: dict[str, tuple[Toolset, Tool]] = {}
        for toolset in toolsets:
            for tool in toolset.tools:
                name = f"{toolset.name}_{tool.name}" if prefix else tool.name
                if name in tools:
                    raise InvalidInput(
                        f"{tools[name][0].name} and {toolset.name} both define the tool {name}",
                        hint="Add --prefix, so that each name begins with its toolset's, or serve them apart.",
                    )
                tools[name] = toolset, tool
        return cls("\n\n".join(toolset.instructions for toolset in toolsets), tools)


def toolset_of(name: str) -> Toolset:
    """The toolset of this name; raises `InvalidInput`."""
    if name not in TOOLSETS:
        raise InvalidInput(f"No toolset of that name: {name}", hint=f"Use one or more of: {', '.join(TOOLSETS)}.")
    found = getattr(import_module(TOOLSETS[name], __package__), name.upper())
    assert isinstance(found, Toolset)
    return found
