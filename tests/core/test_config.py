"""Tests of core/config.py."""

import os
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.config import Config, write_settings
from palaver.core.errors import ConfigInvalid

NAMES = st.text(st.characters(exclude_categories=["Cs"]))


def test_missing_file_gives_defaults(tmp_path: Path) -> None:
    """Reading missing settings returns defaults and creates no file."""
    assert Config.read(tmp_path / "config.toml") == Config()
    assert list(tmp_path.iterdir()) == []


@given(NAMES)
def test_any_name_can_be_written(name: str) -> None:
    """A model name with any characters is read back unchanged."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        Config(name).write(path)

        assert Config.read(path) == Config(name)


@pytest.mark.parametrize("before", ["model = 'old'", '"model" = "old"', "  model='old' # mine"])
def test_only_the_model_is_replaced(tmp_path: Path, before: str) -> None:
    """Comments and blank lines stay, even without a final line break."""
    path = tmp_path / "config.toml"
    path.write_text(f"# the models\n\n{before}\n# the end")

    Config("new").write(path)
    assert path.read_text() == '# the models\n\n# the end\nmodel = "new"\n'

    Config().write(path)
    assert path.read_text() == "# the models\n\n# the end\n"


def test_settings_are_replaced(tmp_path: Path) -> None:
    """Settings are replaced or removed, also if their value has several lines. All other lines stay."""
    path = tmp_path / "config.toml"
    path.write_text('a = 1\nllm_command = [ # mine\n  "old",\n]\n# b\nllm_price = [1, 2]\nllm = "x"\nllm_model = "y"\n')

    write_settings(path, {"llm": "command", "llm_command": ("a", 'b "c"'), "llm_price": None, "budget_day": 0.5})

    assert path.read_text() == (
        'a = 1\n# b\nllm_model = "y"\nllm = "command"\nllm_command = ["a", "b \\"c\\""]\nbudget_day = 0.5\n'
    )


def test_settings_are_written_before_the_table(tmp_path: Path) -> None:
    """A new setting never becomes a row of the table `prices`, and no row of it is taken for a setting."""
    path = tmp_path / "config.toml"
    path.write_text('llm = "openai"\n\n [prices] # mine\nmodel = [1, 2]\n"b" = [1, 2, 3, 4, 0.5]\n')

    write_settings(path, {"llm": None, "model": "m"})

    assert path.read_text() == '\nmodel = "m"\n [prices] # mine\nmodel = [1, 2]\n"b" = [1, 2, 3, 4, 0.5]\n'
    assert Config.read(path).prices == {"model": (1, 2), "b": (1, 2, 3, 4, 0.5)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('llm = "gpt"', 'Write llm = "anthropic" or "openai" or "command".'),
        ('llm = "command"', "Run `palaver observe --setup`."),
        ('llm_command = "claude -p"', 'Write llm_command = ["claude", "-p"].'),
        ("llm_calls_day = 1.5", "Write llm_calls_day = 50."),
        ("prices = [1, 2]", 'Write prices = { "NAME" = [1.00, 5.00] }.'),
        ("prices.a = [1, 2, 3]", 'Write prices = { "NAME" = [1.00, 5.00] }.'),
        ("[prices]\na = [1, -2]", 'Write prices = { "NAME" = [1.00, 5.00] }.'),
    ],
)
def test_invalid_settings_of_the_language_model(tmp_path: Path, text: str, problem: str) -> None:
    """Invalid settings of the language model are errors with a remedy."""
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(ConfigInvalid) as caught:
        Config.read(path)

    assert caught.value.hint == problem


def test_time_zone_is_utc_or_an_iana_name(tmp_path: Path) -> None:
    """`UTC` needs no database of time zones. Without the setting, the time zone is that of the system."""
    path = tmp_path / "config.toml"
    for name, offset in {"UTC": 0, "utc": 0, "Asia/Kathmandu": 345}.items():
        path.write_text(f'timezone = "{name}"')
        zone = Config.read(path).display_zone
        assert zone is not None
        assert zone.utcoffset(datetime(2026, 5, 4)) == timedelta(minutes=offset)  # noqa: DTZ001 - local in `zone`
    assert Config().display_zone is None
    for text in ('"Mars/Olympus"', '"America"', '""', "9"):
        path.write_text(f"timezone = {text}")
        with pytest.raises(ConfigInvalid, match="timezone is not UTC or an IANA name"):
            Config.read(path)


def test_new_file_is_synced_before_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file is synced before it replaces the old file."""
    path = tmp_path / "config.toml"
    Config("old").write(path)
    seen: list[Config] = []

    def record(_number: int) -> None:
        seen.append(Config.read(path))

    monkeypatch.setattr(os, "fsync", record)

    Config("new").write(path)

    assert seen == [Config("old"), Config("new")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle = 'x'", "unknown setting modle"),
        ("model = 3", "model is not a string"),
        ("model = ", "config.toml: "),
    ],
)
def test_invalid_setting_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error contains the file and the setting."""
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(ConfigInvalid, match=message):
        Config.read(path)


SETTINGS = """
model = "m"
llm_model = "local"
llm_url = "http://127.0.0.1:1"
llm_price = [0, 1.5]
budget_run = 0
budget_month = 5
private_projects = ["secret", "/srv/x"]
"""


def test_every_setting_is_read(tmp_path: Path) -> None:
    """All settings are read, with budgets in dollars."""
    path = tmp_path / "config.toml"
    path.write_text(SETTINGS)

    assert Config.read(path) == Config(
        model="m",
        llm_model="local",
        llm_url="http://127.0.0.1:1",
        llm_price=(0.0, 1.5),
        budget_run=0.0,
        budget_month=5.0,
        private_projects=("secret", "/srv/x"),
    )


@pytest.mark.parametrize(
    "line",
    [
        'budget_day = "5"',
        "budget_day = true",
        "budget_day = -1",
        "budget_day = nan",
        "budget_day = inf",
        "budget_day = 1e10",
        "llm_price = 1",
        "llm_price = [1]",
        "llm_price = [1, 2, 3]",
        'llm_price = [1, "2"]',
        'private_projects = "secret"',
        "private_projects = [1]",
        'private_projects = ["~nobody-has-this-name/bank"]',
        "llm_model = 5",
        "llm_url = 5",
        'llm_url = ""',
        'llm_url = "127.0.0.1:8080"',
        'llm_url = "file:///etc"',
        'llm_url = "http:///v1"',
        'llm_url = "http://[::1:8080/v1"',
        'llm_url = "http://127.0.0.1:x/v1"',
        'llm_url = "http://127.0.0.1:99999/v1"',
    ],
)
def test_invalid_value_is_an_error(tmp_path: Path, line: str) -> None:
    """An invalid value raises an error and is never replaced by the default."""
    path = tmp_path / "config.toml"
    path.write_text(f"{line}\n")

    with pytest.raises(ConfigInvalid) as caught:
        Config.read(path)
    assert line.partition(" ")[0] in str(caught.value)
    assert f"Write {line.partition(' ')[0]} = " in caught.value.hint


def test_private_folders_are_normalised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is normalised, and a project name is unchanged."""
    monkeypatch.setenv("HOME", "/home/demo")
    path = tmp_path / "config.toml"
    path.write_text('private_projects = ["~/bank", "/code/bank/", "/code//till", "shop", "a.b c", "~", ""]')

    assert Config.read(path).private_projects == (
        *("/home/demo/bank", "/code/bank", "/code/till", "shop", "a.b c", "/home/demo", ""),
    )


def test_writing_the_model_keeps_the_other_settings(tmp_path: Path) -> None:
    """Only the line of the model changes."""
    path = tmp_path / "config.toml"
    path.write_text(SETTINGS)

    replace(Config.read(path), model="n").write(path)

    assert Config.read(path) == replace(Config.read(path), model="n")
    assert [line for line in SETTINGS.strip().splitlines()[1:] if line not in path.read_text()] == []
