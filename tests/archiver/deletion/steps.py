"""Helpers of the deletion tests: plan, delete, undo, and query the archive."""

from palaver.archiver.deletion.deletions import DeletionPlan, Deletions
from palaver.core import ids
from palaver.core.deletion import DeletionRequest

from ..history import ORIGINAL, History

OTHER = "33333333-0000-4000-8000-000000000003"


def plan(history: History, wanted: DeletionRequest) -> DeletionPlan:
    return Deletions(history.store, history.raw).plan(wanted)


def forget(history: History, *targets: str, erase: bool = False, mentions: str = "") -> int:
    """Delete the selected content and run an ingest. Return the deletion's number."""
    wanted = DeletionRequest(targets=targets, mentions=mentions, erase=erase)
    deletions = Deletions(history.store, history.raw)
    number = deletions.delete(plan(history, wanted))
    history.ingest()
    return number


def undo(history: History, number: int) -> None:
    Deletions(history.store, history.raw).undo(number)
    history.ingest()


def exchange(history: History, prompt: str, session: str = ORIGINAL) -> str:
    """Return the public ID of the exchange with this prompt."""
    number = history.store.sessions.find("claude-code", session)
    [key] = [each.key for each in history.stored() if each.session == number and each.exchange.prompt == prompt]
    return ids.show("exchange", key)


def copied_bytes(history: History) -> bytes:
    """Return the bytes of all raw copies, concatenated."""
    return b"".join(history.archive_files().values())


def all_prompts(history: History) -> list[str]:
    return [each.exchange.prompt for each in history.stored()]
