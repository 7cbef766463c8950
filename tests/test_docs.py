"""Commands, settings and links in README.md, ARCHITECTURE.md and docs/ exist."""

import re
import shlex
from pathlib import Path

import click
import yaml

from palaver.cli import main
from palaver.core.config import Config

from .cases import for_each

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE_WORDS = 2000
_CODE = re.compile(r"^(?:\$ )?(palaver .*)$|`(palaver [^`\n]+)`", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def named_commands(page: Path) -> list[str]:
    """Return the `palaver` commands in the code of a page, without comments and pipes."""
    found = (first or second for first, second in _CODE.findall(page.read_text("utf-8")))
    return [re.split(r"\s[|#]\s|\s#|\s\(", command)[0].strip() for command in found]


def missing_parts(command: str) -> list[str]:
    """Return the sub-commands and options of a command line that the program does not know."""
    context = click.Context(main, info_name="palaver")
    group: click.Command = main
    for word in shlex.split(command)[1:]:
        if isinstance(group, click.Group):
            found = group.get_command(context, word)
            if found is None:
                return [] if word.startswith("-") and _has_option(group, word) else [word]
            group = found
        elif re.fullmatch(r"--?[a-z][a-z-]*", word) and not _has_option(group, word):
            return [word]
    return []


def _has_option(command: click.Command, option: str) -> bool:
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return option in names | {"--help", "-h", "--version"}


@for_each("page", PAGES, label=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Each command and option on a page exists."""
    assert {command: parts for command in named_commands(page) if (parts := missing_parts(command))} == {}


def test_unknown_commands_are_detected() -> None:
    """The check of documented commands detects unknown commands and options."""
    assert missing_parts("palaver serch x") == ["serch"]
    assert missing_parts("palaver search x --colour") == ["--colour"]
    assert missing_parts("palaver memories show ID --json") == []


def test_commands_of_containers_exist() -> None:
    """Each command in compose.yaml exists."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    commands = [line for service in services.values() if isinstance(line := service.get("command"), str)]
    assert len(commands) == 2
    assert {line: parts for line in commands if (parts := missing_parts(f"palaver {line}"))} == {}


@for_each("page", PAGES, label=lambda page: page.name)
def test_links_point_to_files(page: Path) -> None:
    """Each relative link of a page points to an existing file."""
    linked = _LINK.findall(page.read_text("utf-8"))
    assert [name for name in linked if not (page.parent / name).exists()] == []


@for_each("page", PAGES, label=lambda page: page.name)
def test_links_point_to_sections(page: Path) -> None:
    """Each link of a page to a section names an existing heading."""
    linked = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)]+)\)", page.read_text("utf-8"))
    assert [
        (name, anchor) for name, anchor in linked if anchor not in anchors(page.parent / name if name else page)
    ] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_setting_is_documented() -> None:
    """The table in docs/configuration.md lists the settings in the order of the code."""
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(Config.__struct_fields__)


def test_architecture_is_short() -> None:
    """ARCHITECTURE.md has at most the allowed number of words."""
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split()) <= ARCHITECTURE_WORDS


def test_architecture_names_existing_files() -> None:
    """Each module, folder and template that ARCHITECTURE.md names exists."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = {
        name
        for name in re.findall(r"`([a-z_]+(?:/[a-z_.]+)+|[a-z_]+\.py)`", text)
        if "<" not in name and "/." not in name
    }
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/**/*.*")} | {
        path.name for path in ROOT.glob("*/**/*.py")
    }
    missing = {name for name in named if name.rstrip("/") not in files and not _is_known_folder(name)}

    assert len(named) > 30
    assert missing == set()


def _is_known_folder(name: str) -> bool:
    return any((ROOT / folder / name).exists() for folder in (".", "src/palaver", "archiver", "search", "observe"))
