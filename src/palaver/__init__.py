"""Search and reuse your coding agents' conversations."""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout, import the sub-packages from the folders at the repository root instead of the links beside this file,
# so that tracebacks show the path that editors open.
if Path(__file__).with_name("core").is_symlink():
    __path__.insert(0, str(Path(__file__).parents[2]))
