"""Provider that runs the user's own coding agent without its user interface, such as `claude -p`.

The agent gets the prompt on standard input and runs in an empty folder. It may write a transcript. Palaver recognises
this transcript as its own by the prompt and the folder. The environment variable `OWN_RUN` disables Palaver's hooks and
server within the agent.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Final

import orjson

from ...core.recursion import OWN_FOLDER, OWN_PROMPT_MARK, OWN_RUN
from ...core.spending import Usage
from ...core.text import readable
from .agent_output import read_output
from .api_keys import KEYS, OWN_KEY
from .http_status import TIMEOUT
from .json_turn import converse_in_json
from .model_errors import ModelBusy, ModelRefused, RequestRefused
from .model_request import ModelRequest
from .provider import Answer
from .reply_limits import BYTES_MAX, too_large
from .tool_turn import ToolRequest, ToolTurn

_NESTED: Final = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Environment variables that are removed, because an agent that finds them refuses to start inside another session."""
_KEYS: Final = frozenset({*KEYS.values(), OWN_KEY})
"""Environment variables that are not passed to the agent, so that the user's subscription pays for its calls."""
_MESSAGE_MAX: Final = 300
"""Maximum characters of an agent's error message that an error quotes."""
_STEP: Final = 0.1
"""Seconds between two checks of a running agent."""
_ONLY_JSON: Final = (
    "Do not use any tool. Reply with one JSON object that is valid under this JSON schema, and nothing else:"
)


class AgentCommand:
    """Coding agent that is started once for each request. The agent's own account pays for the calls."""

    def __init__(self, words: Sequence[str], seconds: float = TIMEOUT) -> None:
        self._words, self._seconds = list(words), seconds

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request.

        Raises:
            ModelRefused: The program cannot be started.
            ModelBusy: The program did not end within the time limit, or wrote too much.
            RequestRefused: The program reported an error.
        """
        with TemporaryDirectory(prefix=OWN_FOLDER, ignore_cleanup_errors=True) as folder:
            status, output, errors = self._run(_prompt(request), folder)
        text = output.decode("utf-8", "replace")
        found = read_output(text)
        if status or found.error:
            reason = found.error or _reason(errors.decode("utf-8", "replace")) or text
            reason = " ".join(readable(reason).split())[-_MESSAGE_MAX:]
            raise RequestRefused(f"{self._words[0]} ended with status {status}: {reason}", maybe_charged=True)
        return Answer(found.text, "", found.usage or Usage(), text)

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the agent's next message in a conversation with tools, which Palaver runs.

        Raises the errors of `ask`.
        """
        return converse_in_json(self, request)

    def close(self) -> None:
        """Do nothing: each request has its own process."""

    def _run(self, prompt: str, folder: str) -> tuple[int, bytes, bytes]:
        """Run the program in its own process group. Return the exit status, standard output and standard error."""
        environment = {name: value for name, value in os.environ.items() if name not in _NESTED | _KEYS}
        program = Path(self._words[0])
        if program.is_absolute():
            # An installed agent needs its interpreter, such as node, which is not on the PATH of a service.
            environment["PATH"] = f"{program.parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
        # Use files instead of pipes. A pipe stays open while a process that the agent left behind keeps it open.
        with TemporaryFile() as question, TemporaryFile() as output, TemporaryFile() as errors:
            question.write(prompt.encode("utf-8", "replace"))
            question.seek(0)
            with self._start(folder, environment, question, output, errors) as process:
                try:
                    self._wait(process, output, errors)
                finally:
                    # Stop the agent also after Ctrl-C, and stop programs that it left behind.
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
            return process.returncode, _content(output), _content(errors)

    def _start(self, folder: str, environment: Mapping[str, str], *files: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start the program, with these files as standard input, output and error."""
        question, output, errors = files
        try:
            return subprocess.Popen(
                self._words,
                cwd=folder,
                env={**environment, OWN_RUN: "1"},
                stdin=question,
                stdout=output,
                stderr=errors,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            hint = "Check llm_command in config.toml, or run `palaver observe --setup`."
            raise ModelRefused(f"{self._words[0]} cannot be started: {error}", 0, hint=hint) from None

    def _wait(self, process: "subprocess.Popen[bytes]", *files: IO[bytes]) -> None:
        """Wait until the program ends. Raise `ModelBusy` if it takes too long or writes too much to the files."""
        end, ended = time.monotonic() + self._seconds, False
        while not ended:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STEP)
                ended = True
            if any(os.fstat(file.fileno()).st_size > BYTES_MAX for file in files):
                raise too_large(f"the output of {self._words[0]}")
            if not ended and time.monotonic() > end:
                message = f"{self._words[0]} did not end within {self._seconds:g} s"
                raise ModelBusy(message, maybe_charged=True)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _reason(errors: str) -> str:
    """Return the message in standard error. Gemini CLI writes it as JSON."""
    return read_output(errors).error or errors


def _prompt(request: ModelRequest) -> str:
    schema = orjson.dumps(request.schema).decode()
    prompt = f"{request.system}\n\n{request.text}\n\n{_ONLY_JSON}\n{schema}\n"
    return prompt if prompt.startswith(OWN_PROMPT_MARK) else f"{OWN_PROMPT_MARK}\n{prompt}"
