"""`palaver forget`, as a person types it: a preview, a token, what was done, and what to do next."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.transcripts import DEMO, in_paths
from palaver.cli import main
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline


@pytest.fixture(autouse=True)
def _archived(home: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([DEMO]))


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def test_nothing_goes_without_its_token() -> None:
    """The first call shows what would go and the command that does it, which then does exactly that."""
    shown = palaver("forget", "--mentions", "tide").stdout
    assert "Nothing was removed yet" in shown
    command = shown.splitlines()[-1].split()
    assert command[:4] == ["palaver", "forget", "--mentions", "tide"]

    wrong = palaver("forget", "--mentions", "tide", "--confirm", "000000000000", code=1).stdout
    assert "Nothing was removed" in wrong

    assert "palaver forget --undo 1" in palaver(*command[1:]).stdout
    assert palaver("forget", "--mentions", "tide").stdout == "Nothing of this is archived or held.\n"
    assert "can be undone until" in palaver("forget", "--list").stdout
    assert "there again" in palaver("forget", "--undo", "1").stdout
    assert "Would forget" in palaver("forget", "--mentions", "tide").stdout


def test_erasing_in_json_says_how_it_was_verified() -> None:
    """As JSON the preview has the token, and the outcome the proof and what is out of reach."""
    token = json.loads(palaver("forget", "--mentions", "tide", "--erase", "--json").stdout)["token"]
    done = json.loads(palaver("forget", "--mentions", "tide", "--erase", "--confirm", token, "--json").stdout)
    assert done["proof"]["holds"] is True
    assert done["outside"]


def test_a_wrong_name_is_answered_with_how_to_name_it() -> None:
    """What names nothing says what can be named."""
    result = palaver("forget", "nothing-like-it", code=1)
    assert "Nothing archived is called nothing-like-it" in result.stderr
    assert "--mentions" in result.stderr
