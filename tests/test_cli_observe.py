"""`palaver observe` and `palaver stats`: what a person types, sees and pays."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main, observe
from palaver.core.home import Home
from palaver.core.progress import silent
from palaver.core.spending import Extraction
from palaver.templates.render import Renderer

from . import demo
from .observe.llm.server import FakeProvider, Sent, failing, honest, learned, message, serving


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The archived demo, which no test writes to."""
    return demo.archived(tmp_path_factory.mktemp("built"))


@pytest.fixture
def home(built: Home, tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A copy of the archived demo, with a key and a budget."""
    home = Home(shutil.copytree(built.root, tmp_path / "palaver"))
    home.config.write_text(f'llm_url = "{provider.url}"\nbudget_month = 5.00\n')
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    return home


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is left as it is, which saves the seconds that embedding takes."""
    monkeypatch.setattr(observe, "_publish", silent)


def palaver(*arguments: str) -> Result:
    """Run one command in this process."""
    return CliRunner().invoke(main, arguments)


def answer(*arguments: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    result = palaver(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.usefixtures("home")
def test_observing_from_estimate_to_accounts(provider: FakeProvider) -> None:
    """What was estimated is asked; what was learned is found, by search too; what was paid is in the accounts."""
    estimate = answer("observe", "--estimate")
    assert provider.calls == []

    done = answer("observe")
    collected = answer("observe")

    assert done["learned"] + collected["learned"] == estimate["exchanges"] == len(provider.calls)
    assert done["stopped"] is None
    accounts = answer("stats")
    assert accounts["requests"] == {"learned": estimate["exchanges"]}
    assert 0 < sum(row["cost"] for row in accounts["spent"]) == pytest.approx(5 - accounts["left"]["month"])
    assert "The model's title" in palaver("search", "model's title").stdout
    assert palaver("observe").stdout == (
        "Rules: observed 0 exchanges.\n"
        "Model: extracted 0 observations from 0 exchanges, none from 0. Cost: $0.00, including reservations.\n"
    )


@pytest.mark.usefixtures("unpublished")
def test_only_what_is_outdated_is_asked_again(home: Home, provider: FakeProvider) -> None:
    """A template of one's own is another prompt; it costs nothing until one asks for it."""
    answer("observe")
    answer("observe")
    asked = len(provider.calls)
    home.templates.mkdir()
    (home.templates / "observe_system.md.j2").write_text("{{ mark }}\nSay what was learned.\n")

    assert answer("observe", "--estimate")["exchanges"] == 0
    assert answer("observe", "--only-outdated", "--estimate")["exchanges"] == asked
    answer("observe", "--only-outdated")
    answer("observe", "--only-outdated")

    assert len(provider.calls) == 2 * asked
    assert provider.calls[-1]["system"][0]["text"].endswith("Say what was learned.\n")
    assert answer("observe", "--only-outdated", "--estimate")["exchanges"] == 0


@pytest.mark.usefixtures("home", "unpublished")
def test_dead_letters_are_shown_and_revived(provider: FakeProvider) -> None:
    """With the place they asked about, the reason, and the reply as data."""
    provider.usually = lambda _: failing(400, "invalid_request_error")
    answer("observe")
    given_up = len(provider.calls)
    collected = palaver("observe").stdout
    assert answer("stats")["requests"] == {"dead": given_up}
    assert "permanently; see `palaver observe --dead-letters`." in collected

    assert answer("status")["given_up"] == given_up
    many = "1 failed request" if given_up == 1 else f"{given_up} failed requests"
    assert f"Language model: {many}. See `palaver observe --dead-letters`" in palaver("status").stdout

    shown = palaver("observe", "--dead-letters").stdout
    assert f"{given_up} failed requests" in shown
    assert "request" in shown
    assert all(letter["path"].endswith(".jsonl") for letter in answer("observe", "--dead-letters")["dead_letters"])

    provider.usually = honest
    revived = answer("observe", "--revive")["learned"] + answer("observe")["learned"]
    assert revived == given_up
    assert palaver("observe", "--dead-letters").stdout == "No failed requests.\n"
    assert (answer("status")["given_up"], "failed request" in palaver("status").stdout) == (0, False)


@pytest.mark.usefixtures("home")
def test_a_refused_key_is_said(provider: FakeProvider) -> None:
    """With exit code 1 and what to check; search goes on as before."""
    provider.usually = lambda _: failing(401, "authentication_error")
    provider.supports_batches = False

    result = palaver("observe")

    assert result.exit_code == 1
    assert "401" in result.stdout
    assert "Check ANTHROPIC_API_KEY" in result.stdout
    assert palaver("search", "tide").exit_code == 0


def test_a_budget_that_is_used_up_is_said(home: Home, provider: FakeProvider) -> None:
    """It is as planned, so the exit code is 0."""
    home.config.write_text(f'llm_url = "{provider.url}"\nbudget_hour = 0.000001\n')

    result = palaver("observe")

    assert result.exit_code == 0
    assert "budget_hour has $0.000001 left" in result.stdout
    assert "raise budget_hour in config.toml" in result.stdout
    assert provider.calls == []


@pytest.mark.usefixtures("unpublished")
def test_it_can_be_stopped_at_any_time(home: Home, provider: FakeProvider) -> None:
    """Ctrl-C in the middle of a call ends it at once; the next run goes on, and nothing is doubled."""
    process: list[subprocess.Popen[str]] = []

    def interrupt(_: object) -> Sent:
        process[0].send_signal(signal.SIGINT)
        process[0].wait(30)
        return Sent(body=message(learned()))

    provider.script = [interrupt]
    command = [sys.executable, "-m", "palaver", "observe"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        process.append(running)
        _, said = running.communicate(timeout=200)

    assert running.returncode == 130
    assert said == "\npalaver: stopped. Nothing is lost; run the same command to resume.\n"
    total = answer("observe", "--estimate")["exchanges"]
    assert answer("observe")["learned"] + answer("observe")["learned"] == total
    assert sum(row["unanswered"] for row in answer("stats")["spent"]) == 1
    assert home.database.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--estimate", "--revive"), "--estimate and --revive cannot be combined."),
        (("--dead-letters", "--revive"), "--dead-letters and --revive cannot be combined."),
        (("--estimate", "--preferences"), "--estimate and --preferences cannot be combined."),
        (("--preferences", "--only-outdated"), "--only-outdated cannot be combined with --preferences."),
        (("--dead-letters", "--only-outdated"), "--only-outdated cannot be combined with --dead-letters."),
    ],
)
@pytest.mark.usefixtures("home")
def test_options_that_exclude_each_other(options: tuple[str, ...], told: str) -> None:
    """What would be left undone is refused, and which options they are is said."""
    result = palaver("observe", *options)

    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, f"palaver: {told.removesuffix('.')}")


@pytest.mark.parametrize(("waiting", "words"), [(1, "1 exchange"), (2, "2 exchanges")])
def test_one_exchange_waits_and_several_wait(waiting: int, words: str) -> None:
    """What is left to be asked about is said in words that fit its number."""
    assert f"\n{words} left to send.\n" in Renderer().render(
        "extraction", extraction=Extraction(waiting=waiting), observed=0, off=""
    )
