"""Health check of a home (`palaver doctor`): independent read-only checks that report facts and problems.

A check that fails is reported as a problem, so that the health check also works on a broken home. The context opens
each resource once for all checks.

- Archive: the database, the raw copies, the agents' files, and deletions.
- Environment: versions, the home folder, the settings and the models.
- Pipeline: the index, observations, stages and background work.
"""

import os
import platform
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...archiver.copies.raw_copy import RawArchive, Stat
from ...archiver.copies.verification import COPY_AGAIN, copies_without_row
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.ingest.transcripts import Transcript
from ...archiver.reading.parsing import Exclusion
from ...archiver.redaction import VERSION as SECRETS
from ...archiver.store import ARCHIVER, Store, is_wal_safe, sqlite_version
from ...archiver.store.backups import LOSS_HINT, Backups, day_of
from ...archiver.store.database import FIRST_VERSION
from ...archiver.store.tombstone_table import KeyLost
from ...archiver.watch.file_events import is_network_mount
from ...core.config import Config
from ...core.conversation import now, show_minute
from ...core.deletion import UNDO_PERIOD, DeletionState
from ...core.errors import (
    ConfigInvalid,
    ModelUnavailable,
    PalaverError,
    StoreCorrupt,
    StoreMissing,
    StoreOutdated,
    how_to_make_writable,
)
from ...core.home import Home, install_command, upgrade_hint
from ...core.reports import HealthProblem, HealthReport, Status, Unsearched, encrypted_conversations, many, size
from ...core.runtime import Reporter
from ...search.index.generation import FORMAT, Generations
from ...search.index.index_check import UNINDEXED_MAX
from ...search.model.embedder import DEFAULT_MODEL, PackagedEmbedder, load
from ...search.query import tokenizer
from .. import rules
from .archive_status import OUTDATED, state_of
from .consistency import RECOVER_COPIES, RECOVER_DATABASE, REPAIR, check_consistency, missing_database

Findings = Iterable[tuple[str, str] | HealthProblem]
"""Result of a check: facts, each with its label, and problems."""
ARCHIVE: Final = "Run `palaver archive`."


class StoreUnreadable(Exception):
    """Error: a check is skipped because the store is unreadable. The database check reports the reason."""


class HealthContext(Struct, frozen=True, dict=True):
    """Home to check, and the resources that the checks share.

    `transcripts` finds the agents' files. `off` returns the reason why no language model is used, or an empty text.
    """

    home: Home
    version: str
    transcripts: Callable[[Unsearched], Sequence[Transcript]]
    off: Callable[[Config], str]

    @cached_property
    def config(self) -> Config:
        """Settings of the home. Raises `ConfigInvalid`."""
        return Config.read(self.home.config)

    @cached_property
    def readable_store(self) -> Store | None:
        """Store, opened read-only. The value is None if the store cannot be read."""
        try:
            store = Store.open_read_only(self.home.database, read_only=self.home.read_only)
            seen, supported = store.schema
            return store if seen == supported and store.integrity.is_readable() else None
        except PalaverError:
            return None

    @property
    def store(self) -> Store:
        """Store, opened read-only. Raises `StoreUnreadable`."""
        if self.readable_store is None:
            raise StoreUnreadable
        return self.readable_store

    @cached_property
    def status(self) -> Status:
        """Status of the archive. Raises `StoreUnreadable`."""
        return state_of(self.home, self.store, Generations(self.home.index), self.model)

    @property
    def key(self) -> bytes:
        """Key of the archive, or empty bytes if it is missing."""
        try:
            return self.home.key_file.read_bytes()
        except FileNotFoundError:
            return b""

    @property
    def model(self) -> str | None:
        """Embedding model in the settings. The value is None for the packaged model, or if the settings are invalid."""
        try:
            return self.config.model
        except PalaverError:
            return None


_SETTLED: Final = 60.0
"""Seconds after which a running archiver should have archived a changed file of an agent."""
_OVERDUE: Final = 2 * 3600 * 1000
"""Milliseconds after the end of the undo period within which a deletion must be erased.

`palaver watch` erases such deletions once an hour.
"""
_DRIFT_REMEDY: Final = "Run `palaver formats report`. Update Palaver, or report the output."
_LISTED_MAX: Final = 3
"""Maximum number of individually listed problems of one kind."""


