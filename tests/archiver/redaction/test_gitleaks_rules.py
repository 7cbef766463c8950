"""The shipped rules equal the converted rules of gitleaks."""

import json
import re
import runpy
import tarfile
from pathlib import Path

import pytest

from palaver.archiver.redaction.rules import GITLEAKS

from ...shared import SHARED

build = runpy.run_path(str(Path(__file__).parents[3] / "release" / "gitleaks_rules.py"))["main"]
PACKED = SHARED / "hostile" / "gitleaks-rules.tar.gz"

CONFIG = r"""
minVersion = "v1.2.3"
[allowlist]
paths = ["vendor"]
regexes = ["^null$"]
[[rules]]
id = "one"
regex = '''(?i)[\w.-]{0,50}?(?:one)=(\d+)'''
keywords = ["o.e"]
secretGroup = 1
entropy = 2
[[rules.allowlists]]
regexes = ["EXAMPLE", "abcdefghijklmnopqrst"]
stopwords = ["word"]
regexTarget = "line"
[[rules.allowlists]]
paths = ["x"]
[[rules.allowlists]]
condition = "AND"
paths = ["x"]
regexes = ["y"]
[[rules]]
id = "file"
path = "p12$"
[[rules]]
id = "private-key"
regex = "KEY"
keywords = ["key"]
"""


def test_rules_are_converted(tmp_path: Path) -> None:
    """A converted rule keeps its pattern, keywords, group, entropy and the exceptions that do not match paths."""
    source, target = tmp_path / "gitleaks.toml", tmp_path / "gitleaks.json"
    source.write_text(CONFIG)
    build(source, target)
    made = json.loads(target.read_text())

    assert made["version"] == "v1.2.3"
    assert made["allowed"] == {"patterns": ["^null$"]}
    assert made["rules"] == [
        {
            "kind": "one",
            "pattern": r"(?i)(?:one)=(\d+)",
            "keywords": [re.escape("o.e")],
            "group": 1,
            "entropy": 2,
            "allowed": [{"patterns": ["EXAMPLE", "[a]bcdefghijklmnopqrst"], "words": ["word"], "target": "line"}],
        }
    ]


def test_changed_rule_is_noticed(tmp_path: Path) -> None:
    """The build fails if a pattern no longer contains the part that it narrows."""
    source = tmp_path / "gitleaks.toml"
    source.write_text(CONFIG.replace('"one"', '"sourcegraph-access-token"'))

    with pytest.raises(ValueError, match="sourcegraph-access-token has changed"):
        build(source, tmp_path / "gitleaks.json")


@pytest.mark.skipif(not PACKED.exists(), reason="gitleaks' configuration is not here")
def test_shipped_rules_are_built(tmp_path: Path) -> None:
    """The script generates the shipped file, byte for byte."""
    with tarfile.open(PACKED) as packed:
        packed.extract("gitleaks-rules/gitleaks.toml", tmp_path, filter="data")
    build(tmp_path / "gitleaks-rules" / "gitleaks.toml", tmp_path / "gitleaks.json")

    assert (tmp_path / "gitleaks.json").read_bytes() == GITLEAKS.read_bytes()
