"""`palaver observe` and `palaver stats`: output, exit status and cost."""

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

from palaver.cli import main, observe
from palaver.core.home import Home
from palaver.core.reports import Extraction
from palaver.core.runtime import silent
from palaver.templates import environment, render
from palaver.templates.render import Renderer

from .observe.llm.server import FakeProvider, Sent, carded, failing, honest, is_about_session, message


@pytest.fixture
def home(built: Home, tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a copy of the archived demo data with an API key and a budget."""
    home = Home(shutil.copytree(built.root, tmp_path / "palaver"))
    home.config.write_text(f'llm_url = "{provider.url}"\nbudget_month = 5.00\n')
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    return home


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip publishing of the index, which saves seconds of embedding."""
    monkeypatch.setattr(observe, "_publish", silent)


def palaver(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments)


def answer(*arguments: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    result = palaver(*arguments, "--json")
    assert (result.exit_code, "palaver:" in result.stderr) == (0, False)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.usefixtures("home")
def test_observing_from_estimate_to_ledger(provider: FakeProvider) -> None:
    """The number of requests equals the estimate, results can be searched, and the ledger contains their cost."""
    estimate = answer("observe", "--estimate")
    assert provider.calls == []

    done = answer("observe")

    assert (done["cards"], done["stopped"], done["waiting"]) == (estimate["calls"], None, 0)
    assert len(provider.calls) == estimate["calls"] > 0
    accounts = answer("stats")
    assert accounts["replies"] == {"card": estimate["calls"]}
    assert 0 < sum(row["cost"] for row in accounts["spent"]) == pytest.approx(5 - accounts["left"]["month"])
    assert "The model's card" in palaver("search", "model's card").stdout
    assert palaver("observe").stdout == (
        "Rules: observed 0 exchanges.\n"
        "Model: wrote 0 session cards and 0 observations. "
        "Cost: $0.00, including the maximum cost of unfinished calls.\n"
    )


@pytest.mark.usefixtures("home", "unpublished")
def test_a_changed_prompt_sends_sessions_again(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions without a card of the current prompt are the queue, so a changed template sends all of them again."""
    original = environment.packaged

    def packaged(name: str) -> str | None:
        changed = "{{ mark }}\nSay what was learned.\n"
        return changed if name == "session_system.md.j2" else original(name)

    answer("observe")
    asked = len(provider.calls)
    assert answer("observe", "--estimate")["calls"] == 0
    for module in (environment, render):
        monkeypatch.setattr(module, "packaged", packaged)
    monkeypatch.setattr(environment, "_trusted", environment._trusted.__wrapped__)  # pyright: ignore[reportPrivateUsage]

    assert answer("observe", "--estimate")["calls"] == asked
    answer("observe")

    assert len(provider.calls) == 2 * asked
    assert provider.calls[-1]["system"][0]["text"].endswith("Say what was learned.\n")


@pytest.mark.usefixtures("home", "unpublished")
def test_single_exchanges_are_sent_on_request(provider: FakeProvider) -> None:
    """With `--exchanges`, each exchange is one call, and no session is sent."""
    estimate = answer("observe", "--exchanges", "--estimate")
    assert "`palaver observe --exchanges` would send" in palaver("observe", "--exchanges", "--estimate").stdout

    done = answer("observe", "--exchanges")

    assert (done["learned"], done["cards"]) == (estimate["calls"], 0)
    assert not any(map(is_about_session, provider.calls))


@pytest.mark.usefixtures("home", "unpublished")
def test_failed_calls_are_reported_and_repeated(provider: FakeProvider) -> None:
    """Failed calls are reported with a reason. The next run repeats them."""
    refusal = failing(400, "invalid_request_error")
    provider.script = [honest, refusal, refusal]

    shown = palaver("observe").stdout

    assert "2 calls failed: the provider rejected this request (400)" in shown
    assert "A later run repeats them." in shown
    assert answer("observe")["cards"] == 2


@pytest.mark.usefixtures("home", "unpublished")
def test_refusal_of_every_request_is_reported(provider: FakeProvider) -> None:
    """If the provider refuses every request, the command exits with status 1 and says what to check."""
    provider.default = lambda _: failing(400, "invalid_request_error")

    result = palaver("observe")

    assert (result.exit_code, len(provider.calls)) == (1, 3)
    assert "3 requests in a row were refused" in result.stdout
    assert "Check the llm settings in config.toml" in result.stdout


@pytest.mark.usefixtures("home")
def test_a_refused_key_is_reported(provider: FakeProvider) -> None:
    """A refused key exits with status 1 and a remedy, and search still works."""
    provider.default = lambda _: failing(401, "authentication_error")

    result = palaver("observe")

    assert result.exit_code == 1
    assert "401" in result.stdout
    assert "Check PALAVER_LLM_KEY" in result.stdout
    assert palaver("search", "tide").exit_code == 0


def test_an_exhausted_budget_is_reported(home: Home, provider: FakeProvider) -> None:
    """An exhausted budget is reported with exit status 0, since it is intended."""
    home.config.write_text(f'llm_url = "{provider.url}"\nbudget_hour = 0.000001\n')

    result = palaver("observe")

    assert result.exit_code == 0
    assert "budget_hour has $0.000001 left" in result.stdout
    assert "raise budget_hour in config.toml" in result.stdout
    assert provider.calls == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("unpublished")
def test_a_run_can_be_interrupted(home: Home, provider: FakeProvider, number: signal.Signals) -> None:
    """Ctrl-C or SIGTERM during a call stops at once, and the next run resumes without duplicates."""
    process: list[subprocess.Popen[str]] = []

    def interrupt(_: object) -> Sent:
        process[0].send_signal(number)
        process[0].wait(30)
        return Sent(body=message(carded()))

    provider.script = [interrupt]
    command = [sys.executable, "-m", "palaver", "observe"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        process.append(running)
        _, errors = running.communicate(timeout=200)

    assert running.returncode == 130
    assert errors == "\npalaver: stopped. No data is lost. Run the same command again to resume.\n"
    total = answer("observe", "--estimate")["calls"]
    assert answer("observe")["cards"] == total
    assert sum(row["unanswered"] for row in answer("stats")["spent"]) == 1
    assert home.database.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--estimate", "--preferences"), "--estimate and --preferences cannot be combined."),
        (("--preferences", "--exchanges"), "--exchanges cannot be combined with --preferences."),
        (("--estimate", "--only-quiet"), "--only-quiet cannot be combined with --estimate."),
        (("--setup", "--only-quiet"), "--only-quiet cannot be combined with --setup."),
        (("--use", "claude"), "--use, --model and --yes need --setup --use WHAT."),
        (("--setup", "--yes"), "--use, --model and --yes need --setup --use WHAT."),
    ],
)
@pytest.mark.usefixtures("home")
def test_conflicting_options_are_rejected(options: tuple[str, ...], message: str) -> None:
    """Options that cannot be combined are reported in a usage error."""
    result = palaver("observe", *options)

    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, f"palaver: {message.removesuffix('.')}")


@pytest.mark.parametrize(("waiting", "words"), [(1, "1 request"), (2, "2 requests")])
def test_the_number_of_waiting_requests_has_a_plural(waiting: int, words: str) -> None:
    """The number of waiting requests is printed in the singular or plural."""
    assert f"\n{words} left to send.\n" in Renderer().render(
        "extraction", extraction=Extraction(waiting=waiting), observed=0, off=""
    )