def database(context: HealthContext) -> Findings:
    """Check that the database exists, is readable, and contains all acknowledged changes."""
    path = context.home.database
    try:
        with Store.open_read_only(path, read_only=context.home.read_only) as store:
            seen, supported = store.schema
            if seen > supported:
                problem = f"its schema {seen} is newer than schema {supported} of this version of Palaver"
                yield HealthProblem("database", problem, upgrade_hint())
            elif not store.integrity.is_readable():
                yield HealthProblem("database", f"{path} is damaged", RECOVER_DATABASE)
            elif seen < FIRST_VERSION:
                outdated = StoreOutdated(path)
                yield HealthProblem("database", str(outdated), outdated.hint)
            elif seen < supported:
                yield "database", f"schema {seen} of {supported} (the next `palaver archive` changes it)"
            else:
                yield "database", f"{size(path.stat().st_size)}, schema {seen}"
                backups = Backups(context.home).all()
                newest = f", newest {day_of(backups[0])}" if backups else ""
                yield "backups", f"{many(len(backups), 'daily database backup')}{newest}" if backups else "none yet"
                if loss := store.watermark.loss:
                    yield HealthProblem("database", loss, LOSS_HINT)
                if damage := store.reserved_ids.damage:
                    yield HealthProblem("database", damage, REPAIR)
    except StoreMissing as missing:
        empty = HealthProblem("database", "nothing is archived yet", "Run `palaver up`.")
        is_lost = missing.copies or Backups(context.home).all()
        yield missing_database(context.home, missing) if is_lost else empty
    except StoreCorrupt as damage:
        yield HealthProblem("database", str(damage), RECOVER_DATABASE)


def archive(context: HealthContext) -> Findings:
    """Report the archive's size, and check that every file was readable and every line was parsed or skipped."""
    status = context.status
    kinds = list(status.skipped.items())
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in kinds[:3])
    others = f" and {sum(count for _, count in kinds[3:]):,} of other kinds" if kinds[3:] else ""
    files, lines, exchanges = many(status.files, "file"), many(status.lines, "line"), many(status.exchanges, "exchange")
    yield "archive", f"{files}, {size(status.size)}, {lines}, {exchanges}; skipped: {skipped or 'none'}{others}"
    for name, count, accounted in status.unaccounted:
        problem = f"{name} has {many(count, 'line')}, of which {accounted:,} were parsed or skipped"
        yield HealthProblem("archive", problem, "Run `palaver fsck --repair`.")
    for path, reason in status.problems[:_LISTED_MAX]:
        yield HealthProblem(
            "archive", f"could not read {path}: {reason}", f"Make it readable, or update Palaver. {ARCHIVE}"
        )
    if unlisted := len(status.problems[_LISTED_MAX:]):
        problem = f"could not read {many(unlisted, 'more file')}"
        yield HealthProblem("archive", problem, "Run `palaver status` to list them.")


def formats(context: HealthContext) -> Findings:
    """Report the agents with their versions, and signs that their formats changed so that not everything is read."""
    status = context.status
    newest = {each.agent: each.versions[-1] for each in status.agents if each.versions}
    named = ", ".join(f"{agent} {version}" for agent, version in newest.items())
    yield "formats", f"newest versions read: {named}" if named else "no transcript names the version of its agent"
    if status.encrypted:
        yield "encrypted", encrypted_conversations(status.encrypted)
    current = [sign for sign in status.drift if sign.version in {"", newest.get(sign.agent)}]
    for agent in dict.fromkeys(sign.agent for sign in current):
        first, *others = [sign for sign in current if sign.agent == agent]
        name = f"{agent} {first.version}".rstrip()
        text = f"{name}: {first.problem}" + (f", and {many(len(others), 'more sign')}" if others else "")
        yield HealthProblem("formats", text, _DRIFT_REMEDY)


def copies(context: HealthContext) -> Findings:
    """Report the time of the last verification of raw copies, and any damaged copies."""
    status = context.status
    if not (status.verified and status.verified_since):
        return
    yield "copies", f"{status.verified:,} of {status.files:,} verified since {show_minute(status.verified_since)}"
    for name, reason in status.damaged[:_LISTED_MAX]:
        yield HealthProblem("copies", f"{context.home.archive / str(name)}: {reason}", COPY_AGAIN)
    if unlisted := len(status.damaged[_LISTED_MAX:]):
        yield HealthProblem("copies", f"{many(unlisted, 'more copy is', 'more copies are')} damaged", COPY_AGAIN)


def copies_without_rows(context: HealthContext) -> Findings:
    """Check that the database lists every copy, because unlisted copies cannot be searched."""
    if context.store.leases.holder(ARCHIVER):
        return  # An ingest run creates each copy before its row.
    if names := copies_without_row(context.home.archive, context.store):
        problem = f"{many(len(names), 'copy is', 'copies are')} not in the database, such as {names[0]}"
        yield HealthProblem("copies", problem, RECOVER_COPIES)


