"""Settings of language models: API keys, servers on this machine, private projects, and call statistics.

Local servers are found at the usual ports of known programs, with the names of their models. The text of a private
project is never sent to a language model.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, json

from ...archiver.store import Store, StoredExchange
from ...core.config import Config
from ...core.conversation import Session
from ...core.home import is_in_project
from ...core.memory import Memory, project_namespace
from ...core.reports import Stats
from .http_replies import LOOPBACK
from .ledger import Budget, Ledger

KEYS: Final = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Key variables of known servers. Each key is sent only to its own server."""
OWN_KEY: Final = "PALAVER_LLM_KEY"
"""Environment variable with the key for a server that has no variable of its own."""


PORTS: Final = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""Default port of each program."""
_TIMEOUT: Final = 0.5
_REMOTE_TIMEOUT: Final = 10.0
_BYTES_MAX: Final = 1_000_000


class LocalServer(Struct, frozen=True):
    """Server on this machine, and the names of its models."""

    name: str
    url: str
    models: tuple[str, ...]


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


def local_servers() -> list[LocalServer]:
    """Return the servers that list at least one model."""
    addresses = [(name, f"http://{LOOPBACK}:{port}/v1") for name, port in PORTS.items()]
    found = [(name, url, models_at(url, timeout=_TIMEOUT)) for name, url in addresses]
    return [LocalServer(name, url, models) for name, url, models in found if models]


def models_at(url: str, headers: Mapping[str, str] | None = None, timeout: float = _REMOTE_TIMEOUT) -> tuple[str, ...]:
    """Return the names of the models of a server. Return an empty tuple if no such server answers, or lists none."""
    address = urlsplit(url)
    # Unlike urllib, these clients never use a proxy.
    client = HTTPSConnection if address.scheme == "https" else HTTPConnection
    try:
        connection = client(address.hostname or "", address.port, timeout=timeout)
    except ValueError:  # The port is not a number.
        return ()
    try:
        connection.request("GET", f"{address.path.rstrip('/')}/models", headers=dict(headers or {}))
        content = connection.getresponse().read(_BYTES_MAX)
        return tuple(model.id for model in json.decode(content, type=_Models).data)
    except (OSError, HTTPException, ValueError):  # The port is closed, or another program uses it.
        return ()
    finally:
        connection.close()


_COMPARED = 100
"""Number of most recent exchanges whose tokens are compared with those of their observations. This takes 0.5 s."""


def load_stats(store: Store, config: Config) -> Stats:
    """Return costs, budgets, replies and token savings."""
    ledger = Ledger(store, Budget.of(config), run="")
    return Stats(
        spent=store.ledger.by_model(),
        left=ledger.left(),
        calls_left=ledger.calls_left(config.llm_name),
        replies=store.ledger.outcomes(),
        reading=store.ledger.reading_costs(_COMPARED),
        injections=store.injections.totals(),
    )


class PrivateProjects:
    """Private projects, identified by name or by a folder that contains them.

    Sessions are cached, so create a new instance after an ingest run.
    """

    def __init__(self, store: Store, projects: Collection[str]) -> None:
        self._store, self._projects = store, frozenset(projects)
        self._namespaces = self._namespaces_of(projects)
        self._sessions: dict[int, Session] = {}

    def includes(self, stored: StoredExchange) -> bool:
        """Return whether an exchange belongs to a private project."""
        if not self._projects:
            return False
        if stored.session not in self._sessions:
            self._sessions[stored.session] = self._store.sessions.load(stored.session)
        session = self._sessions[stored.session]
        return self._matches(session.project, session.cwd) or self._matches("", stored.exchange.cwd)

    def includes_place(self, name: str, *folders: str) -> bool:
        """Return whether a project is private by its name, or by a folder in which its agent worked."""
        return self._matches(name, *folders)

    def includes_memory(self, memory: Memory) -> bool:
        """Return whether a memory belongs to a private project.

        The result depends on its namespace, project, file and session. If none of these names a folder, a session in a
        private folder makes all memories of projects with the same name private.
        """
        if not self._projects:
            return False
        space, _, name = memory.namespace.partition(":")
        if memory.namespace in self._namespaces or self._matches(name, memory.project, memory.path):
            return True
        locations = {
            location
            for native_id in {memory.session_id, name if space == "session" else ""} - {""}
            for location in self._store.sessions.projects(native_id)
        }
        if any(self._matches(*location) for location in locations):
            return True
        named = {memory.namespace if space == "project" else "global", project_namespace(memory.project)} - {"global"}
        located = {project_namespace(project) for project, folder in locations if folder}
        names_folder = any(PurePath(path).is_absolute() for path in (memory.project, memory.path))
        return not (names_folder or named <= located or named.isdisjoint(self._namespaces_in_private_folders))

    @cached_property
    def _namespaces_in_private_folders(self) -> set[str]:
        """Namespaces of all projects with a session in a private folder."""
        return self._namespaces_of(
            name for name, folder in self._store.sessions.projects() if self._matches(name, folder)
        )

    def _namespaces_of(self, names: Iterable[str]) -> set[str]:
        """Return the namespaces of all projects with these names. Several projects can share a name."""
        return {space for name in set(names) for space in self._store.projects.namesakes(name)}

    def _matches(self, name: str, *folders: str) -> bool:
        """Return whether a name is private, or a folder is private or inside a private folder."""
        return is_in_project(self._projects, name, *folders)
