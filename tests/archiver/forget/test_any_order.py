"""Sessions, forks, erasures and newer rules in any order: nothing erased returns, and nothing else is lost."""

# pyright: reportPrivateUsage=false

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from palaver.archiver.copies import masking
from palaver.archiver.copies.inspection import names
from palaver.archiver.copies.recovery import Recovery
from palaver.archiver.copies.sealing import Sealer
from palaver.archiver.forget.erasing import Erasing
from palaver.archiver.forget.forgetting import Forgetting
from palaver.archiver.forget.oblivion import Oblivion
from palaver.archiver.forget.selection import Selector
from palaver.archiver.intake import ingest, rereading
from palaver.archiver.parse.reading import Boundaries
from palaver.archiver.privacy.exclusion import Exclusion
from palaver.archiver.redaction import VERSION, Redactor
from palaver.archiver.store import Store, sources
from palaver.core import ids
from palaver.core.forgetting import Wanted

from ..formats.claude import written
from ..history import History, talk

STEPS = ("session", "grow", "fork", "resume", "rewrite", "copy", "forget", "erase", "whole", "undo", "rules", "seal",
         "vanish", "lose")  # fmt: skip


class World:
    """A history that grows, and what ought to be known of it."""

    def __init__(self, root: Path, draw: Callable[[Any], Any], versions: list[str]) -> None:
        self.history, self._draw, self._versions = History(root), draw, versions
        self.files: dict[str, list[str]] = {}
        """The words of each session's file, in order; `w:session` where another session's name stands on the lines."""
        self.said: set[str] = set()
        self.erased: set[str] = set()
        self.forgotten: dict[int, set[str]] = {}
        self.kept_elsewhere: set[str] = set()
        """What was forgotten where it was said first, and then erased with a fork that says it again. Whether the other
        copy keeps it, to be undone, depends on how the fork repeats it: nothing is held of these words.
        """
        self._wrote: dict[str, set[str]] = {}
        """All words that a session's file ever held."""
        self._words = self._at = self._sessions = 0

    def step(self, name: str) -> None:
        note(name)
        getattr(self, f"_{name}")()
        self.ingest()
        self.check()

    def ingest(self) -> None:
        done = self.history.ingest()
        assert not done.problems
        self.said |= {word.partition(":")[0] for words in self.files.values() for word in words}

    def check(self) -> None:
        history = self.history
        known, erased = self.said - self.kept_elsewhere, self.erased - self.kept_elsewhere
        gone = erased.union(*self.forgotten.values())
        stored = {each.exchange.prompt for each in history.stored()}
        assert len(stored) == len(history.stored())
        assert stored - {f"{word}?" for word in self.kept_elsewhere} == {f"{word}?" for word in known - gone}
        held = b""
        for name in names(history.home.archive):
            with history.raw.open(name) as file:
                held += file.read()
        assert [word for word in sorted(erased) if f"{word}?".encode() in held] == []
        assert [word for word in sorted(known - erased) if f"{word}?".encode() not in held] == []
        assert history.store.sources.unaccounted() == []

    def _session(self) -> None:
        self._write(self._name(), self._new())

    def _grow(self) -> None:
        if session := self._some(self.files):
            self._write(session, [*self.files[session], *self._new()])

    def _fork(self, *, own_name: bool = True) -> None:
        """A new file that says first what another said, in its own name."""
        if origin := self._some(self.files):
            words = self.files[origin][: self._draw(st.integers(1, 4))]
            kept = words if own_name else [word if ":" in word else f"{word}:{origin}" for word in words]
            plain = [word.partition(":")[0] for word in kept] if own_name else kept
            self._write(self._name(), [*plain, *self._new(0)])

    def _resume(self) -> None:
        """The same, byte for byte."""
        self._fork(own_name=False)

    def _rewrite(self) -> None:
        """A file whose beginning is another."""
        if session := self._some(self.files):
            self._write(session, [*self._new(), *self.files[session]])

    def _copy(self) -> None:
        if session := self._some(self.files):
            self.history.write(self._lines(session), session, project="elsewhere", at=self._now())

    def _forget(self, *, erase: bool = False, whole: bool = False) -> None:
        stored = self.history.stored()
        if not stored:
            return
        places = {each.key: each.session for each in stored}
        key = self._some(places)
        target = self.history.store.sessions.load(places[key]).native_id if whole else ids.show("exchange", key)
        selector = Selector(self.history.store, self.history.raw)
        forgetting = Forgetting(self.history.store, self.history.raw)
        plan = forgetting.plan(selector, selector.select(Wanted(targets=(target,), erase=erase)))
        gone = {one.exchange.prompt[:-1] for one in stored if one.key in plan.selected.exchanges}
        # With a whole session goes what was forgotten of it before.
        for number in plan.selected.sources:
            copy = self.history.copy(self.history.store.sources.load(number))
            before = {word for each in self.forgotten.values() for word in each if f"{word}?".encode() in copy}
            gone |= before
            self.kept_elsewhere |= {word for word in before if erase and self._files_with(word) > 1}
        note(f"{target}: {gone}")
        number = forgetting.forget(plan, erase=erase, also=lambda _: None)
        if erase:
            self.erased |= gone
        else:
            self.forgotten[number] = gone

    def _files_with(self, word: str) -> int:
        return sum(word in words for words in self._wrote.values())

    def _erase(self) -> None:
        self._forget(erase=True)

    def _whole(self) -> None:
        self._forget(erase=self._draw(st.booleans()), whole=True)

    def _undo(self) -> None:
        if number := self._some(self.forgotten):
            Forgetting(self.history.store, self.history.raw).undo(number)
            del self.forgotten[number]

    def _rules(self) -> None:
        self._versions.append(f"newer-{len(self._versions)}")
        for module in (ingest, masking, rereading, sources):
            vars(module)["VERSION"] = self._versions[-1]

    def _seal(self) -> None:
        Sealer(self.history.store, self.history.raw).run()

    def _vanish(self) -> None:
        """The agent deletes a file."""
        if len(self.files) > 1:
            session = self._some(self.files)
            self.history.path(session).unlink(missing_ok=True)
            self.history.path(session, "elsewhere").unlink(missing_ok=True)
            del self.files[session]

    def _lose(self) -> None:
        """The database is gone; it is made anew as `palaver rebuild --from-archive` does."""
        history = self.history
        history.store.close()
        for path in history.home.root.glob("palaver.db*"):
            path.unlink()
        history.store = Store.create(history.home.database)
        key = history.home.key()
        boundaries = Boundaries(history.home.root, Redactor(key), Exclusion(), Oblivion(history.store, key))
        erasing = Erasing(history.store, history.raw)
        erasing.suspect(list(names(history.home.archive)))
        assert not erasing.finish()
        history.ingest()
        assert not Recovery(history.store, history.raw, boundaries).run().problems

    def _write(self, session: str, words: list[str]) -> None:
        self.files[session] = words
        self._wrote.setdefault(session, set()).update(word.partition(":")[0] for word in words)
        self.history.write(self._lines(session), session, at=self._now())

    def _lines(self, session: str) -> bytes:
        told = ((word.partition(":")[0], word.partition(":")[2] or session) for word in self.files[session])
        return b"".join(written(talk(word, session=name)) for word, name in told)

    def _new(self, least: int = 1) -> list[str]:
        count = self._draw(st.integers(least, 3))
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


@settings(max_examples=20, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_in_any_order(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """After each step exactly what was said and not forgotten is known, once; no copy holds what was erased."""
    version = VERSION
    with (
        patch.object(ingest, "VERSION", version),
        patch.object(masking, "VERSION", version),
        patch.object(rereading, "VERSION", version),
        patch.object(sources, "VERSION", version),
    ):
        world = World(tmp_path_factory.mktemp("any"), data.draw, [version])
        with world.history:
            world.step("session")
            for name in data.draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=9)):
                world.step(name)
