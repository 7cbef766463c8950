"""Tests of agents/clients/client_setup.py: interrupted and failed writes."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.clients.client_setup import (
    apply,
    backup_of,
    plan,
    plan_removal,
    read_config,
    remove_config,
    write_config,
)
from palaver.agents.clients.client_table import find_client
from palaver.core.errors import ClientConfigUnusable

from ... import crash_injection, unprivileged
from .config_samples import RICH, write
from .install_worker import SERVER

WORKER = "tests.agents.clients.install_worker"
ZED = find_client("zed")


def run_killed_at(work: str, at: int, state: dict[Path, bytes]) -> bool:
    """Run the worker on a folder with the given files, and return whether it was killed."""
    for path in ZED.path.parent.iterdir():
        path.unlink()
    for path, content in state.items():
        path.write_bytes(content)
    ran = crash_injection.run(WORKER, work, "zed", at)
    if ran.returncode == -signal.SIGKILL:
        return True
    assert crash_injection.steps(ran) < at
    return False


def test_a_killed_process_leaves_the_old_or_the_new_file() -> None:
    """A process that is killed at any change of the disk leaves a complete file, and the next run finishes the work."""
    old, path = RICH["zed"].encode(), ZED.path
    write(path, old)
    apply(plan(ZED, SERVER))
    new = path.read_bytes()
    states = {"add": {path: old}, "remove": {path: new, backup_of(path): old}}
    kills = 0
    for work, state in states.items():
        at = 1
        while run_killed_at(work, at, state):
            kills, at = kills + 1, at + 2
            assert path.read_bytes() in {old, new}
            apply(plan(ZED, SERVER))
            assert path.read_bytes() == new
            apply(plan_removal(ZED))
            assert path.read_bytes() == old

    assert kills > 5


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_keeps_the_file(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the file keeps its content, no other file is left, and the error names the file."""
    write(ZED.path, RICH["zed"])

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(ClientConfigUnusable, match="No space left") as raised:
        write_config(ZED.path, b"{}")

    assert str(ZED.path) in str(raised.value)
    assert ZED.path.read_text("utf-8") == RICH["zed"]
    assert [path.name for path in ZED.path.parent.iterdir()] == ["settings.json"]


_WITHOUT_RIGHTS = """
import sys
from pathlib import Path
from palaver.agents.clients.client_setup import read_config, remove_config, write_config
from palaver.core.errors import ClientConfigUnusable
path = Path(sys.argv[1])
for work in (lambda: write_config(path, b"new"), lambda: remove_config(path), lambda: read_config(path)):
    try:
        work()
    except ClientConfigUnusable as error:
        print(error.reason)
"""


def test_missing_permissions_are_reported(tmp_path: Path) -> None:
    """A folder that cannot be written to, and a file that cannot be read, are reported as unusable."""
    path = write(tmp_path / "config" / "mcp.json", "{}")
    path.chmod(0o000)
    path.parent.chmod(0o500)
    shown = unprivileged.start(_WITHOUT_RIGHTS, path).communicate()[0]
    path.parent.chmod(0o700)

    assert shown.splitlines() == ["Permission denied"] * 3
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


def test_a_loop_of_links_is_reported(tmp_path: Path) -> None:
    """A link to itself is unusable."""
    path = tmp_path / "mcp.json"
    path.symlink_to(path)
    with pytest.raises(ClientConfigUnusable):
        read_config(path)


def test_a_link_to_a_missing_file_creates_the_file(tmp_path: Path) -> None:
    """A link to a missing file is followed, and stays when the new file is removed."""
    path, target = tmp_path / "mcp.json", tmp_path / "dot files" / "mcp.json"
    path.symlink_to(target)
    write_config(path, b"{}")
    assert (read_config(path), target.read_bytes(), path.is_symlink()) == (b"{}", b"{}", True)

    remove_config(path)
    assert (target.exists(), path.is_symlink()) == (False, True)
