"""Makes `gitleaks.json` from gitleaks' own configuration: ``python -m palaver.archiver.redaction.build TOML``.

The same file makes the same bytes. What a text without a file name cannot use is left out: rules and exceptions that
ask for a path alone, and what `LEFT_OUT` names.
"""

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from .rules import GITLEAKS

LEFT_OUT = {
    "curl-auth-user": "its exceptions speak for every password that begins with an x; credentials.py takes them",
    "hashicorp-tf-password": "means nothing outside its files; assignments.py covers what it finds",
    "jwt": "credentials.py also takes the alphabet of base64url in headers",
    "microsoft-teams-webhook": "tokens.py takes webhooks of all services",
    "private-key": "takes all prose and code between two mentions of a key; credentials.py takes keys, cut ones too",
    "slack-webhook-url": "tokens.py takes webhooks of all services",
    "telegram-bot-api-token": "tokens.py takes it without the name of the service",
    "kubernetes-secret-yaml": "takes the first value alone, and no numbered lines; blocks.py takes all",
}

_NAMES = "(?:access|auth|api|credential|creds|key|passwd|password|secret|token)"
SHARPER = {
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
"""Signs in place of keywords of gitleaks that stand in every second text; whatever the rule matches has them too."""

NARROWER = {
    # Any commit hash, in every text that has the company's name in it.
    "sourcegraph-access-token": ("|[a-fA-F0-9]{40})", ")"),
}
"""Parts of a pattern that take too much where no file name narrows them, and what stands in their place."""

EXCEPTED = {
    # Names in programs; all that the rule found in 60 MB of source code was of these forms.
    "generic-api-key": {
        "patterns": [
            r"^_?[A-Za-z]+\d{0,2}[A-Za-z]*(?:\.[A-Za-z_]+)+$",
            r"^(?:\w+\.)*[A-Z]\w*(?:Private|Public|Secret)Key$",
            r"=[a-z]$",
            r"^\w+=[A-Za-z_]+$",
            r"^[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}$",  # behind `key`; other rules take it behind `api_key`
        ]
    },
}
"""Further exceptions of our own."""

_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_OUR_END = r"""(?:[\x60'"\s;,)\]}<]|\\|\.\s|\.?$)"""
_PREFIX = r"(?i)[\w.-]{0,50}?"
_LITERAL = re.compile(r"\w[\w-]{19,}")


def main(source: Path, target: Path = GITLEAKS) -> None:
    """Write `target` from gitleaks' TOML `source`; raises KeyError and ValueError where that is not what it was."""
    content = source.read_bytes()
    config = tomllib.loads(content.decode())
    kept = [rule for rule in config["rules"] if "regex" in rule and rule["id"] not in LEFT_OUT]
    data = {
        "source": "https://github.com/gitleaks/gitleaks, config/gitleaks.toml",
        "version": config["minVersion"],
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "MIT, Copyright (c) 2019 Zachary Rice",
        "allowed": _allowed(config["allowlist"]),
        "rules": [_rule(rule) for rule in kept],
    }
    # One rule a line, so that a difference between versions can be read.
    rules = ",\n".join(json.dumps(rule, ensure_ascii=False) for rule in data.pop("rules"))
    head = json.dumps(data, ensure_ascii=False, indent=1).removesuffix("\n}")
    target.write_text(f'{head},\n "rules": [\n{rules}\n]}}\n', encoding="utf-8")


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    made = {
        "kind": rule["id"],
        "pattern": _pattern(rule),
        "signs": SHARPER.get(rule["id"]) or [re.escape(word) for word in rule["keywords"]],
    }
    if group := rule.get("secretGroup"):
        made["group"] = group
    if entropy := rule.get("entropy"):
        made["entropy"] = entropy
    allowed = [_allowed(one) for one in rule.get("allowlists", []) if _asks_for_no_path(one)]
    if rule["id"] in EXCEPTED:
        allowed.append(EXCEPTED[rule["id"]])
    if allowed:
        made["allowed"] = allowed
    return made


def _pattern(rule: dict[str, Any]) -> str:
    pattern = _hidden(rule["regex"])
    if rule["id"] in NARROWER:
        wide, narrow = NARROWER[rule["id"]]
        if pattern.count(wide) != 1:
            raise ValueError(f"{rule['id']} has changed: {pattern}")
        pattern = pattern.replace(wide, narrow)
    # A group with a name, or one that repeats, is a part of the secret.
    pattern = re.sub(r"\(\?P<\w+>|\((?=[^?()][^()]*\)\{)", "(?:", pattern)
    # Conversations hold prose, and programs within JSON: a secret also ends at `.`, `)` or an escaped quote.
    pattern = pattern.replace(_END, _OUR_END)
    # What may stand before a name decides nothing, and costs most of the time.
    return "(?i)" + pattern.removeprefix(_PREFIX) if pattern.startswith(_PREFIX) else pattern


def _asks_for_no_path(allowed: dict[str, Any]) -> bool:
    return "paths" not in allowed or ("regexes" in allowed and allowed.get("condition", "OR") == "OR")


def _allowed(allowed: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if patterns := allowed.get("regexes"):
        made["patterns"] = [_hidden(pattern) for pattern in patterns]
    if words := allowed.get("stopwords"):
        made["words"] = words
    if target := allowed.get("regexTarget"):
        made["target"] = target
    return made


def _hidden(pattern: str) -> str:
    """The same pattern, but for a literal secret one that no scanner takes for a secret."""
    return f"[{pattern[0]}]{pattern[1:]}" if _LITERAL.fullmatch(pattern) else pattern


if __name__ == "__main__":
    main(Path(sys.argv[1]))
