"""Deletions are correct after any sequence of forks, crashes, rebuilds and other steps."""

# pyright: reportPrivateUsage=false

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from palaver.archiver.copies.verification import CopyCompressor, archived_names
from palaver.archiver.deletion.deletions import CopyEraser, Deletions
from palaver.archiver.deletion.suppression import SuppressionList
from palaver.archiver.ingest import recovery
from palaver.archiver.ingest.recovery import Recovery
from palaver.archiver.reading.parsing import Exclusion
from palaver.archiver.reading.source_reader import IngestFilters
from palaver.archiver.redaction import VERSION, Redactor
from palaver.archiver.store import Store, source_table
from palaver.archiver.store.database import Database
from palaver.core import ids
from palaver.core.deletion import DeletionRequest, DeletionState

from ..formats.claude_code.claude_lines import jsonl
from ..history import History, named, talk

STEPS = ("session", "grow", "rewind", "fork", "resume", "rewrite", "copy", "forget", "erase", "whole", "undo", "expire",
         "rules", "compress", "vanish", "kill", "lose")  # fmt: skip


class World:
    """History that changes step by step, with the content that the archive must contain."""

    def __init__(self, root: Path, draw: Callable[[Any], Any], versions: list[str]) -> None:
        self.history, self._draw, self._versions = History(root), draw, versions
        self.files: dict[str, list[str]] = {}
        """Words in each session's file, in order.

        A word has the form `word:session` if the lines contain another session's ID.
        """
        self.origins: dict[str, str] = {}
        """Origin to which the lines of a fork refer, by session."""
        self.ingested: set[str] = set()
        self.erased: set[str] = set()
        self.deleted: dict[int, set[str]] = {}
        """Words of each deletion that can still be undone, by number."""
        self._before: dict[str, str] = {}
        """Earlier word that a word follows after a rewind."""
        self._words = self._at = self._sessions = 0

    def step(self, name: str) -> None:
        note(name)
        getattr(self, f"_{name}")()
        self.ingest()
        self.check()

    def ingest(self) -> None:
        done = self.history.ingest()
        assert not done.problems
        self.ingested |= {word.partition(":")[0] for words in self.files.values() for word in words}

    def check(self) -> None:
        history = self.history
        gone = self.erased.union(*self.deleted.values())
        assert sorted(each.exchange.prompt for each in history.stored()) == sorted(
            f"{w}?" for w in self.ingested - gone
        )
        content = b""
        for name in archived_names(history.home.archive):
            with history.raw.open(name) as file:
                content += file.read()
        assert [word for word in sorted(self.erased) if f"{word}?".encode() in content] == []
        assert [word for word in sorted(self.ingested - self.erased) if f"{word}?".encode() not in content] == []
        assert history.store.sources.unaccounted() == []
        integrity = history.store.integrity
        assert not [*integrity.dangling(), *integrity.outside_source(), *integrity.without_evidence()]
        for name, origin in self.origins.items():
            self._check_origin(name, origin)

    def _check_origin(self, name: str, origin: str) -> None:
        """Assert that a fork has no exchange that its origin contains."""
        find = self.history.store.sessions.find
        fork, first = find("claude-code", name), find("claude-code", origin)
        if name in self.files and origin in self.files and origin not in self.origins:
            own = {word.partition(":")[0] for word in self.files[origin] if ":" not in word}
            prompts = {each.exchange.prompt[:-1] for each in self.history.stored() if each.session == fork}
            assert not prompts & own, (fork, first)

    def _session(self) -> None:
        self._write(self._name(), self._new())

    def _grow(self) -> None:
        if session := self._some(self.files):
            self._write(session, [*self.files[session], *self._new()])

    def _rewind(self) -> None:
        """Append an exchange that follows an earlier exchange, as after a rewind."""
        if session := self._some(self.files):
            [word] = new = self._new(1, most=1)
            self._before[word] = self._some([word.partition(":")[0] for word in self.files[session]])
            self._write(session, [*self.files[session], *new])

    def _fork(self, *, own_name: bool = True) -> None:
        """Write a fork, which may be older than its origin. With `own_name`, all lines contain its session ID."""
        if origin := self._some(self.files):
            words = self.files[origin][: self._draw(st.integers(1, 4))]
            kept = words if own_name else [word if ":" in word else f"{word}:{origin}" for word in words]
            plain = [word.partition(":")[0] for word in kept] if own_name else kept
            name = self._name()
            if own_name and self._draw(st.booleans()):
                self.origins[name] = origin
            self._write(name, [*plain, *self._new(0)])

    def _resume(self) -> None:
        """Write a resumed session, which repeats its origin byte for byte."""
        self._fork(own_name=False)

    def _rewrite(self) -> None:
        """Rewrite a file with additional lines at its beginning."""
        if session := self._some(self.files):
            self._write(session, [*self._new(), *self.files[session]])

    def _copy(self) -> None:
        if session := self._some(self.files):
            self.history.write(self._lines(session), session, project="elsewhere", at=self._now())

    def _forget(self, *, erase: bool = False, whole: bool = False) -> None:
        stored = self.history.stored()
        if not stored:
            return
        words = {each.key: each.exchange.prompt[:-1] for each in stored}
        key = self._some(words)
        target = ids.show("exchange", key)
        gone = {words[key]}
        if whole:
            session = next(each.session for each in stored if each.key == key)
            target = self.history.store.sessions.load(session).native_id
            gone = self._words_of(session) - (set() if erase else set[str]().union(*self.deleted.values()))
        deletions = Deletions(self.history.store, self.history.raw)
        note(f"{target}: {gone}")
        number = deletions.delete(deletions.plan(DeletionRequest(targets=(target,), erase=erase)))
        if erase:
            self.erased |= gone
            self.deleted = {each: words for each, words in self.deleted.items() if not words <= self.erased}
            kept = {each.id for each in self.history.store.tombstones.all() if each.state is DeletionState.KEPT}
            assert kept == self.deleted.keys()
        else:
            self.deleted[number] = gone

    def _words_of(self, session: int) -> set[str]:
        """Return the words whose lines belong to a session, including deleted words."""
        sources = self.history.store.sources
        records = {named(f"{word}-asked"): word for word in self.ingested}
        places = sources.locate(records)
        return {records[record] for record, (source, _) in places.items() if sources.session_of(source) == session}

    def _erase(self) -> None:
        self._forget(erase=True)

    def _whole(self) -> None:
        self._forget(erase=self._draw(st.booleans()), whole=True)

    def _undo(self) -> None:
        if number := self._some(self.deleted):
            Deletions(self.history.store, self.history.raw).undo(number)
            del self.deleted[number]

    def _expire(self) -> None:
        """End the undo period of a deletion."""
        if number := self._some(self.deleted):
            deletions = Deletions(self.history.store, self.history.raw)
            deletions.expire(number)
            self.ingest()
            self.erased |= self.deleted.pop(number)

    def _kill(self) -> None:
        """Interrupt an ingest run at a random database write."""
        self._grow()
        history, left = self.history, self._draw(st.integers(0, 60))
        run = Database.run

        def dying(database: Database, *arguments: Any) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return run(database, *arguments)

        with patch.object(Database, "run", dying), suppress(KeyboardInterrupt):
            history.ingest()
        history.store.close()
        history.store = Store.open(history.home.database)

    def _rules(self) -> None:
        self._versions.append(f"newer-{len(self._versions)}")
        for module in (recovery, source_table):
            vars(module)["VERSION"] = self._versions[-1]

    def _compress(self) -> None:
        CopyCompressor(self.history.store, self.history.raw).run()

    def _vanish(self) -> None:
        """Delete the agent's files of a session, unless it is the only session."""
        if len(self.files) > 1:
            session = self._some(self.files)
            self.history.path(session).unlink(missing_ok=True)
            self.history.path(session, "elsewhere").unlink(missing_ok=True)
            del self.files[session]

    def _lose(self) -> None:
        """Delete the database, and rebuild it as `palaver rebuild --from-archive` does."""
        history = self.history
        history.store.close()
        for path in history.home.root.glob("palaver.db*"):
            path.unlink()
        history.store = Store.create_anew(history.home.database)
        key = history.home.key()
        boundaries = IngestFilters(history.home.root, Redactor(key), Exclusion(), SuppressionList(history.store, key))
        eraser = CopyEraser(history.store, history.raw)
        eraser.schedule(archived_names(history.home.archive))
        assert not eraser.finish()
        history.ingest()
        assert not Recovery(history.store, history.raw, boundaries).run().problems

    def _write(self, session: str, words: list[str]) -> None:
        self.files[session] = words
        at = self._now()
        self.history.write(self._lines(session), session, at=-at if session in self.origins else at)

    def _lines(self, session: str) -> bytes:
        owners = ((word.partition(":")[0], word.partition(":")[2] or session) for word in self.files[session])
        origin = {"forkedFrom": {"sessionId": self.origins.get(session, ""), "messageUuid": "m"}}
        more = origin if session in self.origins else {}
        return b"".join(
            jsonl({**line, **more} for line in self._after(word, talk(word, session=name))) for word, name in owners
        )

    def _after(self, word: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        before = {"parentUuid": named(f"{self._before[word]}-answered")} if word in self._before else {}
        return [{**lines[0], **before}, *lines[1:]]

    def _new(self, least: int = 1, *, most: int = 3) -> list[str]:
        count = self._draw(st.integers(least, most))
        self._words += count
        return [f"word{number:03}" for number in range(self._words - count, self._words)]

    def _name(self) -> str:
        self._sessions += 1
        return f"{self._sessions:08}-0000-4000-8000-000000000000"

    def _some(self, choices: Any) -> Any:
        return self._draw(st.sampled_from(sorted(choices))) if choices else None

    def _now(self) -> int:
        self._at += 1
        return self._at


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_deletions_are_correct_after_any_steps(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """After any steps, the store has each exchange that was not deleted once, and no copy has erased content."""
    version = VERSION
    with (
        patch.object(recovery, "VERSION", version),
        patch.object(source_table, "VERSION", version),
    ):
        world = World(tmp_path_factory.mktemp("any"), data.draw, [version])
        with world.history:
            world.step("session")
            for name in data.draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=9)):
                world.step(name)
