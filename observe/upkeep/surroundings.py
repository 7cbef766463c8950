"""Surroundings: whether Palaver can work here: its versions, the folder of the home, the settings and the models."""

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
from ...core.checkup import Finding
from ...core.errors import ModelUnavailable
from ...core.installation import install_command
from ...search.index.generation import FORMAT
from ...search.model.embedder import DEFAULT_MODEL, PackagedEmbedder, load
from ...search.query import tokenizer
from .. import rules
from .patient import Answer, Fact, Patient

_LITTLE: Final = 1 << 30
"""Free bytes below which an archive soon cannot grow, or an index not be written."""


def versions(patient: Patient) -> Answer:
    told = f"palaver {patient.version}, Python {platform.python_version()}, SQLite {sqlite_version()}"
    yield Fact("versions", f"{told}, index {FORMAT}.{tokenizer.VERSION}, rules {rules.VERSION}, secrets {SECRETS}")
    if not is_wal_safe():
        remedy = f"Run `{install_command('apsw', upgrade=True)}`, which brings a newer one."
        yield Finding("versions", f"SQLite {sqlite_version()} can lose rows in its write-ahead log", remedy)


def folder(patient: Patient) -> Answer:
    root = patient.home.root
    if not root.is_dir():
        return
    free = shutil.disk_usage(root).free
    silent = is_network_mount(root)
    yield Fact("folder", f"{size(free)} free, {'on a network file system' if silent else 'on a local disk'}")
    if not os.access(root, os.W_OK):
        remedy = f"Let yourself write: `chmod -R u+w {root}`, as its owner."
        yield Finding("folder", f"{root} may only be read: it is searched, and nothing new is archived", remedy)
    if free < _LITTLE:
        yield Finding("folder", f"only {size(free)} are free where the archive lies", "Free some space.")
    if silent:
        remedy = "Set PALAVER_HOME to a folder on a local disk and move everything there."
        yield Finding("folder", f"{root} lies on a network file system, where locks may not hold", remedy)


def permissions(patient: Patient) -> Answer:
    open_to_others, foreign = list[Path](), list[Path]()
    for folder, folders, files in os.walk(patient.home.root):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            state = path.lstat()
            if not stat.S_ISLNK(state.st_mode) and state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                open_to_others.append(path)
            if state.st_uid != os.geteuid():
                foreign.append(path)
        folders.sort()
    if not open_to_others and not foreign and patient.home.root.is_dir():
        yield Fact("rights", "nobody else may read what is archived")
    if open_to_others:
        open_ones = many(len(open_to_others), "file or folder", "files or folders")
        problem = f"others may read {open_ones}, such as {open_to_others[0]}"
        yield Finding("rights", problem, f"Run `chmod -R go= {patient.home.root}`.")
    if foreign:
        belong = many(len(foreign), "file or folder belongs", "files or folders belong")
        problem = f"{belong} to another user, such as {foreign[0]}"
        yield Finding("rights", problem, f"Have them given to you: `sudo chown -R {os.geteuid()} {patient.home.root}`.")


def settings(patient: Patient) -> Answer:
    off = patient.off(patient.config)
    yield Fact("language", f"no language model is asked: {off}" if off else f"{patient.config.llm_model} may be asked")


def model(patient: Patient) -> Answer:
    name = patient.model or DEFAULT_MODEL
    embedder = load(name)
    try:
        if isinstance(embedder, PackagedEmbedder):
            embedder.verify()
        embedder.embed(["ready"])
    except ModelUnavailable as problem:
        yield Finding("model", str(problem), problem.hint)
    else:
        yield Fact("model", embedder.name)
