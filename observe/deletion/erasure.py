"""Erasure of deleted content from copies, index, logs, backups and free database pages, and its verification.

To verify an erasure, distinctive erased texts are searched in every file and in the index.
"""

import json
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from ...archiver.compressed_file import CompressedFile
from ...archiver.copies.raw_copy import COMPRESSED_SUFFIX, RawArchive
from ...archiver.deletion.deletions import CopyEraser, DeletionPlan, Deletions
from ...archiver.deletion.suppression import reading_copy
from ...archiver.ingest.ingest import Ingest
from ...archiver.lines import SUFFIX, as_lines, split
from ...archiver.reading.parsing import Exclusion
from ...archiver.store import Store
from ...archiver.store.backups import Backups
from ...core.conversation import Kind, now
from ...core.deletion import DeletionState, ErasureCheck
from ...core.errors import CopyDamaged, InvalidInput, SourceUnreadable
from ...core.home import Home
from ...core.memory import EventKind, MemoryState, StoredMemory
from ...core.query import Mode, Query
from ...core.runtime import Reporter, silent, stage
from ...search.archive_search import ArchiveSearch
from ...search.index.generation import Generations
from ...search.index.indexer import LEASE as INDEX
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from ...search.query.query_analysis import unquoted

_PATIENCE: Final = 60.0
"""Seconds to wait for another process that builds an index."""
_READERS: Final = 5.0
"""Seconds to wait for processes that read the database."""


class ErasureResult(Struct, frozen=True):
    """Result of an erasure.

    `done` is true if no erased content remains. `problems` describe copies that still contain erased content.
    """

    done: bool
    problems: tuple[SourceUnreadable, ...] = ()


def erase_expired(home: Home, store: Store) -> None:
    """Begin to erase deletions that can no longer be undone. Requires the archiver's lease."""
    raw = RawArchive(home.archive)
    for deletion in Deletions(store, raw).expired(now()):
        expire(store, raw, deletion.id)


def expire(store: Store, raw: RawArchive, number: int) -> None:
    """Begin to erase a deletion and its memories. Requires the archiver's lease.

    Raises:
        InvalidInput: The deletion does not exist, or was already undone or erased.
    """

    def delete_memories() -> None:
        memories = store.memories.load(memories_of(store, number)).values()
        store.memories.delete([memory.key for memory in memories if memory.state is MemoryState.ARCHIVED])

    Deletions(store, raw).expire(number, delete_memories)


def context(number: int) -> str:
    """Return the text that identifies a deletion in the `context` of memory events."""
    return f"palaver forget, number {number}"


def memories_of(store: Store, number: int) -> list[int]:
    """Return the keys of the memories that a deletion removed."""
    return store.memory_events.in_context(context(number), EventKind.ARCHIVED)


def is_unfinished(store: Store) -> bool:
    """Return whether an erasure was begun but not finished."""
    return any(deletion.state is DeletionState.ERASING for deletion in store.tombstones.all())


def finish(
    home: Home, store: Store, exclusion: Exclusion, model: str | None = None, report: Reporter = silent
) -> ErasureResult:
    """Remove erased content from all files. Requires the archiver's lease. Repeated calls are harmless.

    Raises:
        LeaseHeld: Another process is building an index.
    """
    raw = RawArchive(home.archive)
    problems = CopyEraser(store, raw).finish(partial(report, "Erasing"))
    # Other problems of this ingest run do not concern the erasure. The next run reports them.
    Ingest(store, raw, exclusion).run((), partial(report, "Reading"), budget=None)
    left = store.tombstones.unfinished()
    with stage(report, "Indexing"):
        _rebuild_index(home, store, model)
    for log in home.root.glob(f"{home.log.name}*"):
        with suppress(FileNotFoundError), log.open("r+b") as file:
            file.truncate()
    done = compact(store, whole=False)
    if done:
        with store.transaction():
            for deletion in store.tombstones.all():
                if deletion.state is DeletionState.ERASING and deletion.id not in left:
                    store.tombstones.set_state(deletion.id, DeletionState.ERASED)
        done = compact(store, whole=False)
    return ErasureResult(done and not left, tuple(problems))


def compact(store: Store, *, whole: bool) -> bool:
    """Clear free database pages and the write-ahead log, and delete database backups.

    With `whole`, rewrite the database file. Return False if another process is reading the database.
    """
    Backups(store.home).remove()
    end = time.monotonic() + _READERS
    while not store.tombstones.compact(whole=whole):
        whole = False
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _rebuild_index(home: Home, store: Store, model: str | None) -> None:
    """Delete every index file, and rebuild the index. Searches use the database in the meantime."""
    with store.leases.hold(INDEX, _PATIENCE):
        for path in home.index.iterdir() if home.index.is_dir() else ():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL)).publish()


_MOST: Final = 48
"""Maximum number of texts to search for."""
_PER_EXCHANGE: Final = 4
_SEARCHES: Final = 6
_DISTINCTIVE: Final = re.compile(r"\w[\w .,:/=+()#-]{14,58}\w")
"""Pattern for text without quotes, backslashes and line ends, which is stored unescaped in every file format."""
_KINDS: Final = (Kind.PROMPT, Kind.RESULT, Kind.PROSE, Kind.CALL)
_BLOCK: Final = 4 << 20
_BATCH: Final = 200


