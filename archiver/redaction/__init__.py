"""Recognition and redaction of secrets and private spans."""

from .redactor import FoundSecret, Redacted, Redactor, placeholders_in
from .rules import VERSION

__all__ = ["VERSION", "FoundSecret", "Redacted", "Redactor", "placeholders_in"]
