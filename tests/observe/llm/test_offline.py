"""Without a key and a budget, no network is used and all other functions work."""

import json
import subprocess
import sys

import pytest

from palaver.core.home import Home

from ...demo import archived

PROGRAM = """
import sys

def refuse(event, args):
    if event.startswith("socket."):
        raise RuntimeError(f"{event}: a socket was reached for")

sys.addaudithook(refuse)
from palaver.cli import main
main(sys.argv[1:], prog_name="palaver", standalone_mode=False)
assert "anthropic" not in sys.modules
"""
BUDGET = "budget_month = 5.0\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return archived(tmp_path_factory.mktemp("demo"))


def palaver(home: Home, *arguments: str, key: str = "") -> str:
    """Run a command in a process that cannot open sockets, and return its output."""
    environment = {"PALAVER_HOME": str(home.root), "PATH": "/usr/bin:/bin"} | (
        {"ANTHROPIC_API_KEY": key} if key else {}
    )
    command = [sys.executable, "-c", PROGRAM, *arguments]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=200)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("settings", "key", "missing"),
    [
        ("", "", "neither ANTHROPIC_API_KEY nor a budget in config.toml is set"),
        ("", "key", "config.toml sets no budget"),
        (BUDGET, "", "ANTHROPIC_API_KEY is not set"),
    ],
    ids=["neither", "key alone", "budget alone"],
)
def test_no_call_without_key_and_budget(demo: Home, settings: str, key: str, missing: str) -> None:
    """Without a key and a budget, `palaver observe` applies the rules, reports missing settings and does not use the
    network.
    """
    demo.config.write_text(settings)

    output = palaver(demo, "observe", key=key)

    assert f"The model is off, because {missing}" in output
    assert "--estimate" in output


def test_everything_else_works(demo: Home) -> None:
    """Estimates, statistics and search need neither key nor network."""
    demo.config.write_text(BUDGET)

    estimate = json.loads(palaver(demo, "observe", "--estimate", "--json"))
    assert estimate["calls"] > 0
    assert 0 < estimate["cost"] < 1
    assert "No model was called." in palaver(demo, "stats")
    assert "obs-" in palaver(demo, "search", "cache")


def test_invalid_budget_is_an_error(demo: Home) -> None:
    """An invalid budget is an error instead of an unlimited budget."""
    demo.config.write_text('budget_month = "5"\n')
    command = [sys.executable, "-m", "palaver", "observe"]
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, env={"PALAVER_HOME": str(demo.root)}, timeout=50
    )

    assert ran.returncode == 1
    assert "budget_month is not an amount in dollars" in ran.stderr
    assert "Write budget_month = 5.00." in ran.stderr
