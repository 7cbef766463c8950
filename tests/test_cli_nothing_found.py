"""Every command that finds nothing says so and names the next step."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.cli import main
from palaver.core.home import Home

from .archiver.formats.claude_code.claude_lines import jsonl, user

EMPTY = (
    (("search", "zzzqqq"), "Try other words, or search the output of tools: palaver search --in output WORDS"),
    (("search", "zzzqqq", "--by", "session"), "palaver search --in output WORDS"),
    (("search", "zzzqqq", "--kind", "memory"), "Try other words.\n"),
    (("search", "--all-of", "zzzqqq", "qqqzzz"), "Try broader query."),
    (("search", "sqlite", "--type", "test"), "Try broader query or remove filters."),
    (("search", "--kind", "memory"), "Widen the filters or remove them."),
    (("search", '"sqlite zebra"'), 'palaver search --in output "sqlite zebra"'),
    (
        ("search", "--in", "output", "zzzqqq"),
        "Try fewer words.\nCommands are not tool output. To search them",
    ),
    (("search", "--in", "output", "ls", "--agent", "codex"), "Try fewer words, or remove the filters."),
    (
        ("fix", "zzzqqq"),
        "Try other words of the error, as they were printed. To search the conversations: palaver search WORDS",
    ),
    (("fix", "zzzqqq", "--project", "tide-clock"), "or leave out --project."),
    (("how", "zzzqqq"), "Try `palaver how TASK`, or a word of the command."),
    (("how", "the testt"), "Try `palaver how test`."),
    (("recall", "zzzqqq"), "Store one with `palaver remember TEXT`."),
    (("memories", "list"), "Store one with `palaver remember TEXT`."),
    (("documents", "list"), "Run `palaver index PATH`."),
    (("mnemonics", "list"), "run: palaver mnemonics allow PATH"),
    (("forget", "--mentions", "zzzqqq"), "Widen the options, or take an ID from `palaver search`."),
    (("forget", "--list"), "To preview one: palaver forget WHAT"),
)


@pytest.mark.parametrize(("words", "advice"), EMPTY)
def test_an_empty_result_names_the_next_step(
    built: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], advice: str
) -> None:
    """An empty result is a success, and its last sentence is what to try."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    result = CliRunner().invoke(main, words)

    assert (result.exit_code, result.stderr) == (0, "")
    assert advice in result.stdout


MISTAKES = (
    (("search", "x", "-n", "0"), "Invalid limit: 0"),
    (("search", "x", "--cursor", "zzz"), "Invalid cursor: it is not from this search"),
    (("search", "sqlite", "--cursor", "yyL9AQY="), "Invalid cursor: it is not from this search"),
    (("search", "sqlite", "--agent", "codx"), "Unknown agent: codx\nDid you mean codex or "),
    (("sessions", "--agent", "pie"), "Unknown agent: pie"),
)


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_an_invalid_option_is_reported_before_the_words(
    built: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    """An invalid value of an option is a usage error that names the value, even if the query is also invalid."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    result = CliRunner().invoke(main, words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_skipped_files_are_listed_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`archive --skipped` lists every file that was not archived, with the reason and what to do."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "palaver"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "shopping.jsonl").write_text('{"milk": 2}\n', "utf-8")
    (tmp_path / "notes" / "talk.jsonl").write_bytes(jsonl([user("Which till?", uuid="u0", cwd="/code/shop")]))
    plain = CliRunner().invoke(main, ("archive", str(tmp_path / "notes"))).stdout
    listed = CliRunner().invoke(main, ("archive", str(tmp_path / "notes"), "--skipped")).stdout

    assert "Skipped 1 file of an unknown format. To list it, add --skipped.\n" in plain
    assert "shopping.jsonl: not a transcript of a supported agent\n" in listed
    assert "talk.jsonl" not in listed
    assert "see docs/formats.md" in listed
