"""Context of the Theo tools: memories, documents and code traces, each opened on first use."""

from functools import cached_property

from ...observe.traces import CodeTraces
from ..memory_context import MemoryContext
from ..toolset import ServerConfig, open_component


class TheoContext(MemoryContext):
    """Memories, documents and code traces of one Palaver home.

    `backfilled_to` maps a namespace to the last memory of its latest backfill. The next backfill continues there.
    """

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.backfilled_to: dict[str | None, int] = {}

    @cached_property
    def traces(self) -> CodeTraces:
        """Code traces. Raises `ServerNotReady`."""
        return open_component(lambda: CodeTraces.open(self.config.home))
