"""Memories as Markdown files in the `.mnemonics` folder of a project, synchronized with the store."""

from .file_sync import LEASE, PATIENCE, MemoryFileProblem
from .front_matter import MemoryFile, YamlInvalid
from .memory_file_types import FALLBACK, MemoryFileType, MemoryFileTypes, kebab, slug
from .mnemonics_folder import MnemonicsFolder, digest_of
from .project_memories import ForgetPreview, ForgetResult, ProjectMemories, RememberedFile, UpdatedFile

__all__ = [
    "FALLBACK",
    "LEASE",
    "PATIENCE",
    "ForgetPreview",
    "ForgetResult",
    "MemoryFile",
    "MemoryFileProblem",
    "MemoryFileType",
    "MemoryFileTypes",
    "MnemonicsFolder",
    "ProjectMemories",
    "RememberedFile",
    "UpdatedFile",
    "YamlInvalid",
    "digest_of",
    "kebab",
    "slug",
]
