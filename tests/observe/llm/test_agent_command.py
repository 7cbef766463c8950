"""The user's own agent extracts observations: a real program, with limits on time and calls."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from palaver.core.home import OWN_PROMPT_MARK, is_own_folder
from palaver.core.reports import Extraction
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.model_extractor import ModelExtractor
from palaver.observe.llm.model_servers import KEYS
from palaver.observe.llm.provider import BudgetExhausted, ModelBusy, ModelRefused, ModelRequest
from palaver.observe.rules import VERSION

from .conftest import PROMPTS, Stage, changing_exchange

AGENT = Path(__file__).with_name("agent.py")
WORKER = Path(__file__).with_name("worker.py")
REQUEST = ModelRequest("agent", 100, "Say it.", "The text.", {"type": "object"})


class AgentRunner:
    """Archive whose extractor runs an agent."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.log = stage, folder / "log"

    def words(self, behaviour: str) -> tuple[str, ...]:
        return (sys.executable, str(AGENT), behaviour, str(self.log))

    def run(self, behaviour: str, seconds: float = 60.0, **settings: object) -> Extraction:
        """Run the extractor once, without any budget."""
        words = self.words(behaviour)
        values: dict[str, Any] = {"llm": "command", "llm_command": words, "budget_month": None} | settings
        return ModelExtractor(
            self.stage.store,
            self.stage.config(**values),
            PROMPTS,
            lambda: AgentCommand(words, seconds),
            exchanges=True,
            clock=lambda: self.stage.now,
            sleep=self.stage.slept.append,
        ).run()

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def runner(stage: Stage, tmp_path: Path) -> AgentRunner:
    return AgentRunner(stage, tmp_path)


def until(what: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """Return whether a process runs. An ended process does not run, even if its parent has not noticed yet."""
    state = Path(f"/proc/{process}/stat")
    if Path("/proc/self/stat").exists():
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
    return subprocess.run(["ps", "-p", str(process)], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("behaviour", ["claude", "codex", "gemini", "chatty"])
def test_observations_of_each_agent(runner: AgentRunner, behaviour: str) -> None:
    """Each agent's output becomes observations. Calls cost nothing, and their tokens are recorded."""
    runner.stage.say("one", changing_exchange(1), changing_exchange(2))

    result = runner.run(behaviour)

    assert (result.learned, result.failed, result.cost, result.stopped) == (2, 0, 0, None)
    assert runner.stage.extractors() == ["llm", "llm"]
    [row] = runner.stage.store.ledger.by_model()
    assert (row.calls, row.unanswered, row.cost) == (2, 0, 0)
    assert row.usage.tokens_out == (0 if behaviour == "chatty" else 400)
    assert runner.run(behaviour).asked == 0


def test_agent_gets_an_empty_folder_and_a_marked_prompt(runner: AgentRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent works in an empty folder that is deleted, and can tell that Palaver started it."""
    monkeypatch.setenv("CLAUDECODE", "1")
    runner.stage.say("one", changing_exchange(1))

    runner.run("claude")

    [call] = runner.calls()
    assert call["prompt"].startswith(OWN_PROMPT_MARK)
    assert '"additionalProperties":false' in call["prompt"]
    assert (call["files"], call["PALAVER_OWN_RUN"], call["CLAUDECODE"]) == ([], "1", "")
    assert is_own_folder(call["folder"])
    assert not Path(call["folder"]).exists()


def test_agent_gets_no_keys(runner: AgentRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment are not passed to the agent, so that its own account pays."""
    for key in (*KEYS.values(), "PALAVER_LLM_KEY"):
        monkeypatch.setenv(key, "k")
    runner.stage.say("one", changing_exchange(1))

    runner.run("claude")

    [call] = runner.calls()
    assert not {*KEYS.values(), "PALAVER_LLM_KEY"} & set(call["keys"])


def test_prompt_of_a_changed_template_is_marked(tmp_path: Path) -> None:
    """A prompt is marked even if the user's template has no mark."""
    log = tmp_path / "log"
    AgentCommand((sys.executable, str(AGENT), "chatty", str(log))).ask(REQUEST)

    assert json.loads(log.read_text())["prompt"].startswith(f"{OWN_PROMPT_MARK}\nSay it.")


@pytest.mark.parametrize("behaviour", ["refusing", "malformed"])
def test_useless_answers_are_not_asked_for_without_end(runner: AgentRunner, behaviour: str) -> None:
    """An answer without valid JSON changes nothing. The exchange is sent by three runs, then no more."""
    runner.stage.say("one", changing_exchange(1))

    failures = [runner.run(behaviour).failed for _ in range(4)]

    assert failures == [1, 1, 1, 0]
    assert runner.stage.extractors() == [VERSION]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("failing", "ended with status 1: no account: run /login"),
        ("unauthorised", "ended with status 41: Please set an Auth method"),
        ("erring", "You have reached your limit"),
    ],
)
def test_failing_agent_ends_the_run(runner: AgentRunner, behaviour: str, message: str) -> None:
    """An agent that always fails is called three times in a run."""
    runner.stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))

    result = runner.run(behaviour)

    assert isinstance(result.stopped, ModelRefused)
    assert message in str(result.stopped)
    assert (len(runner.calls()), result.given_up, result.waiting) == (3, 0, 3)
    runner.stage.later(3_600)
    assert runner.run("claude").learned == 5


def test_slow_agent_is_killed_with_its_children(runner: AgentRunner) -> None:
    """An agent that exceeds the time limit is killed with all processes that it started, and is retried later."""
    runner.stage.say("one", changing_exchange(1))

    result = runner.run("slow", seconds=3.0)

    assert result.failed == 1
    [call] = runner.calls()
    child = int(runner.log.with_suffix(".child").read_text())
    until(lambda: not is_running(call["pid"]) and not is_running(child))
    [row] = runner.stage.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (1, 1)
    runner.stage.later(3_600)
    assert runner.run("claude").learned == 1


