"""Erased sessions stay erased when their files are serialised again."""

import json
from pathlib import Path

from palaver.archiver.store import Store
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.observe.deletion.erasure import scan

from .test_deleter import CANARIES, GONE, archive, canary_home, deleted, root

__all__ = ["canary_home", "root"]  # fixtures


def test_an_erased_session_stays_erased_when_its_file_is_serialised_again(root: Path) -> None:
    """Different whitespace, key order or escapes in the file do not restore the erased title or metadata."""
    home = Home(root / "home")
    [path] = (root / "projects").resolve().rglob(f"{GONE}.jsonl")
    before = path.read_bytes()
    deleted(home, DeletionRequest((GONE,), erase=True))
    records = [json.loads(line) for line in before.splitlines()]
    again = [
        json.dumps(dict(reversed([*record.items()])), indent=None, separators=(" , ", " : ")) for record in records
    ]
    try:
        path.write_text("\n".join(again) + "\n")
        (path.parent / "elsewhere.jsonl").write_text("\r\n".join(again) + "\r\n")
        archive(root, home)
        assert scan(home.root, [canary for canary in CANARIES if canary != "LogCanary"]).found == []
        with Store.open(home.database) as store:
            assert GONE not in {session.native_id for session in store.sessions.all().values()}
    finally:
        (path.parent / "elsewhere.jsonl").unlink(missing_ok=True)
        path.write_bytes(before)
