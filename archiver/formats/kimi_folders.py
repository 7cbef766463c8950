"""Folders of both Kimi products: what stands beside a journal about its session."""

from pathlib import Path

import orjson

from .json_values import mapping, string

_STATE_MAX = 1 << 20


def place_of(state: Path) -> str:
    """The folder a session works in, as its `state.json` tells; empty where that is missing or damaged."""
    try:
        with state.open("rb") as file:
            told = mapping(orjson.loads(file.read(_STATE_MAX)))
    except (OSError, orjson.JSONDecodeError):
        return ""
    return string(told.get("cwd")) or string(told.get("workDir")) or string(told.get("work_dir"))