@pytest.mark.parametrize("behaviour", ["leaving", "detached"])
def test_answer_of_an_agent_that_leaves_a_process_behind(tmp_path: Path, behaviour: str) -> None:
    """The answer is used although a process that the agent started keeps its output open."""
    log = tmp_path / "log"
    try:
        answer = AgentCommand((sys.executable, str(AGENT), behaviour, str(log))).ask(REQUEST)
    finally:
        child = int(log.with_suffix(".child").read_text())
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    assert "The text." in answer.text


def test_large_output_ends_the_call(tmp_path: Path) -> None:
    """An agent that writes without end is killed, and the call may have been charged."""
    log = tmp_path / "log"
    with pytest.raises(ModelBusy, match="larger than 32 MB") as caught:
        AgentCommand((sys.executable, str(AGENT), "endless", str(log))).ask(REQUEST)

    assert caught.value.maybe_charged
    assert not is_running(json.loads(log.read_text())["pid"])


def test_repeated_timeouts_end_the_run(runner: AgentRunner) -> None:
    """Three timeouts in a row end the run."""
    runner.stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))

    result = runner.run("slow", seconds=0.5)

    assert isinstance(result.stopped, ModelBusy)
    assert (result.failed, result.given_up, result.waiting) == (3, 0, 3)


def test_missing_program_ends_the_run(stage: Stage) -> None:
    """A program that does not exist ends the run, and uses neither an attempt nor a call of the daily limit."""
    stage.say("one", changing_exchange(1))
    words = ("no-such-agent-of-palaver",)
    config = stage.config(llm="command", llm_command=words, llm_calls_day=1)

    results = [
        ModelExtractor(stage.store, config, PROMPTS, lambda: AgentCommand(words), exchanges=True).run()
        for _ in range(2)
    ]

    for result in results:
        assert isinstance(result.stopped, ModelRefused)
        assert "no-such-agent-of-palaver cannot be started" in str(result.stopped)
        assert (result.waiting, result.failed) == (1, 0)


def test_calls_a_day_are_limited(runner: AgentRunner) -> None:
    """The limit of calls holds over runs, counts failed calls, and ends after 24 hours."""
    runner.stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))

    first = runner.run("claude", llm_calls_day=2)
    second = runner.run("claude", llm_calls_day=2)

    assert (first.learned, second.learned, second.waiting) == (2, 0, 3)
    assert isinstance(second.stopped, BudgetExhausted)
    assert second.stopped.setting == "llm_calls_day"
    runner.stage.later(25 * 3_600)
    assert runner.run("failing", llm_calls_day=2).failed == 2
    assert len(runner.calls()) == 4


def test_two_processes_share_the_limit(runner: AgentRunner) -> None:
    """A call that another process makes at the same time counts."""
    runner.stage.say("one", changing_exchange(1), changing_exchange(2))
    running = runner.run("slow", seconds=0.5, llm_calls_day=1)

    assert isinstance(running.stopped, BudgetExhausted)
    assert len(runner.calls()) <= 1


def test_killed_palaver_keeps_its_reservation(runner: AgentRunner) -> None:
    """After SIGKILL during a call, the call counts for the daily limit, and the exchange is sent again."""
    runner.stage.now = round(time.time() * 1000)
    runner.stage.say("one", changing_exchange(1))
    command = [sys.executable, str(WORKER), str(runner.stage.history.folder), str(runner.log), "agent"]
    with subprocess.Popen([*command, *runner.words("slow")], start_new_session=True) as running:
        until(lambda: runner.log.with_suffix(".child").exists())
        os.kill(running.pid, signal.SIGKILL)
    os.killpg(runner.calls()[0]["pid"], signal.SIGKILL)

    [lost] = runner.stage.store.ledger.by_model()
    assert (lost.calls, lost.unanswered) == (1, 1)
    runner.stage.later(700)
    assert isinstance(runner.run("claude", llm_calls_day=1).stopped, BudgetExhausted)
    assert runner.run("claude", llm_calls_day=2).learned == 1


def test_interrupted_call_ends_the_agent(runner: AgentRunner) -> None:
    """Ctrl-C during a call kills the agent, and the exchange stays in the queue."""
    runner.stage.say("one", changing_exchange(1))
    command = [sys.executable, str(WORKER), str(runner.stage.history.folder), str(runner.log), "agent"]
    with subprocess.Popen([*command, *runner.words("slow")], stderr=subprocess.DEVNULL) as running:
        until(lambda: runner.log.with_suffix(".child").exists())
        running.send_signal(signal.SIGINT)
        running.wait(60)

    child = int(runner.log.with_suffix(".child").read_text())
    until(lambda: not is_running(runner.calls()[0]["pid"]) and not is_running(child))
    assert runner.run("claude").learned == 1


def test_interpreter_beside_the_agent_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent with a full path finds the interpreter in its folder, also in a service with another PATH."""
    (tmp_path / "node").symlink_to(sys.executable)
    program = tmp_path / "agent"
    program.write_text(f"#!/usr/bin/env node\n{AGENT.read_text().partition(chr(10))[2]}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    answer = AgentCommand((str(program), "gemini", str(tmp_path / "log"))).ask(REQUEST)

    assert "The text." in answer.text


def test_agent_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is searched on PATH, and needs no shell."""
    program = tmp_path / "bin" / "my-agent"
    program.parent.mkdir()
    shutil.copy(AGENT, program)
    monkeypatch.setenv("PATH", f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")

    answer = AgentCommand(("my-agent", "gemini", str(tmp_path / "log"))).ask(REQUEST)

    assert "The text." in answer.text
