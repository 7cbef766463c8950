"""Process that calls a provider and kills itself at a chosen moment.

worker.py HOME URL asked      after receiving a reply, before saving it
worker.py HOME URL summary    after receiving a reply about a session, before saving it
worker.py HOME URL sent       after submitting a batch, before saving its name
worker.py HOME URL taken      after receiving the second result of a batch

With `worker.py HOME LOG agent WORDS...` it runs an agent, and does not kill itself.
"""

import os
import signal
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.observe.llm import model_extractor
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.messages_api import MessagesApi
from palaver.observe.llm.model_request import ModelRequest
from palaver.observe.llm.provider import Answer, BatchResult
from palaver.templates.prompts import ExtractionPrompts
from palaver.templates.render import Renderer


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KilledProvider(MessagesApi):
    """Provider that kills its process at a chosen moment."""

    moment = ""

    def ask(self, request: ModelRequest) -> Answer:
        answer = super().ask(request)
        if self.moment == "asked" or (self.moment == "summary" and "<session-" in request.text):
            die()
        return answer

    def submit(self, requests: Sequence[tuple[str, ModelRequest]]) -> str:
        name = super().submit(requests)
        if self.moment == "sent":
            die()
        return name

    def results(self, name: str) -> Generator[BatchResult]:
        for number, outcome in enumerate(super().results(name)):
            if self.moment == "taken" and number == 2:
                die()
            yield outcome


def main(home: str, url: str, moment: str, *words: str) -> None:
    KilledProvider.moment = moment
    if moment == "agent":
        with Store.open(Path(home) / "palaver.db") as store:
            config = Config(llm="command", llm_command=words)
            prompts = ExtractionPrompts(Renderer())
            model_extractor.ModelExtractor(store, config, prompts, lambda: AgentCommand(words)).run()
        return
    if moment not in {"asked", "summary"}:
        model_extractor.NEWEST = 0
    with Store.open(Path(home) / "palaver.db") as store:
        config = Config(budget_month=10.0, llm_url=url)
        model_extractor.ModelExtractor(
            store, config, ExtractionPrompts(Renderer()), lambda: KilledProvider("key", url)
        ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
