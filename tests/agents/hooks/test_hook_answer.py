"""Tests of agents/hooks/hooks.py: projects without hooks."""

import json
from pathlib import Path

from palaver.agents.hooks.hooks import HookAnswer, HookCall, HookPlace, answer
from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.observe.archive import Archive


def injected(home: Home, folder: str, off: tuple[str, ...]) -> str:
    """Return what a hook injects in a folder."""

    def select(_call: HookCall, _place: HookPlace) -> HookAnswer:
        return HookAnswer("text")

    call = HookCall.parse(HookEvent.SESSION_START, json.dumps({"session_id": "s1", "cwd": folder}).encode())
    assert call is not None
    return answer(call, Archive(home, Config(hooks_off=off)), select)


def test_no_hook_runs_in_the_worktrees_of_a_project_without_hooks(tmp_path: Path) -> None:
    """A folder in `hooks_off` covers the folders below it and the worktrees of its repository."""
    home = Home(tmp_path / "palaver")
    home.make()
    Store.create(home.database).close()
    for folder in ("/code/shop", "/code/shop/src", "/code/shop.worktrees/fix-1", "/code/shop/.claude/worktrees/fix-1"):
        assert injected(home, folder, ("/code/shop",)) == ""
        assert injected(home, folder, ("shop",)) == "" or folder.endswith("src")
        assert injected(home, folder, ("/code/till", "till")) == "text"
