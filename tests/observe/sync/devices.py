"""Machines that share a folder through a careless sync tool, for tests of the synchronisation."""

import os
import random
import signal
from pathlib import Path
from typing import Final

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import ARCHIVER, Store
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.core.memory import Memory, MemoryRevision, MemoryState
from palaver.core.sync_report import SyncReport
from palaver.observe.archive import Archive
from palaver.observe.sync.keyring import DeviceKey, device_id

from ... import crash_injection
from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user

PASSPHRASE: Final = "correct horse"
DURABLE: Final = frozenset({"fsync", "replace", "rename", "unlink", "truncate"})
"""Functions that change what survives a kill."""


def exchange(session: str, word: str) -> bytes:
    """Return two lines of a transcript with a word that occurs nowhere else."""
    lines = [
        user(f"Why does the {word} fail at the checkout?", uuid=f"{word}-asked"),
        assistant(text(f"The {word} has no address."), id=f"msg-{word}"),
    ]
    place = {"sessionId": session, "cwd": "/home/demo/shop", "gitBranch": "main"}
    return jsonl([{**line, **place} for line in lines])


class Machine:
    """Machine with its own home, its own transcripts, and its own replica of the shared folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, Home(root / "palaver")
        self.transcripts, self.replica = root / "projects" / "shop", root / "shared"
        self.transcripts.mkdir(parents=True)
        self.replica.mkdir()

    def write(self, session: str, word: str, padding: int = 0) -> None:
        """Append an exchange and a line of `padding` bytes to a transcript, and archive it."""
        with (self.transcripts / f"{session}.jsonl").open("ab") as file:
            file.write(exchange(session, word))
            file.write(b"{}".ljust(padding) + b"\n" if padding else b"")
        self.ingest()

    def ingest(self) -> None:
        """Archive the transcripts."""
        self.home.prepare()
        with Store.create(self.home.database) as store, store.leases.hold(ARCHIVER):
            paths = list(self.transcripts.glob("*.jsonl"))
            Ingest(store, RawArchive(self.home.archive)).run(in_paths(paths))

    def sync(self) -> SyncReport:
        """Synchronise once."""
        with Archive(self.home) as archive:
            return archive.synchronizer(PASSPHRASE).exchange(str(self.replica))

    def killed_sync(self, at: int) -> bool:
        """Synchronise in another process that is killed at a durable step. Return whether it was killed."""

        def is_durable(event: str, called: object) -> bool:
            return event == "c_call" and getattr(called, "__name__", "") in DURABLE

        child = os.fork()
        if child == 0:
            try:
                crash_injection.run_with_crash(self.sync, at, is_durable)
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    def words(self) -> set[str]:
        """Return the words in the prompts that a search can find."""
        if not self.home.has_database:
            return set()
        with Store.of(self.home) as store:
            return {prompt.text.split()[3] for prompt in store.exchanges.prompts()}

    def forget(self, word: str, *, erase: bool) -> int | None:
        """Delete the exchange with a word. Return the number of the deletion."""
        with Archive(self.home) as archive:
            request = DeletionRequest(mentions=f"{word} fail", erase=erase)
            preview = archive.deletions.preview(request)
            return None if preview.is_empty else archive.deletions.delete(request, preview.token).number

    def undo(self, number: int) -> None:
        """Take a deletion back."""
        with Archive(self.home) as archive:
            archive.deletions.undo(number)

    def memories(self) -> dict[str, str]:
        """Return the state of each memory that is not erased by its content."""
        if not self.home.has_database:
            return {}
        with Store.of(self.home) as store:
            return {memory.memory.content: memory.state for memory in store.memories.all()}

    def remember(self, content: str) -> None:
        """Store a memory."""
        with Archive(self.home) as archive:
            archive.memories.remember(Memory(content, "fact", namespace="project:shop"))

    def revise(self, before: str, after: str) -> None:
        """Edit the memory with a content."""
        with Archive(self.home) as archive:
            for memory in self._with(archive, before):
                archive.memories.revise(memory, MemoryRevision(content=after))

    def forget_memory(self, content: str) -> None:
        """Forget the memory with a content."""
        with Archive(self.home) as archive:
            archive.memories.forget(self._with(archive, content))

    def _with(self, archive: Archive, content: str) -> list[str]:
        stored = archive.store.memories.all()
        return [
            memory.id for memory in stored if memory.memory.content == content and memory.state is MemoryState.ACTIVE
        ]


def carry(source: Machine, target: Machine, chance: random.Random | None = None) -> None:
    """Copy the files of a replica to another one. With `chance`, lose, cut, delay and duplicate some of them."""
    names = [path.relative_to(source.replica) for path in source.replica.rglob("*") if path.is_file()]
    if chance is not None:
        chance.shuffle(names)
    for name in names:
        copy = target.replica / name
        fault = chance.random() if chance is not None else 1.0
        if fault < 0.25 or name.parts[0].endswith(_owner(target)):
            continue
        copy.parent.mkdir(exist_ok=True)
        data = (source.replica / name).read_bytes()
        if fault < 0.4:
            copy.write_bytes(data[: len(data) // 2])
            continue
        if fault < 0.5:
            copy.with_name(f"{name.stem} (conflicted copy){name.suffix}").write_bytes(data)
        copy.write_bytes(data)
    if chance is None or chance.random() < 0.5:
        for path in list(target.replica.rglob("*")):
            name = path.relative_to(target.replica)
            if path.is_file() and name.parts[0].endswith(_owner(source)) and name not in names:
                path.unlink()


def _owner(machine: Machine) -> str:
    """Return the ID of the device that a machine is. Nobody else writes below it."""
    key = DeviceKey(machine.home.root / "sync" / "device.key").load()
    return device_id(key.public_key().public_bytes_raw()) if key else "none"
