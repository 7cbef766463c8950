"""Process that calls a provider and kills itself after receiving a reply, before saving it: `worker.py HOME URL`.

With `worker.py HOME LOG agent WORDS...` it runs an agent about single exchanges, and does not kill itself.
"""

import os
import signal
import sys
from pathlib import Path

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.model_extractor import ModelExtractor
from palaver.observe.llm.model_servers import MessagesApi
from palaver.observe.llm.provider import Answer, ModelRequest, Provider
from palaver.templates.render import Renderer


class KilledProvider(MessagesApi):
    """Provider that kills its process when it has a reply."""

    def ask(self, request: ModelRequest) -> Answer:
        answer = super().ask(request)
        os.kill(os.getpid(), signal.SIGKILL)
        return answer


def main(home: str, url: str, *agent: str) -> None:
    words = agent[1:]
    config = Config(llm="command", llm_command=words) if agent else Config(budget_month=10.0, llm_url=url)

    def provider() -> Provider:
        return AgentCommand(words) if agent else KilledProvider("key", url)

    with Store.open(Path(home) / "palaver.db") as store:
        ModelExtractor(store, config, Renderer().prompts, provider, exchanges=True).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
