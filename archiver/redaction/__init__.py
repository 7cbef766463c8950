"""Recognition and redaction of secrets and private spans."""

from .redactor import FoundSecret, MemoryRedactor, Redacted, Redactor, kinds_of, placeholders_in, secrets_of
from .rules import VERSION

__all__ = [
    "VERSION",
    "FoundSecret",
    "MemoryRedactor",
    "Redacted",
    "Redactor",
    "kinds_of",
    "placeholders_in",
    "secrets_of",
]
