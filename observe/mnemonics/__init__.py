"""Memories as Markdown files in the `.mnemonics` folder of a project, synchronized with the store."""

from .file_sync import LEASE, PATIENCE
from .forgotten_files import ForgottenFiles, forget_with_files
from .memory_file_types import FALLBACK
from .mnemonics_folder import MnemonicsFolder, digest_of
from .project_memories import ForgetPreview, ForgetResult, ProjectMemories

__all__ = [
    "FALLBACK",
    "LEASE",
    "PATIENCE",
    "ForgetPreview",
    "ForgetResult",
    "ForgottenFiles",
    "MnemonicsFolder",
    "ProjectMemories",
    "digest_of",
    "forget_with_files",
]
