"""Recognition and redaction of secrets and private spans."""

from .redactor import FoundSecret, Redacted, Redactor, kinds_of, placeholders_in, secrets_of
from .rules import VERSION

__all__ = ["VERSION", "FoundSecret", "Redacted", "Redactor", "kinds_of", "placeholders_in", "secrets_of"]
