"""Settings of the language model: the provider, or the reason why no model is called, and private projects.

The text of a private project is never sent to a language model.
"""

import os
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from pathlib import PurePath
from urllib.parse import urlsplit

from ...archiver.store import Store, StoredExchange
from ...core.config import Config
from ...core.conversation import Session
from ...core.home import is_in_project
from ...core.memory import Memory, project_namespace
from .agent_command import AgentCommand
from .model_servers import ANTHROPIC, KEYS, OPENAI, OWN_KEY, MessagesApi, OpenAIApi
from .provider import TIMEOUT, ToolProvider


def why_off(config: Config) -> str:
    """Return the reason why the model is off, or an empty text if it may be called."""
    if config.llm == "command":
        return "" if config.llm_calls_day else "llm_calls_day is 0"
    name, needed = _key(config)
    key = os.environ.get(name) or not needed
    budget = config.may_spend
    if not key and not budget:
        return f"neither {name} nor a budget in config.toml is set"
    if not key:
        return f"{name} is not set"
    return "" if budget else "config.toml sets no budget, such as budget_month = 5.00"


def provider_of(config: Config, seconds: float = TIMEOUT) -> Callable[[], ToolProvider]:
    """Return a function that opens the language model of the settings. `seconds` is the timeout of a call."""

    def open_provider() -> ToolProvider:
        if config.llm == "command":
            return AgentCommand(config.llm_command, seconds)
        name, _ = _key(config)
        key = os.environ.get(name, "")
        if config.llm == "openai":
            return OpenAIApi(key, config.llm_url, seconds, name)
        return MessagesApi(key, config.llm_url, seconds, name)

    return open_provider


def _key(config: Config) -> tuple[str, bool]:
    """Return the environment variable with the key, and whether the server needs a key."""
    host = urlsplit(config.llm_url or (OPENAI if config.llm == "openai" else ANTHROPIC)).hostname or ""
    return KEYS.get(host, OWN_KEY), host in KEYS


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
