"""Tests for cli/output.py: control characters never reach a terminal."""

import json
import sys

import pytest

from palaver.cli.output import ProgressBars, print_json, raw_output

STEERING = "\x1b[2J\x9b31m \u202egnp.exe\u2066 \x85\u061c\u200f \U000e0041 \x7f\x07 end"


def test_json_has_no_control_or_direction_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """No character of the output controls a terminal. All other characters stay as they are."""
    print_json({"title": STEERING, "plain": "naïve 日本語 👩"})
    shown = capsys.readouterr().out

    assert json.loads(shown)["plain"] == "naïve 日本語 👩"
    assert "naïve 日本語 👩" in shown
    assert shown.rstrip("\n").isprintable()


def test_progress_in_a_pipe_is_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, a long run reports its progress on standard error, and a short run nothing."""
    seconds = iter(range(0, 10_000, 4))
    bars = ProgressBars(clock=lambda: next(seconds))
    for done in range(1_000, 1_006):
        bars("Reading", done, 2_000)

    captured = capsys.readouterr()
    assert (captured.out, captured.err.splitlines()[0]) == ("", "Reading: 1,002 of 2,000")
    assert 1 <= len(captured.err.splitlines()) < 6


def test_raw_bytes_at_a_terminal_have_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Characters that are split between two blocks stay whole, and line ends are kept."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output, data = raw_output(), f"é {STEERING}\n日本\n".encode()
    for place in range(len(data)):
        assert output.write(data[place : place + 1]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("é ")
    assert shown.endswith(" end\n日本\n")
    assert shown.replace("\n", "").isprintable()


def test_all_lines_of_raw_bytes_reach_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`palaver read --raw` writes an iterator of lines at once."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    raw_output().writelines(iter(["é\n".encode(), b"\x1b[2Jend\n"]))
    shown = capsys.readouterr().out

    assert shown.startswith("é\n")
    assert shown.endswith("end\n")
    assert shown.replace("\n", "").isprintable()


def test_raw_bytes_in_a_pipe_are_unchanged() -> None:
    """In a pipe, raw output equals the archived bytes."""
    assert raw_output() is sys.stdout.buffer
