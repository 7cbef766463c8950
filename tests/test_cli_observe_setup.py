"""`palaver observe --setup`: finding, comparing and configuring language models."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main
from palaver.cli.model import suggestion
from palaver.core.config import Config
from palaver.core.home import DEMO, Home
from palaver.observe.llm import model_servers
from palaver.observe.llm.agent_command import known_agents
from palaver.observe.llm.model_servers import KEYS
from palaver.observe.llm.model_settings import provider_of, why_off
from palaver.observe.llm.provider import ModelRequest, RequestRefused

from .observe.llm import agent
from .observe.llm.server import FakeProvider, Sent, serving


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def home(built: Home, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Home:  # noqa: ARG001
    """Return a copy of the archived demo data on a machine without agents, servers and keys."""
    home = Home(shutil.copytree(built.root, tmp_path / "palaver"))
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    for key in KEYS.values():
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setattr(model_servers, "PORTS", {"Ollama": 9})
    return home


@pytest.fixture
def server(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:  # noqa: ARG001
    """Return a local server at the port of Ollama."""
    with serving() as server:
        server.models = ["qwen3:8b", "other"]
        monkeypatch.setattr(model_servers, "PORTS", {"LM Studio": 9, "Ollama": int(server.url.rpartition(":")[2])})
        yield server


def chat(body: dict[str, Any]) -> Sent:
    """Reply like a good model of a server with chat completions."""
    choice = {"message": {"content": agent.reply(body["messages"][1]["content"])}, "finish_reason": "stop"}
    return Sent(body={"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})


def palaver(*arguments: str, answers: str = "") -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, input=answers)


def choices() -> list[dict[str, Any]]:
    """Return the choices in the JSON output."""
    result = palaver("observe", "--setup", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.stdout)["choices"]
    return found


@pytest.mark.usefixtures("home")
def test_nothing_to_choose() -> None:
    """Without an agent, a server and a key, the command says so."""
    assert choices() == []
    assert "No coding agent on PATH, no local server and no API key found." in palaver("observe", "--setup").stdout


def test_choosing_an_agent(home: Home, programs: Path, tmp_path: Path) -> None:
    """An installed agent is offered with the calls and days that it needs. The choice is written and works."""
    script = f"#!/bin/sh\nexec python3 {agent.__file__} claude {tmp_path / 'log'}\n"
    (programs / "claude").write_text(script)
    (programs / "claude").chmod(0o755)
    home.config.write_text('# mine\nexclude = ["secret-*"]\nllm_command = [\n  "old",\n]\nllm_calls_day = 3\n')

    result = palaver("observe", "--setup", answers="1\n")

    assert result.exit_code == 0, result.output
    estimate = json.loads(palaver("observe", "--estimate", "--json").stdout)
    total = estimate["calls"]
    assert f"1. Claude Code: {total} calls of your account" in result.stdout
    assert f"in {-(-total // 3)} days (at most 3 calls a day)" in result.stdout
    kept, settings = home.config.read_text().split('llm = "command"\n')
    assert kept == '# mine\nexclude = ["secret-*"]\nllm_calls_day = 3\n'
    assert settings.startswith(f'llm_command = ["{programs}/claude", "-p"')
    assert not (tmp_path / "log").exists()
    done = json.loads(palaver("observe", "--json").stdout)
    assert (done["cards"], done["cost"], done["waiting"]) == (3, 0, total - 3)
    assert "limit of llm_calls_day" in done["stopped"]
    assert json.loads(palaver("stats", "--json").stdout)["calls_left"] == 0
    assert "Model calls left today (limit llm_calls_day): 0" in palaver("stats").stdout
    assert "Each request is one call of your agent, at most 3 in 24 hours" in palaver("observe", "--estimate").stdout


def test_choosing_a_local_server(home: Home, server: FakeProvider) -> None:
    """A server at a usual port is offered with its models, costs nothing, and needs no key and no budget."""
    server.default = chat
    [choice] = choices()
    assert choice["models"] == ["qwen3:8b", "other"]

    result = palaver("observe", "--setup", answers="1\nother\n")

    assert "`palaver watch` sends old and new sessions after ten minutes" in result.stdout
    assert "1. Ollama at http://127.0.0.1:" in result.stdout
    config = Config.read(home.config)
    assert (config.llm, config.llm_model, config.llm_price) == ("openai", "other", (0, 0))
    done = json.loads(palaver("observe", "--json").stdout)
    assert done["cards"] == len(server.calls)
    assert (done["cost"], done["waiting"], done["stopped"]) == (0, 0, None)
    assert {call["model"] for call in server.calls} == {"other"}


def test_choosing_a_key(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment is offered with the cost, and a monthly budget is asked for."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    home.config.write_text('llm = "openai"\nllm_url = "http://127.0.0.1:1/v1"\nllm_price = [0, 0]\n')

    result = palaver("observe", "--setup", answers="1\n2.5\n")

    assert "1. claude-haiku-5-5 at api.anthropic.com with ANTHROPIC_API_KEY: $" in result.stdout
    assert "(price list of" in result.stdout
    config = Config.read(home.config)
    assert config == Config(budget_month=2.5)
    assert why_off(config) == ""

    palaver("observe", "--setup", answers="2\nqwen/qwen3\n0.1\n0.4\n")
    assert Config.read(home.config) == Config(
        llm="openai",
        llm_model="qwen/qwen3",
        llm_url="https://openrouter.ai/api/v1",
        llm_price=(0.1, 0.4),
        budget_month=2.5,
    )


def test_a_local_server_is_set_up_without_questions(home: Home, server: FakeProvider) -> None:
    """`--use ollama --yes` makes one trial call, shows its result, and writes the settings. Other lines are kept."""
    server.default = chat
    home.config.write_text('exclude = ["secret-*"]\n')

    result = palaver("observe", "--setup", "--use", "ollama", "--yes")

    assert (result.exit_code, result.stderr, len(server.calls)) == (0, "", 1)
    trial = r"^Trial call \(\d+\.\d s, 9 output tokens\): “The agent's title”, with 1 proven fact\."
    assert re.search(trial, result.stdout)
    assert "model qwen3:8b" in result.stdout
    config = Config.read(home.config)
    assert (config.llm, config.llm_model, config.llm_price) == ("openai", "qwen3:8b", (0, 0))
    assert (config.exclude, config.llm_url) == (("secret-*",), f"{server.url}/v1")
    assert why_off(config) == ""

    shown = json.loads(palaver("observe", "--setup", "--use", server.url, "--model", "other", "--yes", "--json").stdout)
    assert (shown["settings"]["llm_model"], shown["trial"]["facts"]) == ("other", 1)


def test_an_unknown_model_is_refused_with_the_list(home: Home, server: FakeProvider) -> None:
    """A model that the server does not list is refused with its list, before any call. Nothing is written."""
    for use in ("ollama", f"{server.url}/v1"):
        result = palaver("observe", "--setup", "--use", use, "--model", "qwen9", "--yes")
        assert result.exit_code != 0
        assert "has no model qwen9" in result.stderr
        assert "Choose one of: qwen3:8b, other." in result.stderr
    assert server.calls == []
    assert not home.config.exists()


def test_a_failed_trial_writes_nothing(home: Home, server: FakeProvider) -> None:
    """If the model does not answer, the error is shown and the settings stay. An unusable reply is shown and saved."""
    server.default = lambda _: Sent(500, {"error": "out of memory"})
    result = palaver("observe", "--setup", "--use", "ollama", "--yes")
    assert (result.exit_code, "out of memory" in result.stderr) == (1, True)
    assert not home.config.exists()

    server.default = lambda _: Sent(body={"choices": [{"message": {"content": "Hm."}, "finish_reason": "stop"}]})
    shown = palaver("observe", "--setup", "--use", "ollama", "--yes").stdout
    assert "the reply is not usable" in shown
    assert Config.read(home.config).llm == "openai"


def test_an_agent_is_set_up_without_questions(home: Home, programs: Path, tmp_path: Path) -> None:
    """`--use claude` calls the installed agent once, with the model that is named."""
    script = f"#!/bin/sh\nexec python3 {agent.__file__} claude {tmp_path / 'log'}\n"
    (programs / "claude").write_text(script)
    (programs / "claude").chmod(0o755)

    result = palaver("observe", "--setup", "--use", "claude", "--model", "sonnet", "--yes")

    assert result.exit_code == 0, result.output
    assert "“The agent's title”" in result.stdout
    command = Config.read(home.config).llm_command
    assert command[command.index("--model") + 1] == "sonnet"
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_without_yes_the_use_is_confirmed(home: Home, server: FakeProvider) -> None:
    """Without `--yes`, nothing is sent before the user agrees."""
    result = palaver("observe", "--setup", "--use", "ollama", answers="n\n")

    assert (result.exit_code != 0, server.calls, home.config.exists()) == (True, [], False)


@pytest.mark.usefixtures("home")
def test_unknown_and_missing_programs_are_refused() -> None:
    """A name that is not known, not installed, not running or without a key is refused with what to do."""
    refused = {
        "gpt": "Use one of: claude, codex, gemini, ollama",
        "claude": "claude is not on PATH",
        "ollama": "does not answer on this machine",
        "anthropic": "ANTHROPIC_API_KEY is not set",
        "https://openrouter.ai/api/v1": "or write llm_price = [IN, OUT]",
    }
    missing = [
        use for use, why in refused.items() if why not in palaver("observe", "--setup", "--use", use, "--yes").stderr
    ]
    assert missing == []


def test_up_names_a_model_once(programs: Path, tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `palaver up` names an agent that could write cards, unless a model is configured."""
    (programs / "codex").symlink_to(sys.executable)
    assert suggestion(home, Config()) == "codex"
    assert suggestion(home, Config(llm="command", llm_command=("x",))) == ""
    assert suggestion(home, Config(budget_month=5.0)) == ""
    folder = tmp_path / ".claude" / "projects" / "-app"
    folder.mkdir(parents=True)
    source = next(DEMO.rglob("*.jsonl"))
    (folder / source.name).write_bytes(source.read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "fresh"))

    shown = [palaver("up").stdout for _ in range(2)]

    assert ["observe --setup --use codex --yes" in each for each in shown] == [True, False]


