"""Health checks of the environment: versions, the home folder, the settings and the models."""

import os
import platform
import shutil
import stat
from pathlib import Path
from typing import Final

from ...archiver.redaction import VERSION as SECRETS
from ...archiver.store import is_wal_safe, sqlite_version
from ...archiver.watch.network_mounts import is_network_mount
from ...core.amount import many, size
from ...core.checkup import HealthProblem
from ...core.errors import ModelUnavailable, how_to_make_writable
from ...core.installation import install_command
from ...search.index.generation import FORMAT
from ...search.model.embedder import DEFAULT_MODEL, PackagedEmbedder, load
from ...search.query import tokenizer
from .. import rules
from .health_context import Findings, HealthContext

_FREE_SPACE_MIN: Final = 1 << 30
"""Minimum free space in bytes for a growing archive and a new index."""


def versions(context: HealthContext) -> Findings:
    """Check the versions of Palaver, Python and SQLite."""
    programs = f"palaver {context.version}, Python {platform.python_version()}, SQLite {sqlite_version()}"
    yield "versions", f"{programs}, index {FORMAT}.{tokenizer.VERSION}, rules {rules.VERSION}, secrets {SECRETS}"
    if not is_wal_safe():
        remedy = f"Run `{install_command('apsw', upgrade=True)}` to install a newer one."
        yield HealthProblem("versions", f"SQLite {sqlite_version()} can lose rows in its write-ahead log", remedy)


def folder(context: HealthContext) -> Findings:
    """Check that the home folder is writable, has free space, and is on a local disk."""
    root = context.home.root
    if not root.is_dir():
        return
    free = shutil.disk_usage(root).free
    network = is_network_mount(root)
    yield "folder", f"{size(free)} free, {'on a network file system' if network else 'on a local disk'}"
    if not os.access(root, os.W_OK):
        problem = f"{root} is read-only. Search works, but nothing new is archived"
        yield HealthProblem("folder", problem, how_to_make_writable(root))
    elif free < _FREE_SPACE_MIN:
        yield HealthProblem("folder", f"only {size(free)} are free on the disk of the archive", "Free some space.")
    if network:
        remedy = "Move the folder to a local disk and set PALAVER_HOME to it."
        yield HealthProblem("folder", f"{root} is on a network file system, where locks may not work", remedy)


def permissions(context: HealthContext) -> Findings:
    """Check that only the user can read the home."""
    readable, foreign = list[Path](), list[Path]()
    root = context.home.root
    for folder, folders, files in os.walk(root):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            state = path.lstat()
            if not stat.S_ISLNK(state.st_mode) and state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                readable.append(path)
            if state.st_uid != os.geteuid():
                foreign.append(path)
        folders.sort()
    if not readable and not foreign and root.is_dir():
        yield "permissions", "readable only by you"
    if readable:
        problem = f"other users can read {many(len(readable), 'file or folder', 'files or folders')}"
        yield HealthProblem("permissions", f"{problem}, such as {readable[0]}", f"Run `chmod -R go= {root}`.")
    if foreign:
        problem = f"another user owns {many(len(foreign), 'file or folder', 'files or folders')}"
        remedy = f"Run `sudo chown -R {os.geteuid()} {root}`."
        yield HealthProblem("permissions", f"{problem}, such as {foreign[0]}", remedy)


def language_model(context: HealthContext) -> Findings:
    """Report the language model, or the reason why no language model is used."""
    off = context.off(context.config)
    yield "language model", f"not used: {off}" if off else context.config.llm_name


def model(context: HealthContext) -> Findings:
    """Check that the files of the embedding model are complete and that the model works."""
    embedder = load(context.model or DEFAULT_MODEL)
    try:
        if isinstance(embedder, PackagedEmbedder):
            embedder.verify()
        embedder.embed(["ready"])
    except ModelUnavailable as problem:
        yield HealthProblem("model", str(problem), problem.hint)
    else:
        yield "model", embedder.name
