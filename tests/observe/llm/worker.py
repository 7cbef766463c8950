"""Process that calls a provider and kills itself at a chosen moment.

worker.py HOME URL asked      after receiving a reply, before saving it
worker.py HOME URL sent       after submitting a batch, before saving its name
worker.py HOME URL taken      after receiving the second result of a batch
"""

import os
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.observe.llm import model_extractor
from palaver.observe.llm.provider import Answer, BatchResult, Provider
from palaver.templates.prompts import ExtractionPrompts
from palaver.templates.render import Renderer


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KilledProvider(Provider):
    """Provider that kills its process at a chosen moment."""

    moment = ""

    def ask(self, params: Mapping[str, Any]) -> Answer:
        answer = super().ask(params)
        if self.moment == "asked":
            die()
        return answer

    def submit(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        name = super().submit(requests)
        if self.moment == "sent":
            die()
        return name

    def results(self, name: str) -> Generator[BatchResult]:
        for number, outcome in enumerate(super().results(name)):
            if self.moment == "taken" and number == 2:
                die()
            yield outcome


def main(home: str, url: str, moment: str) -> None:
    KilledProvider.moment = moment
    if moment != "asked":
        model_extractor.NEWEST = 0
    with Store.open(Path(home) / "palaver.db") as store:
        config = Config(budget_month=10.0, llm_url=url)
        model_extractor.ModelExtractor(
            store, config, ExtractionPrompts(Renderer()), lambda: KilledProvider("key", url)
        ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
