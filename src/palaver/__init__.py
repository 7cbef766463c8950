"""Search and reuse your coding agents' conversations."""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout, import the sub-packages from the folders at the repository root, not through the links beside this
# file. Tracebacks then show the paths that editors open.
if Path(__file__).with_name("core").is_symlink():
    __path__.insert(0, str(Path(__file__).parents[2]))
