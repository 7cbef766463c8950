"""README.md shows real output. `pytest tests/test_readme.py --update-golden` updates it."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.registry import all_formats
from palaver.archiver.store import Store
from palaver.cli.commands import SECTIONS
from palaver.core.home import DEMO, Home

from . import demo
from .cases import for_each
from .commands import EVERY

README = Path(__file__).parents[1] / "README.md"
USAGE = README.parent / "docs" / "usage.md"
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_CHANGING = re.compile(r"\d+\.\d s\b|(?<=price list of )\d{4}-\d\d-\d\d")
"""Pattern of durations and of the date of the price list."""
_MARK = re.compile(r"(?<=recalled-)\d+")
"""Pattern of the random number that delimits recalled text."""


def at_a_terminal(*arguments: str) -> str:
    """Return the output of `palaver` on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "palaver", *arguments]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as screen:
        try:
            while piece := screen.read(65536):
                shown += piece
        except OSError:  # on Linux the end of a terminal is an error
            pass
    assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


def in_a_pipe(*arguments: str) -> str:
    """Return the piped output of `palaver`."""
    command = [sys.executable, "-m", "palaver", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def as_printed(shown: str) -> str:
    """Replace local paths with the paths shown in README.md."""
    here = f"{shlex.quote(sys.executable)} -m palaver"
    shown = shown.replace(f"-- {here}", "-- ~/palaver/.venv/bin/palaver").replace(here, ".venv/bin/palaver")
    return shown.replace(str(Home.find().root), "~/.local/share/palaver")


def answers(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block with their output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def shown_now(command: str, before: str, archived: Home, patch: pytest.MonkeyPatch) -> str:
    """Return the current output of a command, or `before` if it cannot run here."""
    if command.startswith("palaver --demo "):
        patch.setenv("PALAVER_HOME", str(archived.root))
        typed, _, after = command.partition(" | ")
        assert after in {"", "cat"}
        return (in_a_pipe if after else at_a_terminal)(*shlex.split(typed)[2:])
    patch.delenv("PALAVER_HOME")
    setting_up, start, _ = before.partition("No agent history")
    assert (command, bool(start)) == ("make start", True)
    return setting_up + as_printed(at_a_terminal("up"))


@pytest.mark.parametrize(("page", "commands"), [(README, 7), (USAGE, 2)], ids=["README", "usage"])
def test_pages_show_real_output(
    page: Path, commands: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every output on the page equals the current one, except for durations and the date of the price list."""
    archived, text = demo.archived(tmp_path), page.read_text("utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("LINES", "200")

    def rerun(block: re.Match[str]) -> str:
        return "".join(
            f"$ {command}\n{shown_now(command, output, archived, monkeypatch)}" for command, output in answers(block[0])
        )

    today = _MARK.sub("48291503", _BLOCK.sub(rerun, text))
    if request.config.getoption("--update-golden", default=False):
        page.write_text(today, "utf-8")
        text = today

    assert len(re.findall(r"^\$ (?:.*/)?palaver ", text, re.MULTILINE)) == commands
    assert _CHANGING.sub("?", today) == _CHANGING.sub("?", text)


@for_each("words", EVERY, label=" ".join)
def test_readme_names_every_command(words: tuple[str, ...]) -> None:
    """README.md mentions every command."""
    assert re.search(rf"\b{' '.join(('palaver', *words))}\b", " ".join(README.read_text("utf-8").split()))


def test_readme_groups_the_commands_as_help_does() -> None:
    """README.md lists each command in the group of `palaver --help`."""
    rows = re.findall(r"^\| ([A-Z][a-z ]+) \| (`palaver .*) \|$", README.read_text("utf-8"), re.MULTILINE)
    groups = {heading: list(dict.fromkeys(re.findall(r"`palaver (\w+)", row))) for heading, row in rows}

    assert {heading: set(names) for heading, names in groups.items()} == {
        heading: set(section) for heading, section in SECTIONS.items()
    }


_FIRST, _FIRST_FIVE = 0, 1
_CLAIMED = {
    "paraphrase": ("of 78 paraphrases", _FIRST_FIVE),
    "question": ("of 52 questions", _FIRST_FIVE),
    "friction": ("of 42 questions", _FIRST_FIVE),
    "code": ("of 66 queries", _FIRST),
    "workflow": ("of 67 queries", _FIRST),
}


def _hits(place: int) -> dict[str, list[float]]:
    """Return the hit rates of BM25, vectors, rank fusion and Palaver per kind of question."""
    results = README.with_name("bench").joinpath("RESULTS.md").read_text("utf-8")
    rows = re.findall(
        r"^\| (\w+) +\| +all \|(.* / .* / .*)$",
        results.partition("\n## Retrieval\n")[2].partition("### coding-sessions\n")[2].partition("\n### ")[0],
        re.MULTILINE,
    )
    return {kind: [float(cell.split("/")[place]) for cell in cells.split("|")[1:5]] for kind, cells in rows}


@pytest.mark.parametrize(("place", "kinds"), [(_FIRST, {"code"}), (_FIRST_FIVE, set[str]())])
def test_readme_lists_questions_where_bm25_is_better(place: int, kinds: set[str]) -> None:
    """README.md lists every kind of question for which BM25 has a higher hit rate."""
    hits = _hits(place)

    assert len(hits) > 5
    assert {kind for kind, (plain, *_, ours) in hits.items() if plain > ours} == kinds


@pytest.mark.parametrize("kind", _CLAIMED)
def test_readme_quotes_the_benchmarks(kind: str) -> None:
    """README.md quotes the latest benchmark results of Palaver, BM25, vectors and rank fusion."""
    about, place = _CLAIMED[kind]
    *others, ours = (str(round(100 * share)) for share in _hits(place)[kind])
    [claim] = [line for line in README.read_text("utf-8").splitlines() if about in line]
    claimed = re.findall(r"(\d+) %", claim)

    assert len(claimed) > 1
    assert claimed == [ours, *others][: len(claimed)]


@for_each("known", all_formats(), label=lambda known: known.agent)
def test_readme_names_every_agent(known: TranscriptFormat) -> None:
    """README.md lists every supported agent."""
    assert f"`{known.agent}`" in README.read_text("utf-8")


def test_readme_links_point_to_files() -> None:
    """Each relative link of README.md points to an existing file."""
    linked = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text("utf-8"))

    assert linked
    assert [name for name in linked if not (README.parent / name).exists()] == []


def test_the_sample_is_loaded_beside_a_history(home: Path) -> None:
    """On a machine with a history, `--demo` loads the sample alone, in a home of its own."""
    demo.history(home / ".claude" / "projects")

    assert "[obs-19, 0b6f:" in in_a_pipe("--demo", "ask", "sqlite or json files")
    with Store.open(Home.find().root / "demo" / "palaver.db") as store:
        assert {source.path.is_relative_to(DEMO) for source in store.sources.all()} == {True}
    assert Home.find().is_new


def test_an_agent_changes_from_the_sample_to_the_own_archive(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands in README.md archive the user's history and serve it in place of the sample."""
    programs, config = tmp_path / "bin", home / ".cursor" / "mcp.json"
    programs.mkdir()
    (programs / "palaver").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m palaver "$@"\n')
    (programs / "palaver").chmod(0o755)
    config.parent.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin:/bin")
    [install] = [row for row in in_a_pipe("up").splitlines() if row.endswith(" install")]
    subprocess.run(f"{install} --yes", shell=True, check=True)
    assert json.loads(config.read_text())["mcpServers"]["palaver"]["env"] == {"PALAVER_HOME": f"{home}/palaver/demo"}
    demo.history(home / ".claude" / "projects")
    [block] = re.findall(r"^```sh\n(palaver up\npalaver install\n)```$", README.read_text("utf-8"), re.MULTILINE)
    monkeypatch.delenv("PALAVER_HOME", raising=False)
    # Without PALAVER_HOME, the home is the folder of the user's data.
    monkeypatch.delenv("XDG_DATA_HOME")
    block = block.replace("palaver install", "palaver install --yes --no-service")
    subprocess.run(["sh", "-e", "-c", block], check=True, capture_output=True)

    assert "env" not in json.loads(config.read_text())["mcpServers"]["palaver"]
    assert json.loads(in_a_pipe("status", "--json"))["sessions"] == 7
    assert not Home.find().root.is_relative_to(home / "palaver")
