"""Search and reuse your coding agents' conversations."""

import os

# Commands that another process answers load nothing else, and `pathlib` and `typing` take 20 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import AsyncClient as AsyncClient
    from .dispatching import dispatch as dispatch

__version__ = "0.1.0"
__all__ = ["AsyncClient", "__version__", "dispatch"]

# In a checkout, import the sub-packages from the folders at the repository root, not through the links beside this
# file. Tracebacks then show the paths that editors open.
_folder = os.path.dirname(__file__)  # noqa: PTH120
if os.path.islink(f"{_folder}/core"):  # noqa: PTH114
    __path__.insert(0, os.path.abspath(f"{_folder}/../.."))  # noqa: PTH100


def __getattr__(name: str) -> object:
    """Import the client and `dispatch` on first use, so that `import palaver` stays fast."""
    if name == "AsyncClient":
        from .client import AsyncClient

        return AsyncClient
    if name == "dispatch":
        from .dispatching import dispatch

        return dispatch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
