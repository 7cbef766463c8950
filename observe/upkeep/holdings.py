"""Holdings: whether what was said is kept: the database, the copies, the agents' files, and what is to be gone."""

import time
from collections import Counter
from pathlib import Path
from typing import Final

from ...archiver.copies.raw import RawArchive, Stat
from ...archiver.copies.verification import copies_without_row
from ...archiver.deletion.deletions import UNDO_PERIOD
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import ARCHIVER, State, Store
from ...archiver.store.backups import Backups
from ...archiver.store.tombstone_file import KeyLost
from ...core.amount import many, size
from ...core.checkup import RESTORE, Finding, missing_changes
from ...core.clock import now, show_minute
from ...core.errors import StoreCorrupt, StoreMissing
from ...core.installation import upgrade_hint
from ...core.report import Unsearched
from .fsck import FROM_COPIES, RECOVER, TAKE_UP
from .patient import ARCHIVE, Answer, Fact, Patient

_SETTLED: Final = 60.0
"""Seconds after which a change of an agent's file should have been archived where something archives at all."""
_OVERDUE: Final = 2 * 3600 * 1000
"""Milliseconds after which what can no longer be had back should be erased: `palaver watch` looks each hour."""
_MEND: Final = "Run `palaver fsck --repair`: it copies anew what the agent still has. Otherwise restore a backup of it."


def database(patient: Patient) -> Answer:
    try:
        with Store.open_read_only(patient.home.database) as store:
            seen, known = store.schema
            if seen > known:
                yield Finding("database", f"it has schema {seen}, and this Palaver knows {known}", upgrade_hint())
            elif not store.integrity.is_readable():
                yield Finding("database", f"{patient.home.database} is damaged", RECOVER)
            elif seen < known:
                yield Fact("database", f"schema {seen} of {known}, brought up to date by the next `palaver archive`")
            else:
                yield Fact("database", f"{size(patient.home.database.stat().st_size)}, schema {seen}")
                yield from _backups(patient)
                if store.watermark.missing:
                    yield Finding("database", missing_changes(store.watermark.missing), RESTORE)
    except StoreMissing as missing:
        if missing.copies:
            remedy = f"{missing.hint.removesuffix('.')}; {FROM_COPIES}"
            yield Finding("database", f"{patient.home.database} is gone, and the copies are there", remedy)
        else:
            yield Finding("database", "nothing is archived yet", "Run `palaver up`.")
    except StoreCorrupt as damage:
        yield Finding("database", str(damage), RECOVER)


def _backups(patient: Patient) -> Answer:
    backups = Backups(patient.home).all()
    newest = f"{len(backups)}, newest {backups[0].stem.removeprefix('palaver-')}" if backups else "none yet"
    yield Fact("backups", f"{newest} (of the database, one a day)")


def lines(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    kinds = list(status.skipped.items())
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in kinds[:3])
    others = f" and {sum(count for _, count in kinds[3:]):,} of other kinds" if kinds[3:] else ""
    files, lines, exchanges = many(status.files, "file"), many(status.lines, "line"), many(status.exchanges, "exchange")
    told = f"{files}, {size(status.size)}, {lines}, {exchanges}"
    yield Fact("archive", f"{told}; skipped: {skipped or 'none'}{others}")
    for name, held, known in status.unaccounted:
        problem = f"{name} has {many(held, 'line')}, and {known:,} of them an outcome"
        yield Finding("archive", problem, "Run `palaver fsck --repair`.")
    for path, reason in status.problems[:3]:
        yield Finding("archive", f"{path} was not read: {reason}", f"Make it readable, then: {ARCHIVE}")
    if len(status.problems) > 3:
        problem = f"{many(len(status.problems) - 3, 'more file was', 'more files were')} not read"
        yield Finding("archive", problem, "`palaver status` names them.")


def copies(patient: Patient) -> Answer:
    """How the copies were found when they were last compared with what was archived."""
    status = patient.status
    if status is None or not (status.verified and status.verified_since):
        return
    since = show_minute(status.verified_since)
    yield Fact("copies", f"{status.verified:,} of {status.files:,} verified since {since} UTC")
    for name, fault in status.damaged[:3]:
        yield Finding("copies", f"{patient.home.archive / name}: {fault}", _MEND)
    if len(status.damaged) > 3:
        yield Finding("copies", f"{many(len(status.damaged) - 3, 'more copy is', 'more copies are')} damaged", _MEND)


