"""Doctor: one look at everything that can be wrong, each part by itself, and the one command that helps.

It only reads, and a part that cannot be read is a finding like any other: a broken home is what it is for.
"""

import os
import platform
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from ...archiver.copies.inspection import strays
from ...archiver.copies.raw import RawArchive, Stat
from ...archiver.forget.forgetting import KEPT
from ...archiver.forget.oblivion import Oblivion
from ...archiver.intake.transcripts import Transcript
from ...archiver.privacy.exclusion import Exclusion
from ...archiver.redaction import VERSION as SECRETS
from ...archiver.store import ARCHIVER, State, Store, is_wal_safe, sqlite_version
from ...archiver.watch.mounts import is_silent
from ...core.amount import many
from ...core.checkup import Diagnosis, Finding
from ...core.clock import now, show_minute
from ...core.config import Config
from ...core.errors import ConfigInvalid, ModelUnavailable, PalaverError, StoreCorrupt, StoreMissing
from ...core.home import Home
from ...core.report import Status
from ...search import analysis
from ...search.embedder import DEFAULT_MODEL, load
from ...search.generation import FORMAT, Generations
from .. import rules
from .fsck import FROM_COPIES, RECOVER, TAKE_UP
from .status import OUTDATED, state_of

_LITTLE: Final = 1 << 30
"""Free bytes below which an archive soon cannot grow, or an index not be written."""
_SETTLED: Final = 60.0
"""Seconds after which a change of an agent's file should have been archived where something archives at all."""
_BEHIND: Final = 5_000
"""Changes that the index may be behind: each process that searches reads them anew when it starts."""
_OVERDUE: Final = 2 * 3600 * 1000
"""Milliseconds after which what can no longer be had back should be erased: `palaver watch` looks each hour."""
_ARCHIVE: Final = "Run `palaver archive`."
_MEND: Final = "Run `palaver fsck --repair`: it copies anew what the agent still has. Otherwise restore a backup of it."


class Fact(NamedTuple):
    """How a part is, in a few words."""

    name: str
    told: str


class Patient(Struct, frozen=True, dict=True):
    """What is looked at. `transcripts` are the agents' files, `off` is why no language model may be asked."""

    home: Home
    version: str
    transcripts: Callable[[], Sequence[Transcript]]
    off: Callable[[Config], str]

    @cached_property
    def config(self) -> Config:
        """The settings; raises `ConfigInvalid`."""
        return Config.read(self.home.config)

    @cached_property
    def store(self) -> Store | None:
        """The store, to be read only; None where there is none that can be read, which `_database` tells."""
        try:
            store = Store.look(self.home.database)
            seen, known = store.schema
            return store if seen == known and store.integrity.is_readable() else None
        except PalaverError:
            return None

    @cached_property
    def status(self) -> Status | None:
        """The state of the archive, where it can be read."""
        if self.store is None:
            return None
        return state_of(self.home, self.store, Generations(self.home.index, only_look=True), self.model)

    @property
    def model(self) -> str | None:
        """The model that the settings name; None, which is the packaged one, where they name none that can be read."""
        try:
            return self.config.model
        except PalaverError:
            return None


Answer = Iterable[Fact | Finding]


def diagnose(patient: Patient) -> Diagnosis:
    """Look at every part, in order."""
    diagnosis = Diagnosis(patient.home.root)
    for check in CHECKS:
        try:
            answers = list(check(patient))
        except ConfigInvalid as problem:
            told_once = Finding(_part(_settings), str(problem), problem.hint)  # whichever parts would heed them
            answers = [] if told_once in diagnosis.findings else [told_once]
        except PalaverError as problem:
            answers = [Finding(_part(check), str(problem), problem.hint)]
        except OSError as error:
            told = f"{error.filename or patient.home.root}: {error.strerror or error}"
            answers = [Finding(_part(check), told, "Check who owns it and its rights.")]
        for answer in answers:
            if isinstance(answer, Fact):
                diagnosis.facts[answer.name] = answer.told
            else:
                diagnosis.findings.append(answer)
    if patient.store is not None:
        patient.store.close()
    return diagnosis


def _versions(patient: Patient) -> Answer:
    told = f"palaver {patient.version}, Python {platform.python_version()}, SQLite {sqlite_version()}"
    yield Fact("versions", f"{told}, index {FORMAT}.{analysis.VERSION}, rules {rules.VERSION}, secrets {SECRETS}")
    if not is_wal_safe():
        remedy = "Run `pip install --upgrade apsw`, which brings a newer one."
        yield Finding("versions", f"SQLite {sqlite_version()} can lose rows in its write-ahead log", remedy)


