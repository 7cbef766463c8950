"""Memories that people keep as Markdown files in their project, and the memory core's mirror of them."""

from .folder import Folder
from .front_matter import Mnemonic, YamlInvalid
from .kinds import FALLBACK, Kind, Kinds
from .mirror import Problem
from .mnemonics import Compounded, Deleted, Forgettable, Match, Mnemonics, Written
from .names import kebab, slug

__all__ = [
    "FALLBACK",
    "Compounded",
    "Deleted",
    "Folder",
    "Forgettable",
    "Kind",
    "Kinds",
    "Match",
    "Mnemonic",
    "Mnemonics",
    "Problem",
    "Written",
    "YamlInvalid",
    "kebab",
    "slug",
]
