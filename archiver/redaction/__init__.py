"""Which parts of a text are secrets, and what stands in their place?"""

from .redactor import Finding, Redacted, Redactor, placed
from .rules import VERSION

__all__ = ["VERSION", "Finding", "Redacted", "Redactor", "placed"]
