"""The samples that verify an erasure are texts that occur only in the erased content."""

from pathlib import Path

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.pipeline import Pipeline

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, tool, user


def test_text_of_remaining_calls_is_not_a_sample(tmp_path: Path) -> None:
    """A tool call that also occurs in a remaining session is not a sample."""
    kept, gone = "11111111-0000-4000-8000-00000000000a", "cafe0000-0000-4000-8000-00000000000b"
    for session, word in ((kept, "kettle"), (gone, "pan")):
        place = {"sessionId": session, "cwd": "/home/demo/shop"}
        asked = user(f"Please mend the {word} in the kitchen of the shop", uuid=f"{word}-1", **place)
        call = tool("TaskUpdate", {"taskId": "5", "status": "completed"})
        done = assistant(call, id=f"msg-{word}", uuid=f"{word}-2", parentUuid=f"{word}-1", **place)
        folder = tmp_path / "projects" / "shop"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{session}.jsonl").write_bytes(jsonl([asked, done]))
    home, wanted = Home(tmp_path / "home"), DeletionRequest((gone,), erase=True)
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([tmp_path / "projects"]))

    with Deleter(home) as deleter:
        outcome = deleter.delete(wanted, deleter.preview(wanted).token)

    assert outcome.check is not None
    assert outcome.check.samples > 0
    assert not outcome.check.found
    assert outcome.check.passed
