"""Command lines with which agents resume a session or start with a prompt. docs/resume.md names the sources.

The folders of an agent's sessions are those of its format: `by_agent(agent).roots()`.
"""

import re
import shlex
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.conversation import Session, SessionKind
from .transcript_format import UUID

_UUID: Final = re.compile(UUID)


class ResumeCommand(Struct, frozen=True):
    """Command lines of one agent, as arguments with the placeholders `{id}`, `{path}`, `{folder}` and `{prompt}`."""

    resume: tuple[str, ...]
    """Arguments that resume the session `{id}` in its project folder."""
    one_file: bool
    """True if the agent stores each session in one file, so that a deleted session can be restored."""
    prompted: tuple[str, ...] = ()
    """Arguments that start a new session with the first prompt `{prompt}`. Empty if that session ends after it."""
    id_pattern: re.Pattern[str] = _UUID
    elsewhere: tuple[str, ...] = ()
    """Arguments that resume a session in another folder. Empty if the agent cannot, or if it is unknown."""
    container: str = ""
    """Name of the database or folder whose sessions can be resumed, if the agent has others too."""

    def can_resume(self, session: Session, path: Path) -> bool:
        """Return whether the agent can resume a session. `path` is the path of its source."""
        is_valid = self.id_pattern.fullmatch(session.native_id) is not None
        is_listed = not self.container or path.parent.name == self.container
        return session.kind is SessionKind.MAIN and is_valid and is_listed

    def arguments(self, session: Session, path: Path, folder: Path) -> list[str]:
        """Return the arguments that resume a session in a folder, or an empty list if the agent cannot."""
        template = self.resume if str(folder) == session.cwd else self.elsewhere
        return [part.format(id=session.native_id, path=path, folder=folder) for part in template]

    def arguments_with(self, prompt: str) -> list[str]:
        """Return the arguments that start a new session with a prompt."""
        return [part.format(prompt=prompt) for part in self.prompted]


COMMANDS: Final[dict[str, ResumeCommand]] = {
    "claude-code": ResumeCommand(
        resume=("claude", "--resume", "{id}"),
        prompted=("claude", "{prompt}"),
        one_file=True,
        elsewhere=("claude", "--resume", "{path}"),
    ),
    "codex": ResumeCommand(
        resume=("codex", "resume", "{id}"),
        prompted=("codex", "{prompt}"),
        one_file=True,
        elsewhere=("codex", "resume", "--cd", "{folder}", "{id}"),
    ),
    "copilot": ResumeCommand(
        resume=("copilot", "--resume={id}"), prompted=("copilot", "--interactive", "{prompt}"), one_file=False
    ),
    "crush": ResumeCommand(
        resume=("crush", "--session", "{id}"),
        one_file=False,
        container="crush.db",
    ),
    "cursor": ResumeCommand(
        resume=("cursor-agent", "--resume={id}"),
        prompted=("cursor-agent", "{prompt}"),
        one_file=False,
        container="store.db",
    ),
    "droid": ResumeCommand(resume=("droid", "--resume", "{id}"), prompted=("droid", "{prompt}"), one_file=False),
    "gemini": ResumeCommand(
        resume=("gemini", "--resume", "{id}"), prompted=("gemini", "--prompt-interactive", "{prompt}"), one_file=True
    ),
    "goose": ResumeCommand(
        resume=("goose", "session", "--resume", "--session-id", "{id}"),
        prompted=("goose", "run", "--interactive", "--text", "{prompt}"),
        one_file=False,
        id_pattern=re.compile(r"\d{8}_\d{1,9}"),
        container="sessions.db",
    ),
    "gptme": ResumeCommand(
        resume=("gptme", "--name", "{id}"),
        prompted=("gptme", "{prompt}"),
        one_file=False,
        id_pattern=re.compile(r"\d{4}-\d\d-\d\d-[0-9A-Za-z][0-9A-Za-z_-]{0,99}"),
    ),
    "junie": ResumeCommand(
        resume=("junie", "--resume", "--session-id", "{id}"),
        one_file=False,
        id_pattern=re.compile(r"session-\d{6}-\d{6}-[0-9a-z]{4}"),
    ),
    "kiro": ResumeCommand(
        resume=("kiro-cli", "chat", "--resume-id", "{id}"),
        prompted=("kiro-cli", "chat", "{prompt}"),
        one_file=False,
        container="cli",
    ),
    "grok": ResumeCommand(resume=("grok", "--resume", "{id}"), prompted=("grok", "{prompt}"), one_file=False),
    "hermes": ResumeCommand(
        resume=("hermes", "--resume", "{id}"),
        prompted=("hermes", "chat", "--query", "{prompt}"),
        one_file=False,
        id_pattern=re.compile(r"\d{8}_\d{6}_[0-9a-f]{6,8}"),
        container="state.db",
    ),
    "opencode": ResumeCommand(
        resume=("opencode", "--session", "{id}"),
        prompted=("opencode", "--prompt", "{prompt}"),
        one_file=False,
        id_pattern=re.compile(r"ses_[0-9A-Za-z]{8,64}"),
    ),
    "openhands": ResumeCommand(
        resume=("openhands", "--resume", "{id}"),
        prompted=("openhands", "--task", "{prompt}"),
        one_file=False,
        id_pattern=re.compile(rf"[0-9a-f]{{32}}|{UUID}"),
        container="base_state.json",
    ),
    "pi": ResumeCommand(
        resume=("pi", "--session", "{id}"),
        prompted=("pi", "{prompt}"),
        one_file=True,
        elsewhere=("pi", "--session", "{path}"),
    ),
    "qwen-code": ResumeCommand(
        resume=("qwen", "--resume", "{id}"), prompted=("qwen", "--prompt-interactive", "{prompt}"), one_file=True
    ),
    "vibe": ResumeCommand(resume=("vibe", "--resume", "{id}"), prompted=("vibe", "{prompt}"), one_file=False),
}
"""Commands by agent. Agents that are not listed cannot resume a session."""


def shell_line(arguments: list[str], folder: Path) -> str:
    """Return the shell command that runs a program in a folder."""
    return f"cd {shlex.quote(str(folder))} && {shlex.join(arguments)}"


def resume_line(session: Session, short_id: str, path: Path, *, contained: bool) -> str:
    """Return the shell command that resumes a session, or an empty string if its agent cannot resume it.

    If the project folder or the agent's file is missing, the command is `palaver resume`.

    Args:
        session: The session.
        short_id: Its short ID.
        path: Path of its source.
        contained: Whether the source is a part of a database.
    """
    command = COMMANDS.get(session.agent)
    if command is None or not command.can_resume(session, path):
        return ""
    folder = Path(session.cwd)
    if session.cwd and folder.is_dir() and (path.parent if contained else path).exists():
        return shell_line(command.arguments(session, path, folder), folder)
    return shlex.join(["palaver", "resume", short_id])
