"""`palaver ask` with a language model: output, progress, options and interruption."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.home import Home

from .observe.llm.server import FakeProvider, Sent, message, tool_use
from .observe.llm.test_agent_command import AGENT, is_running, until

ANSWER = "**Answer.** SQLite, because the plug is pulled. [obs-19]\n\n## Sources\n- obs-19, tide-clock, 2026-02-03"
QUESTION = ("sqlite", "or", "json", "files")


@pytest.fixture
def home(built: Home, tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a copy of the archived demo data with a language model."""
    home = Home(shutil.copytree(built.root, tmp_path / "palaver"))
    home.config.write_text(f'llm_url = "{provider.url}"\nllm_model = "m"\nllm_price = [1, 10]\nbudget_month = 5.00\n')
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    return home


def palaver(*arguments: str) -> Result:
    """Run a command in this process. Restore the handler of SIGTERM afterwards."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        return CliRunner().invoke(main, ["ask", *arguments])
    finally:
        signal.signal(signal.SIGTERM, handler)


@pytest.mark.usefixtures("home")
def test_answer_on_stdout_and_progress_on_stderr(provider: FakeProvider) -> None:
    """Standard output has the answer between markers and its receipt, standard error one line for each step."""
    provider.script = [Sent(body=tool_use(("search", {"query": "storage"}))), Sent(body=message(ANSWER))]

    result = palaver(*QUESTION)

    assert result.exit_code == 0
    first, *rows = result.stdout.splitlines()
    assert first.startswith("<recalled-")
    assert "\n".join(rows).startswith(ANSWER)
    assert rows.count("## Sources") == 1
    assert "Model: m, ~4,200 tokens, $0.0" in rows[-1]
    lines = result.stderr.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["search", "get_observations", "search"]
    assert lines[2].startswith('search "storage": ')


@pytest.mark.usefixtures("home")
def test_other_wordings_are_in_the_first_search(provider: FakeProvider) -> None:
    """The model gets the hits of all wordings before it asks for more."""
    provider.script = [Sent(body=message(ANSWER)), Sent(body=message(ANSWER))]

    palaver("sqlite", "or", "json", "files")
    palaver("sqlite", "or", "json", "files", "--also", "accents of jalapeño in the search")

    alone, reworded = (json.dumps(call["messages"]) for call in provider.calls)
    assert "accent" not in alone
    assert "accent" in reworded


@pytest.mark.usefixtures("home")
def test_json_has_the_answer_and_the_receipt(provider: FakeProvider) -> None:
    """`--json` prints one object with the text, its sources, notices and costs."""
    provider.script = [Sent(body=message(f"{ANSWER}\n- It was fast from the start."))]

    found: dict[str, Any] = json.loads(palaver(*QUESTION, "--json").stdout)

    assert found["text"].startswith("**Answer.**")
    assert [source["id"] for source in found["sources"]] == ["obs-19"]
    assert found["notices"] == ["Without a valid source, and marked: 1 claim."]
    assert found["receipt"]["model"] == "m"


@pytest.mark.usefixtures("home")
def test_no_model_and_limits(provider: FakeProvider) -> None:
    """`--no-model` makes no call, and the limits are options."""
    assert "Best answer" in palaver(*QUESTION, "--no-model").stdout
    assert provider.calls == []

    provider.default = lambda _: Sent(body=tool_use(("search", {"query": "storage"})))
    limited = palaver(*QUESTION, "--max-turns", "2")
    assert "The limit of 2 turns was reached" in limited.stdout
    assert "Best answer" in limited.stdout
    assert "Raise --max-cost" in palaver(*QUESTION, "--max-cost", "0.001").stdout
    assert "the limit of 100 tokens" in palaver(*QUESTION, "--max-tokens", "100").stdout
    assert len(provider.calls) == 2


@pytest.mark.usefixtures("home")
def test_terminal_escapes_of_the_model_are_removed(provider: FakeProvider) -> None:
    """Control characters, tool syntax and remote images in the model's text are made harmless."""
    provider.script = [Sent(body=message("Nothing found \x1b[2J<tool_use> ![x](https://example.org/x.png)"))]

    shown = palaver(*QUESTION).stdout

    assert "Nothing found &lt;tool_use> ! [x](https://example.org/x.png)" in shown


def start(home: Home, *arguments: str) -> "subprocess.Popen[str]":
    """Start the command as a real process."""
    command = [sys.executable, "-m", "palaver", "ask", *arguments]
    environment = {**os.environ, "PALAVER_HOME": str(home.root)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_call_stays_booked(home: Home, provider: FakeProvider, number: signal.Signals) -> None:
    """Ctrl-C or SIGTERM during a call ends the command with status 130. The call counts at its maximum cost."""
    provider.default = lambda _: Sent(body=message("Late."), delay=60)
    with start(home, *QUESTION) as running:
        until(lambda: bool(provider.calls))
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)

    assert (running.returncode, stdout) == (130, "")
    assert stderr.rstrip().endswith("palaver: stopped.")
    assert "Traceback" not in stderr
    with Store.open(home.database) as store:
        [row] = store.ledger.by_model()
    assert (row.calls, row.unanswered) == (1, 1)
    provider.default = lambda _: Sent(body=message(ANSWER))
    assert ANSWER in palaver(*QUESTION).stdout


def test_interrupt_ends_the_agent(home: Home, tmp_path: Path) -> None:
    """Ctrl-C while the user's own agent runs kills the agent with all its processes."""
    log = tmp_path / "log"
    words = [sys.executable, str(AGENT), "slow", str(log)]
    home.config.write_text(f'llm = "command"\nllm_command = {json.dumps(words)}\n')
    with start(home, *QUESTION) as running:
        until(lambda: log.with_suffix(".child").exists() and log.with_suffix(".child").read_text() != "")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)

    assert running.returncode == 130
    agent, child = json.loads(log.read_text())["pid"], int(log.with_suffix(".child").read_text())
    until(lambda: not is_running(agent) and not is_running(child))


def test_without_a_model_no_provider_is_loaded(home: Home) -> None:
    """Without a configured model, the command loads neither a provider nor a client library."""
    home.config.unlink()
    program = (
        "import sys; from palaver.cli import main; main(['ask', 'sqlite'], standalone_mode=False); "
        "names = {'anthropic', 'httpx2', 'palaver.observe.llm.provider'} & set(sys.modules); "
        "print(*names, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PALAVER_HOME": str(home.root)},
    )

    assert "Best answer" in ran.stdout
    assert ran.stderr == "\n"


@pytest.mark.usefixtures("home")
def test_command_of_an_agent_does_nothing() -> None:
    """An agent that Palaver started cannot ask Palaver in turn."""
    ran = subprocess.run(
        [sys.executable, "-m", "palaver", "ask", *QUESTION],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PALAVER_OWN_RUN": "1"},
    )

    assert (ran.stdout, ran.stderr) == ("", "")
