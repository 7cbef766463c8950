"""Fixtures: a provider on a local socket, an archive with rule-based observations, and an extractor."""

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.reports import Extraction
from palaver.core.runtime import silent
from palaver.observe.llm.model_extractor import ModelExtractor
from palaver.observe.llm.model_servers import MessagesApi
from palaver.observe.pipeline import observe_pending
from palaver.templates.render import Renderer

from ...search.history import History, Said
from .server import FakeProvider

PROMPTS = Renderer().prompts
START = 1_790_000_000_000
ANSWER = "The cache was emptied on every start because its folder had the version in its name; now it has not."
SESSIONS = ("one", "two", "three", "four", "five")


def changing_exchange(number: int, answer: str = ANSWER) -> Said:
    """Return the content of an exchange that changed a file."""
    return Said(
        f"Why is the cache of part {number} cold after each start? Please find out and repair it.",
        f"{answer} That was part {number}, and the tests of it pass again after the repair of the loader.",
        at=START - number * 60_000,
        writes=(f"/code/app/{number}.py",),
    )


@dataclass
class Stage:
    """One archive with its clock and extractor. `slept` contains the waiting times in seconds."""

    history: History
    provider: FakeProvider
    opened: ExitStack
    now: int = START
    slept: list[float] = field(default_factory=list[float])
    seconds: float = 10.0

    @property
    def store(self) -> Store:
        return self.history.store

    def config(self, **settings: object) -> Config:
        values: dict[str, object] = {"budget_month": 10.0, "llm_url": self.provider.url} | settings
        return Config(**values)  # type: ignore[arg-type]

    def extractor(self, *, exchanges: bool = False, **settings: object) -> ModelExtractor:
        return ModelExtractor(
            self.store,
            self.config(**settings),
            PROMPTS,
            lambda: self.opened.enter_context(MessagesApi("test-key", self.provider.url, self.seconds)),
            exchanges=exchanges,
            clock=lambda: self.now,
            sleep=self.slept.append,
        )

    def run(self, *, exchanges: bool = False, **settings: object) -> Extraction:
        """Run the extractor once, about sessions or about single exchanges."""
        return self.extractor(exchanges=exchanges, **settings).run()

    def say(self, session: str, *exchanges: Said) -> list[int]:
        """Archive an exchange and extract its observations by rules."""
        keys = self.history.say(session, *exchanges)
        observe_pending(self.store, silent)
        return keys

    def later(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def extractors(self) -> list[str]:
        """Return the extractor of each stored observation."""
        keys = self.store.items.all_keys()
        found = self.store.observations.of_exchanges(keys)
        learned = [one for key in sorted(found) for one in found[key] if not one.summary]
        return [one.observation.extractor.partition(":")[0] for one in learned]


@pytest.fixture
def stage(tmp_path: Path, provider: FakeProvider) -> Generator[Stage]:
    """Return an empty archive."""
    with ExitStack() as opened:
        history = History(tmp_path)
        opened.callback(history.store.close)
        yield Stage(history, provider, opened)