def samples(store: Store, raw: RawArchive, plan: DeletionPlan, memories: Sequence[StoredMemory]) -> list[str]:
    """Return up to 48 texts that occur in the erased content and do not occur in the remaining content."""
    of_memories = (text for stored in memories for text in _DISTINCTIVE.findall(stored.memory.content)[:1])
    texts = list(dict.fromkeys(chain(of_memories, _of_sessions(plan), _of_exchanges(store, plan))))[: 2 * _MOST]
    for block in chain(_stored_text(store, plan, {stored.key for stored in memories}), _archived_text(raw, plan)):
        texts = [text for text in texts if not any(form in block for form in _forms(text))]
    return texts[:_MOST]


def check(home: Home, model: str | None, texts: Sequence[str], erased_ids: Collection[str]) -> ErasureCheck:
    """Search all files of the home and the index for these texts. `erased_ids` are IDs of items and sessions."""
    result = scan(home.root, texts)
    with ArchiveSearch(home, model) as search:
        for text in texts[:: max(1, len(texts) // _SEARCHES)][:_SEARCHES]:
            for mode in (Mode.TEXT, Mode.VECTOR):
                with suppress(InvalidInput):
                    results = search.find(Query.parse(unquoted(text), mode=mode))
                    result.searches += mode.value in results.searched
                    result.hits += [hit.id for hit in results.hits if {hit.id, hit.session_id} & {*erased_ids}]
    return result


def scan(root: Path, texts: Sequence[str]) -> ErasureCheck:
    """Search the names and contents of all files below a folder, including compressed content."""
    result, forms = ErasureCheck(len(texts)), [form for text in texts for form in _forms(text)]
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        is_match = any(form in name.encode("utf-8", "replace") for form in forms)
        try:
            if path.is_file():
                result.files, result.size = result.files + 1, result.size + path.stat().st_size
                is_match = is_match or any(_contains(file, forms) for file in _contents(path))
        except (FileNotFoundError, CopyDamaged):
            pass  # The file was deleted in the meantime, or its compressed data is damaged.
        except OSError:
            result.unreadable.append(name)
        if is_match:
            result.found.append(name)
    return result


def _forms(text: str) -> tuple[bytes, ...]:
    """Return the stored forms of a text: UTF-8, and JSON-escaped."""
    return tuple({text.encode("utf-8", "replace"), json.dumps(text)[1:-1].encode()})


def _contents(path: Path) -> Iterator[BinaryIO]:
    """Yield the content of a file, then its decompressed content."""
    with path.open("rb") as file:
        yield file
    if path.name.endswith(COMPRESSED_SUFFIX):
        with CompressedFile(path) as compressed:
            yield compressed
    elif path.suffix == SUFFIX:
        with as_lines(path.open("rb"), path) as packed:
            yield packed


def _contains(file: BinaryIO, forms: Sequence[bytes]) -> bool:
    overlap = max(map(len, forms), default=1) - 1
    window = b""
    while block := file.read(_BLOCK):
        window += block
        if any(form in window for form in forms):
            return True
        window = window[-overlap:] if overlap else b""
    return False


def _of_exchanges(store: Store, plan: DeletionPlan) -> Iterator[str]:
    """Yield texts from exchanges spread over the selection. For each exchange, prompts and tool output come first."""
    keys = sorted(plan.selection.exchanges)
    for key in keys[:: max(1, len(keys) // _MOST)]:
        for stored in store.exchanges.load([key]).values():
            turns = [turn for kind in _KINDS for turn in stored.exchange.turns if turn.kind is kind]
            texts = (max(_DISTINCTIVE.findall(turn.text), key=len, default="") for turn in turns)
            yield from list(dict.fromkeys(filter(None, texts)))[: max(_PER_EXCHANGE, _MOST // len(keys))]
        for observed in store.observations.of_exchange(key)[:1]:
            yield from _DISTINCTIVE.findall(observed.observation.title)[:1]


def _of_sessions(plan: DeletionPlan) -> Iterator[str]:
    for number in sorted(plan.selection.sessions)[: _MOST // 4]:
        session = plan.selector.sessions[number]
        yield from (text for text in (session.native_id, session.title) if _DISTINCTIVE.fullmatch(text))


def _stored_text(store: Store, plan: DeletionPlan, memories: Collection[int]) -> Iterator[bytes]:
    """Yield the text that remains in the database, including text that can be restored by undoing other deletions."""
    selection = plan.selection
    yield from store.deleted_rows.texts()
    titles = (session.title for number, session in plan.selector.sessions.items() if number not in selection.sessions)
    kept = (stored.memory for stored in store.memories.all() if stored.key not in memories)
    yield _joined(chain(titles, *((memory.title, memory.content) for memory in kept)))
    keys = [key for key in store.items.all_keys() if key not in selection.exchanges]
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        turns = (turn.text for stored in store.exchanges.load(batch).values() for turn in stored.exchange.turns)
        observed = store.observations.load(batch).values()
        remaining = (stored.observation for stored in observed if stored.exchange not in selection.exchanges)
        yield _joined(chain(turns, *((it.title, it.subtitle, it.narrative, *it.facts) for it in remaining)))


def _archived_text(raw: RawArchive, plan: DeletionPlan) -> Iterator[bytes]:
    """Yield the remaining lines of the copies, a few megabytes at a time."""
    for number, source in plan.selector.sources.items():
        if number in plan.selection.sources:
            continue
        lines, size = [str(source.path).encode("utf-8", "replace")], 0
        with suppress(CopyDamaged), reading_copy(raw, source.archived) as file:
            for line in split(file):
                if plan.includes(source, line.number):
                    continue
                lines.append(line.data)
                size += len(line.data)
                if size > _BLOCK:
                    yield b"\n".join(lines)
                    lines, size = [], 0
        yield b"\n".join(lines)


def _joined(texts: Iterable[str]) -> bytes:
    return "\n".join(texts).encode("utf-8", "replace")