def outdated_copies(context: HealthContext) -> Findings:
    """Check that no copy needs re-parsing, for example after an interrupted rebuild or an update."""
    status, store = context.status, context.store
    if status.watcher or store.leases.holder(ARCHIVER):
        return
    if count := store.sources.count_to_read():
        verb = "waits" if count == 1 else "wait"
        problem = f"{count:,} of {many(status.files, 'copy', 'copies')} {verb} to be parsed again"
        yield HealthProblem("copies", problem, ARCHIVE)


def agents(context: HealthContext) -> Findings:
    """Check that the agents' files and containers are archived, now and when they grow.

    Containers, which have many sessions in one file, are not opened.
    """
    store = context.store
    files, behind, new, erased = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    sources, unreadable = store.sources.by_path(), {path for path, _ in store.sources.problems()}
    exclusion, raw = Exclusion(context.config.exclude), RawArchive(context.home.archive)
    skipped = Unsearched()
    for transcript in context.transcripts(skipped):
        if transcript.format is None:
            continue
        agent, state = transcript.format.agent, Stat.of(transcript.path)
        if transcript.container_format is not None:
            archived = store.containers.state(transcript.path)
            is_new, changed = archived is None, archived != transcript.container_format.container_state(transcript.path)
        elif exclusion.covers(str(transcript.found.parent)):
            continue
        else:
            source = sources.get(transcript.path)
            is_new, changed = source is None, source is None or not raw.is_unchanged(source, state)
            if is_new and transcript.path not in unreadable and _is_erased(context, store, transcript.path, state):
                files[agent] += 1
                erased[agent] += 1
                continue
        files[agent] += 1
        if changed and transcript.path not in unreadable and time.time() - _modified(transcript) > _SETTLED:
            behind[agent] += 1
            new[agent] += is_new
    counts = [many(count, f"{agent} file") for agent, count in files.items()]
    if erased:
        counts.append(f"{erased.total():,} of them erased from the archive")
    yield "agents", ", ".join(counts) or "no files found"
    if skipped.homes or skipped.links:
        links = many(len(skipped.links), "directory link")
        yield "skipped", f"{many(len(skipped.homes), 'Palaver home')}, {links} to other folders"
    if files and not context.status.watcher:
        problem = "not running, so new sessions are archived only when you run `palaver archive`"
        yield HealthProblem("watcher", problem, "Run `palaver install service`.")
    for agent, count in behind.items():
        be = "is" if count == 1 else "are"
        state_of_files = "not archived yet" if new[agent] == count else "not completely archived"
        problem = f"{count:,} of {many(files[agent], f'{agent} file')} {be} {state_of_files}"
        yield HealthProblem("agents", problem, ARCHIVE)


def _modified(transcript: Transcript) -> float:
    """Return the time of the last change of an agent's file or of its write-ahead log, in seconds since 1970."""
    log = transcript.path.with_name(f"{transcript.path.name}-wal")
    return max(path.stat().st_mtime for path in (transcript.path, log) if path == transcript.path or path.exists())


def _is_erased(context: HealthContext, store: Store, path: Path, state: Stat) -> bool:
    """Return whether an agent's unarchived file contains only text that the user erased."""
    if not store.tombstones.has_deletions(erased=True):
        return False
    suppression = SuppressionList(store, context.key, erased=True)
    return store.tombstones.is_erased_file(suppression.file(path), state.mtime, state.size)


def deletions(context: HealthContext) -> Findings:
    """Check that the suppression list recognises deleted items, and that erasures are complete."""
    store = context.store
    past = store.tombstones.all()
    try:
        store.tombstones.check_key(context.key)
    except KeyLost as lost:
        yield HealthProblem("deletions" if past else "key", str(lost), lost.hint)
    if not past:
        return
    reversible = sum(deletion.state is DeletionState.KEPT for deletion in past)
    yield "deletions", f"{len(past):,}; {reversible:,} can be undone" if reversible else f"{len(past):,}"
    if unfinished := sum(deletion.state is DeletionState.ERASING for deletion in past):
        waiting = list(store.tombstones.scheduled_erasures())
        left = many(len(waiting), "copy", "copies")
        where = f"; {left} may still contain erased text, such as {waiting[0]}" if waiting else ""
        problem = f"{many(unfinished, 'erasure is', 'erasures are')} not finished{where}"
        yield HealthProblem("deletions", problem, ARCHIVE)
    if overdue := sum(
        deletion.state is DeletionState.KEPT and deletion.at < now() - UNDO_PERIOD - _OVERDUE for deletion in past
    ):
        problem = (
            f"{many(overdue, 'deletion')} can no longer be undone, but {'is' if overdue == 1 else 'are'} not erased"
        )
        yield HealthProblem("deletions", problem, ARCHIVE)


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


