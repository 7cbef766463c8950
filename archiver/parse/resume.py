"""Resume points: where reading a file goes on."""

from msgspec import Struct, field


class Resume(Struct):
    """Where reading goes on after an append: the start of the last exchange, which may still grow."""

    line: int = 1
    byte: int = 0
    ordinal: int = 0
    coverage: dict[str, int] = field(default_factory=dict[str, int])
    """Lines before `line`, by outcome."""
    entitles: bool = False
    """Whether that exchange gave its session the title."""
