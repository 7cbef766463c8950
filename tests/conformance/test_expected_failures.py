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


def test_scenarios_over_stdio_must_pass() -> None:
    """No scenario that runs over stdio is expected to fail."""
    for revision, scenarios in suite.OVER_STDIO.items():
        assert not expected(revision).intersection(scenarios)


def test_without_node_the_suite_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names what is missing, and nothing is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert suite.main(tmp_path / "suite") == 0
    assert capsys.readouterr().out.startswith("Skipped: node and npm are not installed.")
    assert not (tmp_path / "suite").exists()