def test_choosing_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a choice, no file is written."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    assert "Nothing was changed." in palaver("observe", "--setup", answers="\n").stdout
    assert not home.config.exists()


def test_gemini_gets_a_policy_without_tools(home: Home, programs: Path) -> None:
    """For Gemini CLI, a policy is written that denies every tool."""
    (programs / "gemini").symlink_to(sys.executable)

    palaver("observe", "--setup", answers="1\n")

    policy = Path(Config.read(home.config).llm_command[-1])
    assert policy == home.root / "no-tools.toml"
    assert 'toolName = "*"\ndecision = "deny"' in policy.read_text()


def test_known_agents_run_without_tools(tmp_path: Path) -> None:
    """Each known command prints JSON and turns off the tools of its agent."""
    for known in known_agents(tmp_path):
        words = known.command
        assert "--json" in words or ("--output-format", "json") in pairwise(words)
    claude, codex, gemini = (known.command for known in known_agents(tmp_path))
    assert claude[claude.index("--tools") :][:3] == ("--tools", "", "--strict-mcp-config")
    assert {"read-only", "shell_tool", "unified_exec", 'web_search="disabled"'} <= set(codex)
    assert gemini[-2:] == ("--admin-policy", str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "off"),
    [
        ({"llm": "command", "llm_command": ("x",)}, ""),
        ({"llm": "command", "llm_command": ("x",), "llm_calls_day": 0}, "llm_calls_day is 0"),
        ({"llm": "openai", "llm_url": "http://127.0.0.1:1/v1", "llm_price": (0, 0)}, ""),
        ({"llm": "openai", "llm_url": "http://127.0.0.1:1/v1", "llm_price": (1, 1)}, "config.toml sets no budget"),
        ({"llm": "openai", "llm_price": (1, 1), "budget_day": 1.0}, "OPENAI_API_KEY is not set"),
        ({"llm_url": "http://127.0.0.1:1", "budget_day": 1.0}, ""),
        ({"llm_url": "http://127.0.0.1:1", "llm_price": (0, 0)}, ""),
        ({"budget_day": 1.0}, "ANTHROPIC_API_KEY is not set"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_each_provider_needs(settings: dict[str, Any], off: str) -> None:
    """Servers of the user need no key, and models without a price need no budget."""
    assert why_off(Config(**settings)).startswith(off)
    assert bool(why_off(Config(**settings))) == bool(off)


@pytest.mark.parametrize("llm", ["anthropic", "openai"])
@pytest.mark.usefixtures("home")
def test_a_key_goes_only_to_its_server(llm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any server at `llm_url` gets `PALAVER_LLM_KEY`, and never the key of another server."""
    for name in (*KEYS.values(), "PALAVER_LLM_KEY"):
        monkeypatch.setenv(name, f"value of {name}")

    with serving() as server:
        server.script = [Sent(400)]
        config = Config(llm=llm, llm_url=server.url)
        with pytest.raises(RequestRefused):
            provider_of(config)().ask(ModelRequest("model", 100, "Say it.", "The text.", {"type": "object"}))

        assert [key.removeprefix("Bearer ") for key in server.keys] == ["value of PALAVER_LLM_KEY"]
