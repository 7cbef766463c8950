"""Documents: what do files say that no agent wrote? Opened without being led out of a folder, cut into chunks."""

from .formats import SUFFIXES, DocumentFormat, format_of
from .intake import Intake
from .roots import Roots, Walk

__all__ = ["SUFFIXES", "DocumentFormat", "Intake", "Roots", "Walk", "format_of"]