def _folder(patient: Patient) -> Answer:
    root = patient.home.root
    if not root.is_dir():
        return
    free = shutil.disk_usage(root).free
    silent = is_silent(root)
    yield Fact("folder", f"{_size(free)} free, {'on a network file system' if silent else 'on a local disk'}")
    if not os.access(root, os.W_OK):
        remedy = f"Let yourself write: `chmod -R u+w {root}`, as its owner."
        yield Finding("folder", f"{root} may only be read: it is searched, and nothing new is archived", remedy)
    if free < _LITTLE:
        yield Finding("folder", f"only {_size(free)} are free where the archive lies", "Free some space.")
    if silent:
        remedy = "Set PALAVER_HOME to a folder on a local disk and move everything there."
        yield Finding("folder", f"{root} lies on a network file system, where locks may not hold", remedy)


def _permissions(patient: Patient) -> Answer:
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


def _settings(patient: Patient) -> Answer:
    off = patient.off(patient.config)
    yield Fact("language", f"no language model is asked: {off}" if off else f"{patient.config.llm_model} may be asked")


def _database(patient: Patient) -> Answer:
    try:
        with Store.look(patient.home.database) as store:
            seen, known = store.schema
            if seen > known:
                remedy = "Install the newer Palaver again: `pip install --upgrade palaver`."
                yield Finding("database", f"it has schema {seen}, and this Palaver knows {known}", remedy)
            elif not store.integrity.is_readable():
                yield Finding("database", f"{patient.home.database} is damaged", RECOVER)
            elif seen < known:
                yield Fact("database", f"schema {seen} of {known}, brought up to date by the next `palaver archive`")
            else:
                yield Fact("database", f"{_size(patient.home.database.stat().st_size)}, schema {seen}")
    except StoreMissing as missing:
        if missing.copies:
            remedy = f"{missing.hint.removesuffix('.')}; {FROM_COPIES}"
            yield Finding("database", f"{patient.home.database} is gone, and the copies are there", remedy)
        else:
            yield Finding("database", "nothing is archived yet", "Run `palaver up`.")
    except StoreCorrupt as damage:
        yield Finding("database", str(damage), RECOVER)


def _lines(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    kinds = list(status.skipped.items())
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in kinds[:3])
    others = f" and {sum(count for _, count in kinds[3:]):,} of other kinds" if kinds[3:] else ""
    files, lines, exchanges = many(status.files, "file"), many(status.lines, "line"), many(status.exchanges, "exchange")
    told = f"{files}, {_size(status.size)}, {lines}, {exchanges}"
    yield Fact("archive", f"{told}; skipped: {skipped or 'none'}{others}")
    for name, held, known in status.unaccounted:
        problem = f"{name} has {many(held, 'line')}, and {known:,} of them an outcome"
        yield Finding("archive", problem, "Run `palaver fsck --repair`.")
    for path, reason in status.problems[:3]:
        yield Finding("archive", f"{path} was not read: {reason}", f"Make it readable, then: {_ARCHIVE}")
    if len(status.problems) > 3:
        problem = f"{many(len(status.problems) - 3, 'more file was', 'more files were')} not read"
        yield Finding("archive", problem, "`palaver status` names them.")


def _strays(patient: Patient) -> Answer:
    """Copies that the database does not know, as after one that was lost: nothing that was said there is found."""
    if patient.store is None or patient.store.leases.holder(ARCHIVER):
        return  # who takes transcripts up makes each copy before its row
    left = strays(patient.home.archive, patient.store)
    if left:
        problem = f"{many(len(left), 'copy is', 'copies are')} not in the database, such as {left[0]}"
        yield Finding("copies", problem, TAKE_UP)


def _copies(patient: Patient) -> Answer:
    """How the copies were found when they were last compared with what was archived."""
    status = patient.status
    if status is None or not (status.compared and status.compared_since):
        return
    since = show_minute(status.compared_since)
    yield Fact("copies", f"{status.compared:,} of {status.files:,} compared with what was archived since {since} UTC")
    for name, fault in status.damaged[:3]:
        yield Finding("copies", f"{patient.home.archive / name}: {fault}", _MEND)
    if len(status.damaged) > 3:
        yield Finding("copies", f"{many(len(status.damaged) - 3, 'more copy is', 'more copies are')} damaged", _MEND)


