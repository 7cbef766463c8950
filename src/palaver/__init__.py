"""Search and reuse your coding agents' conversations."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import AsyncClient as AsyncClient
    from .dispatching import dispatch as dispatch

__version__ = "0.1.0"
__all__ = ["AsyncClient", "__version__", "dispatch"]

# In a checkout, import the sub-packages from the folders at the repository root, not through the links beside this
# file. Tracebacks then show the paths that editors open.
if Path(__file__).with_name("core").is_symlink():
    __path__.insert(0, str(Path(__file__).parents[2]))


def __getattr__(name: str) -> object:
    """Import the client and `dispatch` on first use, so that `import palaver` stays fast."""
    if name == "AsyncClient":
        from .client import AsyncClient

        return AsyncClient
    if name == "dispatch":
        from .dispatching import dispatch

        return dispatch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