def strays(patient: Patient) -> Answer:
    """Copies that the database does not know, as after one that was lost: nothing that was said there is found."""
    if patient.store is None or patient.store.leases.holder(ARCHIVER):
        return  # who takes transcripts up makes each copy before its row
    left = copies_without_row(patient.home.archive, patient.store)
    if left:
        problem = f"{many(len(left), 'copy is', 'copies are')} not in the database, such as {left[0]}"
        yield Finding("copies", problem, TAKE_UP)


def reading(patient: Patient) -> Answer:
    """Copies that are still to be read again, after a rebuild that was stopped, an update or an undoing. The next pass
    goes on.
    """
    status, store = patient.status, patient.store
    if status is None or store is None or status.watcher or store.leases.holder(ARCHIVER):
        return
    if left := store.sources.count_to_read():
        waiting = f"{left:,} of {many(status.files, 'copy', 'copies')} {'waits' if left == 1 else 'wait'}"
        problem = f"{waiting} to be read again"
        yield Finding("copies", problem, ARCHIVE)


def agents(patient: Patient) -> Answer:
    """Files of agents that are not archived as they are now. Containers are left to the next pass."""
    if patient.store is None:
        return
    found, behind, new, erased = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    known = patient.store.sources.by_path()
    refused = {path for path, _ in patient.store.sources.problems()}
    exclusion, raw = Exclusion(patient.config.exclude), RawArchive(patient.home.archive)
    skipped = Unsearched()
    for each in patient.transcripts(skipped):
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
            new[each.format.agent] += source is None
    gone = {agent: f", {count:,} of which {'was' if count == 1 else 'were'} erased" for agent, count in erased.items()}
    told = [f"{agent} {many(count, 'file')}{gone.get(agent, '')}" for agent, count in found.items()]
    yield Fact("agents", "; ".join(told) if gone else ", ".join(told) or "none found")
    if skipped.homes or skipped.links:
        out = f"{many(len(skipped.homes), 'Palaver home')}, {many(len(skipped.links), 'directory link')} out of a root"
        yield Fact("skipped", out)
    for agent, count in behind.items():
        remedy = f"{ARCHIVE} `palaver setup service` does so by itself from then on."
        files = many(found[agent], "file")
        are = "is" if count == 1 else "are"
        left = f"{are} not archived yet" if new[agent] == count else f"{are} new or longer than what is archived"
        yield Finding("agents", f"{count:,} of {files} of {agent} {left}", remedy)


def _is_erased(patient: Patient, path: Path, state: Stat) -> bool:
    """Return whether a file that is not archived contains only erased lines."""
    store = patient.store
    if store is None or not store.tombstones.exist(erased=True):
        return False
    known = SuppressionList(store, patient.key, erased=True)
    return store.tombstones.is_emptied(known.file(path), state.mtime, state.size) or known.covers(path)


def forgotten(patient: Patient) -> Answer:
    """Check the key of the tombstones and unfinished erasures."""
    if not patient.store:
        return
    past = patient.store.tombstones.all()
    try:
        patient.store.tombstones.check(patient.key)
    except KeyLost as lost:
        yield Finding("forgotten" if past else "key", str(lost), lost.hint)
    if not past:
        return
    undoable = sum(each.state is State.KEPT for each in past)
    yield Fact("forgotten", many(len(past), "deletion") + (f"; {undoable:,} can be undone" if undoable else ""))
    unfinished = sum(each.state is State.ERASING for each in past)
    if unfinished:
        waiting = list(patient.store.tombstones.intended())
        where = (
            f"; {many(len(waiting), 'copy', 'copies')} may still contain it, such as {waiting[0]}" if waiting else ""
        )
        yield Finding("forgotten", f"{many(unfinished, 'erasure is', 'erasures are')} not finished{where}", ARCHIVE)
    overdue = sum(each.state is State.KEPT and each.at < now() - UNDO_PERIOD - _OVERDUE for each in past)
    if overdue:
        problem = (
            f"{many(overdue, 'deletion')} can no longer be undone but {'is' if overdue == 1 else 'are'} not erased"
        )
        yield Finding("forgotten", problem, ARCHIVE)
