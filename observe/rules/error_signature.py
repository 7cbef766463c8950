"""Signature of an error: the properties by which two reports describe the same kind of error."""

import re
from typing import Final, Self

from msgspec import Struct

from .command_repairs import error_line

_CLASS: Final = re.compile(r"(?<![\w.])(?:([A-Za-z_]\w*(?:\.\w+)*)(?:\.|::))?([A-Z]\w*(?:Error|Exception|Warning))\b")
"""Pattern for the name of an error class with its package, such as `sqlite3.OperationalError`."""
_CODE: Final = re.compile(r"\b(?!ERRORS?\b|EXIT\b)(?:E[A-Z]{3,}|ERR_[A-Z_]+|[A-Z]{1,4}\d{3,5}|SIG[A-Z]{3,})\b")
"""Pattern for an error code, such as `ENOENT`, `TS2345`, `E0382` or `SIGSEGV`."""
_MODULE: Final = re.compile(r"(?:module|package|crate|gem|library|from|resolve)\b[^'\"`\n]{0,20}['\"`](@?[\w-]+)")
"""Pattern for the name of a library in a message, such as `No module named 'numpy.linalg'`."""
_FRAME: Final = re.compile(r"(?:node_modules|site-packages|dist-packages|gems|vendor)[/\\](@?[\w-]+)")
"""Pattern for the name of a library in the path of a stack frame."""
_VALUES: Final = re.compile(
    r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|“[^”\n]*”|\([^()\n]*\)   # quotations and additions in brackets
      | \S*[/\\]\S* | \b\w+\.\w+\b | \b0x[0-9a-f]+\b | \b[\w.-]*\d[\w.:-]*\b   # paths, files and numbers
      | [^\w\s]+""",
    re.VERBOSE | re.IGNORECASE,
)
"""Pattern for the parts of a message that differ between equal errors."""
_WORDS_MIN: Final = 2
"""Minimum number of words of a message that identifies an error."""


class ErrorSignature(Struct, frozen=True):
    """Error classes and codes of an error, the libraries that it names, and its message without values."""

    types: frozenset[str]
    libraries: frozenset[str]
    message: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the signature of an error, given by its message or the output of a command."""
        classes = _CLASS.findall(text)
        packages = {package.split(".")[0].lower() for package, _ in classes if package}
        named = {name.lower() for pattern in (_MODULE, _FRAME) for name in pattern.findall(text)}
        line = _CLASS.sub(" ", error_line(text))
        return cls(
            frozenset([*(name for _, name in classes), *_CODE.findall(text)]),
            frozenset(packages | named),
            tuple(_VALUES.sub(" ", line).lower().split()),
        )

    def has_message_of(self, other: Self) -> bool:
        """Return whether both errors have the same message, apart from values such as names and paths."""
        return self._shares_library(other) and len(self.message) >= _WORDS_MIN and self.message == other.message

    def has_type_of(self, other: Self) -> bool:
        """Return whether both errors have an error class or an error code in common."""
        return self._shares_library(other) and not self.types.isdisjoint(other.types)

    def _shares_library(self, other: Self) -> bool:
        """Return False if the two errors name different libraries."""
        return not self.libraries or not other.libraries or not self.libraries.isdisjoint(other.libraries)