def _index(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    unused = "searched" in status.index
    behind = f", {many(status.index_lag, 'change')} behind (searched all the same)" if status.index_lag else ""
    yield Fact("index", status.index if unused else status.index + behind)
    if status.index == OUTDATED:
        return  # an upgrade is no fault, and the next pass makes it anew
    if status.index_lag and unused:
        yield Finding("index", f"it is {status.index}", "Run `palaver rebuild`.")
    elif status.index_lag > _BEHIND:
        yield Finding("index", f"it is {many(status.index_lag, 'change')} behind", _ARCHIVE)


def _learning(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    late = [(status.unobserved, "exchange"), (status.unembedded, "vector")]
    left = " and ".join(many(count, noun) for count, noun in late if count)
    one = sum(count for count, _ in late) == 1
    waiting = f"{left} {'waits' if one else 'wait'}"
    learned = many(sum(status.observations.values()), "observation")
    yield Fact("learned", f"{learned}; {waiting}" if left else learned)
    if left and not status.watcher:
        yield Finding("learned", f"{waiting} and nothing works on {'it' if one else 'them'}", _ARCHIVE)


def _forgotten(patient: Patient) -> Answer:
    """What is to be erased and is not yet."""
    past = patient.store.tombstones.all() if patient.store else []
    if not past:
        return
    undoable = sum(each.state is State.KEPT for each in past)
    yield Fact("forgotten", many(len(past), "time") + (f"; {undoable:,} can be undone" if undoable else ""))
    unfinished = sum(each.state is State.ERASING for each in past)
    if unfinished and patient.store:
        waiting = list(patient.store.tombstones.intended())
        where = f"; {many(len(waiting), 'copy', 'copies')} may still hold it, such as {waiting[0]}" if waiting else ""
        yield Finding("forgotten", f"{many(unfinished, 'erasure is', 'erasures are')} not finished{where}", _ARCHIVE)
    overdue = sum(each.state is State.KEPT and each.at < now() - KEPT - _OVERDUE for each in past)
    if overdue:
        problem = (
            f"{many(overdue, 'time')} something was forgotten that can no longer be undone, and it is not erased yet"
        )
        yield Finding("forgotten", problem, _ARCHIVE)


def _stages(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    told = [f"{stage.name} {show_minute(stage.succeeded)}" for stage in status.stages if stage.succeeded]
    yield Fact("last success", f"{', '.join(told)} UTC" if told else "none yet")
    for stage in status.stages:
        if stage.fails:
            problem = f"{stage.name} failed at {show_minute(stage.failed)} UTC: {stage.problem}"
            yield Finding("stages", problem, _ARCHIVE)


def _background(patient: Patient) -> Answer:
    if patient.status is None:
        return
    watcher = patient.status.watcher
    running = f"runs since {show_minute(watcher.since)} UTC" if watcher else "does not run; `palaver setup service`"
    yield Fact("watcher", running)


def _agents(patient: Patient) -> Answer:
    """Files of agents that are not archived as they are now. Containers are left to the next pass."""
    if patient.store is None:
        return
    found, behind, erased = Counter[str](), Counter[str](), Counter[str]()
    known = patient.store.sources.by_path()
    refused = {path for path, _ in patient.store.sources.problems()}
    exclusion, raw = Exclusion(patient.config.exclude), RawArchive(patient.home.archive)
    for each in patient.transcripts():
        if each.format is None or each.held_by is not None or exclusion.covers(str(each.found.parent)):
            continue
        found[each.format.agent] += 1
        source, state = known.get(each.path), Stat.of(each.path)
        if source is None and each.path not in refused and _is_erased(patient, each.path, state):
            erased[each.format.agent] += 1
            continue
        late = source is None or not raw.is_unchanged(source, state)
        if late and each.path not in refused and time.time() - state.mtime / 1e9 > _SETTLED:
            behind[each.format.agent] += 1
    gone = {agent: f", {count:,} of which {'was' if count == 1 else 'were'} erased" for agent, count in erased.items()}
    told = [f"{agent} {many(count, 'file')}{gone.get(agent, '')}" for agent, count in found.items()]
    yield Fact("agents", "; ".join(told) if gone else ", ".join(told) or "none found")
    for agent, count in behind.items():
        remedy = f"{_ARCHIVE} `palaver setup service` does so by itself from then on."
        files = many(found[agent], "file")
        left = "is not archived as it is" if count == 1 else "are not archived as they are"
        yield Finding("agents", f"{count:,} of {files} of {agent} {left}", remedy)


def _is_erased(patient: Patient, path: Path, state: Stat) -> bool:
    """Whether an agent's file, of which nothing is archived, says only what a person had erased."""
    store = patient.store
    if store is None or not store.tombstones.exist(erased=True):
        return False
    known = Oblivion(store, patient.home.key(), erased=True)
    return store.tombstones.is_emptied(known.file(path), state.mtime, state.size) or known.is_all_of(path)


def _model(patient: Patient) -> Answer:
    embedder = load(patient.model or DEFAULT_MODEL)
    try:
        embedder.embed(["ready"])
    except ModelUnavailable as problem:
        yield Finding("model", str(problem), problem.hint)
    else:
        yield Fact("model", embedder.name)


def _dead(patient: Patient) -> Answer:
    dead = len(patient.store.jobs.dead()) if patient.store else 0
    if dead:
        yield Finding(
            "language", f"{many(dead, 'request')} to a language model {'was' if dead == 1 else 'were'} given up", _DEAD
        )


_DEAD: Final = "See them with `palaver observe --dead-letters`, and try again with `--revive`."

CHECKS: Final[tuple[Callable[[Patient], Answer], ...]] = (
    _versions,
    _folder,
    _permissions,
    _database,
    _lines,
    _copies,
    _strays,
    _index,
    _learning,
    _forgotten,
    _model,
    _stages,
    _background,
    _agents,
    _settings,
    _dead,
)
"""Every part that is looked at, in the order in which it is shown."""


def _part(check: Callable[[Patient], Answer]) -> str:
    return check.__name__.strip("_")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
