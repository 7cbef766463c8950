"""Memories as Markdown files in the `.mnemonics` folder of a project, synchronized with the store."""

from .file_sync import LEASE, PATIENCE, ForgetPreview, ForgetResult, ForgottenFiles, ProjectMemories, forget_with_files
from .mnemonics_folder import FALLBACK, MnemonicsFolder, digest_of

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
