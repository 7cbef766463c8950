"""Health checks of the archive: the database, the raw copies, the agents' files, and deletions."""

import time
from collections import Counter
from pathlib import Path
from typing import Final

from ...archiver.copies.compressor import COPY_AGAIN
from ...archiver.copies.copy_verification import copies_without_row
from ...archiver.copies.raw import RawArchive, Stat
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import ARCHIVER, Store
from ...archiver.store.backups import Backups, day_of
from ...archiver.store.tombstone_file import KeyLost
from ...archiver.store.watermark import LOSS_HINT
from ...core.amount import many, size
from ...core.checkup import HealthProblem
from ...core.clock import now, show_minute
from ...core.deletion import UNDO_PERIOD, DeletionState
from ...core.errors import StoreCorrupt, StoreMissing
from ...core.installation import upgrade_hint
from ...core.report import Unsearched
from .consistency import RECOVER_COPIES, RECOVER_DATABASE, REPAIR, missing_database
from .health_context import ARCHIVE, Findings, HealthContext

_SETTLED: Final = 60.0
"""Seconds after which a running archiver should have archived a changed file of an agent."""
_OVERDUE: Final = 2 * 3600 * 1000
"""Milliseconds after the end of the undo period within which a deletion must be erased.

`palaver watch` erases such deletions once an hour.
"""
_LISTED_MAX: Final = 3
"""Maximum number of individually listed problems of one kind."""


def database(context: HealthContext) -> Findings:
    """Check that the database exists, is readable, and contains all acknowledged changes."""
    path = context.home.database
    try:
        with Store.open_read_only(path, read_only=context.home.read_only) as store:
            seen, known = store.schema
            if seen > known:
                problem = f"its schema {seen} is newer than schema {known} of this version of Palaver"
                yield HealthProblem("database", problem, upgrade_hint())
            elif not store.integrity.is_readable():
                yield HealthProblem("database", f"{path} is damaged", RECOVER_DATABASE)
            elif seen < known:
                yield "database", f"schema {seen} of {known} (the next `palaver archive` migrates it)"
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
    for name, count, known in status.unaccounted:
        problem = f"{name} has {many(count, 'line')}, of which {known:,} were parsed or skipped"
        yield HealthProblem("archive", problem, "Run `palaver fsck --repair`.")
    for path, reason in status.problems[:_LISTED_MAX]:
        yield HealthProblem(
            "archive", f"could not read {path}: {reason}", f"Make it readable, or update Palaver. {ARCHIVE}"
        )
    if more := len(status.problems[_LISTED_MAX:]):
        problem = f"could not read {many(more, 'more file')}"
        yield HealthProblem("archive", problem, "Run `palaver status` to list them.")


def copies(context: HealthContext) -> Findings:
    """Report the time of the last verification of raw copies, and any damaged copies."""
    status = context.status
    if not (status.verified and status.verified_since):
        return
    yield "copies", f"{status.verified:,} of {status.files:,} verified since {show_minute(status.verified_since)}"
    for name, reason in status.damaged[:_LISTED_MAX]:
        yield HealthProblem("copies", f"{context.home.archive / str(name)}: {reason}", COPY_AGAIN)
    if more := len(status.damaged[_LISTED_MAX:]):
        yield HealthProblem("copies", f"{many(more, 'more copy is', 'more copies are')} damaged", COPY_AGAIN)


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
    """Check that the agents' files are archived. Containers, which have many sessions in one file, are not opened."""
    store = context.store
    found, behind, new, erased = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    known, unreadable = store.sources.by_path(), {path for path, _ in store.sources.problems()}
    exclusion, raw = Exclusion(context.config.exclude), RawArchive(context.home.archive)
    skipped = Unsearched()
    for each in context.transcripts(skipped):
        if each.format is None or each.container_format is not None or exclusion.covers(str(each.found.parent)):
            continue
        agent, source, state = each.format.agent, known.get(each.path), Stat.of(each.path)
        found[agent] += 1
        if source is None and each.path not in unreadable and _is_erased(context, store, each.path, state):
            erased[agent] += 1
            continue
        changed = source is None or not raw.is_unchanged(source, state)
        if changed and each.path not in unreadable and time.time() - state.mtime / 1e9 > _SETTLED:
            behind[agent] += 1
            new[agent] += source is None
    counts = [many(count, f"{agent} file") for agent, count in found.items()]
    if erased:
        counts.append(f"{erased.total():,} of them erased from the archive")
    yield "agents", ", ".join(counts) or "no files found"
    if skipped.homes or skipped.links:
        links = many(len(skipped.links), "directory link")
        yield "skipped", f"{many(len(skipped.homes), 'Palaver home')}, {links} to other folders"
    for agent, count in behind.items():
        be = "is" if count == 1 else "are"
        state_of_files = "not archived yet" if new[agent] == count else "not completely archived"
        problem = f"{count:,} of {many(found[agent], f'{agent} file')} {be} {state_of_files}"
        yield HealthProblem("agents", problem, f"{ARCHIVE} To archive automatically, run `palaver install service`.")


def _is_erased(context: HealthContext, store: Store, path: Path, state: Stat) -> bool:
    """Return whether an agent's unarchived file contains only text that the user erased."""
    if not store.tombstones.has_deletions(erased=True):
        return False
    known = SuppressionList(store, context.key, erased=True)
    return store.tombstones.is_erased_file(known.file(path), state.mtime, state.size)


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
    reversible = sum(each.state is DeletionState.KEPT for each in past)
    yield "deletions", f"{len(past):,}; {reversible:,} can be undone" if reversible else f"{len(past):,}"
    if unfinished := sum(each.state is DeletionState.ERASING for each in past):
        waiting = list(store.tombstones.scheduled_erasures())
        left = many(len(waiting), "copy", "copies")
        where = f"; {left} may still contain erased text, such as {waiting[0]}" if waiting else ""
        problem = f"{many(unfinished, 'erasure is', 'erasures are')} not finished{where}"
        yield HealthProblem("deletions", problem, ARCHIVE)
    if overdue := sum(each.state is DeletionState.KEPT and each.at < now() - UNDO_PERIOD - _OVERDUE for each in past):
        problem = (
            f"{many(overdue, 'deletion')} can no longer be undone, but {'is' if overdue == 1 else 'are'} not erased"
        )
        yield HealthProblem("deletions", problem, ARCHIVE)