def index(context: HealthContext) -> Findings:
    """Check that the index is usable and up to date."""
    status = context.status
    behind = f"{many(status.index_lag, 'change')} not indexed yet"
    lag = f", {behind} (still searched)" if status.index_lag and status.index_usable else ""
    yield "index", status.index + lag
    if status.index == OUTDATED:
        return  # This is normal after an upgrade. The next ingest run rebuilds the index.
    is_unbuilt = Generations(context.home.index).name() is None and context.store.publications.is_empty()
    if is_unbuilt and status.index_lag <= UNINDEXED_MAX:
        return  # Search reads so few changes from the archive.
    if status.index_lag and not status.index_usable:
        yield HealthProblem("index", status.index, "Run `palaver rebuild`.")
    elif status.index_lag > UNINDEXED_MAX:
        yield HealthProblem("index", behind, ARCHIVE)


def observations(context: HealthContext) -> Findings:
    """Check that all exchanges are observed. Embedding can be unfinished: search finds the entries by their words."""
    status = context.status
    facts = [f"{sum(status.observations.values()):,}"]
    if status.unobserved:
        facts.append(f"{many(status.unobserved, 'exchange')} not observed yet")
    if status.unembedded:
        continued = "" if status.watcher else " (`palaver archive` continues)"
        facts.append(f"{many(status.unembedded, 'entry', 'entries')} not embedded yet{continued}")
    yield "observations", "; ".join(facts)
    if status.unobserved and not status.watcher:
        yield HealthProblem("observations", f"{many(status.unobserved, 'exchange')} not observed yet", ARCHIVE)


def stages(context: HealthContext) -> Findings:
    """Check that the last run of every stage succeeded."""
    status = context.status
    times = [f"{stage.name} {show_minute(stage.succeeded)}" for stage in status.stages if stage.succeeded]
    yield "last success", ", ".join(times) if times else "none yet"
    for stage in status.stages:
        if stage.fails:
            problem = f"{stage.name} failed at {show_minute(stage.failed)}: {stage.problem}"
            yield HealthProblem("stages", problem, REPAIR if stage.name.startswith("verify") else ARCHIVE)


def background(context: HealthContext) -> Findings:
    """Report whether the background archiver is running, and which process answers commands."""
    watcher = context.status.watcher
    since = f"running since {show_minute(watcher.since)}" if watcher else ""
    yield "watcher", since or "not running"
    answering = context.status.answering
    yield "commands", f"answered by process {answering}" if answering else "not accelerated (start `palaver watch`)"


CHECKS: Final[tuple[Callable[[HealthContext], Findings], ...]] = (
    versions,
    folder,
    permissions,
    database,
    archive,
    formats,
    copies,
    copies_without_rows,
    outdated_copies,
    index,
    observations,
    deletions,
    model,
    stages,
    background,
    agents,
    language_model,
)
"""All checks, in display order."""


def diagnose(context: HealthContext, deep: Reporter | None = None) -> HealthReport:
    """Run all checks. With `deep`, which is called with the progress, also verify the checksums of all stored data."""
    health = HealthReport(context.home.root)
    # The deep check runs first, so that the other checks see its results.
    verified = list(_findings(context, lambda _: _verified(context, deep), "checksums")) if deep else []
    for check in CHECKS:
        _add(health, list(_findings(context, check, check.__name__.replace("_", " "))))
    _add(health, verified)
    if context.readable_store is not None:
        context.readable_store.close()
    return health


def _verified(context: HealthContext, report: Reporter) -> Findings:
    done = check_consistency(context.home, context.model, context.config.exclude, report=report)
    checked = ", ".join(f"{kind} {count:,}" for kind, count in done.checked.items())
    yield "checksums", f"verified: {checked}" if checked else "not verified"
    yield from done.problems


def _findings(
    context: HealthContext, check: Callable[[HealthContext], Findings], label: str
) -> Iterator[tuple[str, str] | HealthProblem]:
    try:
        yield from check(context)
    except StoreUnreadable:
        return
    except ConfigInvalid as problem:
        yield HealthProblem("settings", str(problem), problem.hint)
    except PalaverError as problem:
        yield HealthProblem(label, str(problem), problem.hint)
    except OSError as error:
        reason = f"{error.filename or context.home.root}: {error.strerror or error}"
        yield HealthProblem(label, reason, "Check its owner and permissions.")


def _add(report: HealthReport, findings: Findings) -> None:
    reported = {(problem.part, problem.problem) for problem in report.problems}
    for finding in findings:
        if isinstance(finding, tuple):
            report.facts[finding[0]] = finding[1]
        elif (finding.part, finding.problem) not in reported:
            report.problems.append(finding)
