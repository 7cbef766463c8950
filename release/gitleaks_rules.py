"""Build `archiver/redaction/gitleaks.json` from the configuration of gitleaks.

    python release/gitleaks_rules.py TOML

The same input gives the same bytes. Rules and exceptions that only match paths are omitted. The rules in `OMITTED` are
also omitted.
"""

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from palaver.archiver.redaction.rules import GITLEAKS

OMITTED = {
    "curl-auth-user": "its exceptions allow every password that begins with x; credentials.py finds them",
    "hashicorp-tf-password": "only useful in its own files; assignments.py finds the same",
    "jwt": "credentials.py also matches base64url in headers",
    "microsoft-teams-webhook": "vendor_tokens.py finds webhooks of all services",
    "private-key": "matches all text between two mentions of a key; credentials.py finds keys, also truncated ones",
    "slack-webhook-url": "vendor_tokens.py finds webhooks of all services",
    "telegram-bot-api-token": "vendor_tokens.py finds it without the name of the service",
    "kubernetes-secret-yaml": "finds only the first value, and none on numbered lines; blocks.py finds all",
}

_NAMES = "(?:access|auth|api|credential|creds|key|passwd|password|secret|token)"
KEYWORDS = {
    "1password-secret-key": [r"a3\-[a-z0-9]{6}\-"],
    "authress-service-client-access-key": [r"\.acc[_-]"],
    "linear-client-secret": [r"linear[ \t\w.-]*[\s'\"]*[?=>:|,]"],
    "lob-api-key": [r"(?:live|test)_[a-f0-9]{8}"],
    "octopus-deploy-api-key": [r"api\-[a-z0-9]{8}"],
    "generic-api-key": [
        _NAMES + r"[ \t\w.-]*[\s'\"]*[?=>:|,][=>:|`'\"\s]*[\w.=+/-]{10}",
    ],
    "twilio-api-key": ["sk[0-9a-f]{6}"],
    "vault-service-token": [r"hvs\.", r"\bs\.[a-z0-9]{6}"],
}
"""Patterns by rule. They replace keywords of the rule that are very common.

Every match of the rule contains a match of one of its patterns.
"""

NARROWER = {
    # Matches any commit hash in every text with the name of the company.
    "sourcegraph-access-token": ("|[a-fA-F0-9]{40})", ")"),
}
"""Replacements in the patterns of rules: (part of the pattern, new part) by rule.

The original part matches too much in text whose file name is unknown.
"""

EXCEPTED = {
    # These are forms of names in programs. Everything that the rule found in 60 MB of source code had one of these
    # forms.
    "generic-api-key": {
        "patterns": [
            r"^_?[A-Za-z]+\d{0,2}[A-Za-z]*(?:\.[A-Za-z_]+)+$",
            r"^(?:\w+\.)*[A-Z]\w*(?:Private|Public|Secret)Key$",
            r"=[a-z]$",
            r"^\w+=[A-Za-z_]+$",
            r"^[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}$",  # found by other rules after `api_key`
        ]
    },
}
"""Additional patterns by rule. A match of the rule that also matches one of them is not a secret."""

_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_OUR_END = r"""(?:[\x60'"\s;,)\]}<]|\\|\.\s|\.?$)"""
_PREFIX = r"(?i)[\w.-]{0,50}?"
_LITERAL = re.compile(r"\w[\w-]{19,}")


def main(source: Path, target: Path = GITLEAKS) -> None:
    """Write `target` from the TOML file `source`.

    Raises:
        KeyError: The structure of the file has changed.
        ValueError: The structure of the file has changed.
    """
    content = source.read_bytes()
    config = tomllib.loads(content.decode())
    kept = [rule for rule in config["rules"] if "regex" in rule and rule["id"] not in OMITTED]
    data = {
        "source": "https://github.com/gitleaks/gitleaks, config/gitleaks.toml",
        "version": config["minVersion"],
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "MIT, Copyright (c) 2019 Zachary Rice",
        "allowed": _allowed(config["allowlist"]),
        "rules": [_rule(rule) for rule in kept],
    }
    # Write one rule per line, so that differences between versions are readable.
    rules = ",\n".join(json.dumps(rule, ensure_ascii=False) for rule in data.pop("rules"))
    head = json.dumps(data, ensure_ascii=False, indent=1).removesuffix("\n}")
    target.write_text(f'{head},\n "rules": [\n{rules}\n]}}\n', encoding="utf-8")


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    made = {
        "kind": rule["id"],
        "pattern": _pattern(rule),
        "keywords": KEYWORDS.get(rule["id"]) or [re.escape(word) for word in rule["keywords"]],
    }
    if group := rule.get("secretGroup"):
        made["group"] = group
    if entropy := rule.get("entropy"):
        made["entropy"] = entropy
    allowed = [_allowed(one) for one in rule.get("allowlists", []) if _has_no_path(one)]
    if rule["id"] in EXCEPTED:
        allowed.append(EXCEPTED[rule["id"]])
    if allowed:
        made["allowed"] = allowed
    return made


def _pattern(rule: dict[str, Any]) -> str:
    pattern = _masked(rule["regex"])
    if rule["id"] in NARROWER:
        wide, narrow = NARROWER[rule["id"]]
        if pattern.count(wide) != 1:
            raise ValueError(f"{rule['id']} has changed: {pattern}")
        pattern = pattern.replace(wide, narrow)
    # A named or repeated group is a part of the secret.
    pattern = re.sub(r"\(\?P<\w+>|\((?=[^?()][^()]*\)\{)", "(?:", pattern)
    # Conversations contain prose, and programs within JSON. So a secret may also end at `.`, `)` or an escaped quote.
    pattern = pattern.replace(_END, _OUR_END)
    # A prefix before the name does not change the results, but takes most of the time.
    return "(?i)" + pattern.removeprefix(_PREFIX) if pattern.startswith(_PREFIX) else pattern


def _has_no_path(allowed: dict[str, Any]) -> bool:
    return "paths" not in allowed or ("regexes" in allowed and allowed.get("condition", "OR") == "OR")


def _allowed(allowed: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if patterns := allowed.get("regexes"):
        made["patterns"] = [_masked(pattern) for pattern in patterns]
    if words := allowed.get("stopwords"):
        made["words"] = words
    if target := allowed.get("regexTarget"):
        made["target"] = target
    return made


def _masked(pattern: str) -> str:
    """Return an equivalent pattern that secret scanners do not mistake for a secret."""
    return f"[{pattern[0]}]{pattern[1:]}" if _LITERAL.fullmatch(pattern) else pattern


if __name__ == "__main__":
    main(Path(sys.argv[1]))
