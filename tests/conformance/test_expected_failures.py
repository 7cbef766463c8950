"""Tests for the expected failures of the conformance suite."""

import re
from pathlib import Path

import pytest
import yaml

from . import __main__ as suite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text("utf-8")


def expected(revision: str) -> set[str]:
    """Return the expected failures of a revision."""
    return {*yaml.safe_load((suite.HERE / f"expected-failures-{revision}.yml").read_text("utf-8"))["server"]}


def test_every_expected_failure_is_explained() -> None:
    """The tables of docs/conformance.md give the reason of each expected failure, and of nothing else."""
    rows = "".join(row.partition(" | ")[0] for row in PAGE.partition("## Expected")[2].splitlines() if row[:3] == "| `")
    explained = set(re.findall(r"`([^`]+)`", rows))
    assert explained == set().union(*map(expected, suite.REVISIONS))
    assert expected("fixtures") < explained


def test_scenarios_over_stdio_must_pass() -> None:
    """No scenario that runs over stdio is expected to fail."""
    for revision, scenarios in suite.OVER_STDIO.items():
        assert not expected(revision).intersection(scenarios)


def test_a_run_without_node_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names what is missing and what was not run, and nothing is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert suite.main(tmp_path / "suite") == 2
    printed = capsys.readouterr().out
    assert printed.startswith("Nothing was tested: node and npm not found. Not run: HTTP, 2025-11-25, HTTP, 2026-07-28")
    assert "Install node and npm" in printed
    assert not (tmp_path / "suite").exists()


def test_a_run_without_the_registry_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If npm cannot install the suite, the command fails without a result."""
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexit 7\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert suite.main(tmp_path / "suite") == 2
    assert capsys.readouterr().out.startswith("Nothing was tested: npm ended with status 7.")
