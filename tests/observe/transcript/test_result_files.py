"""Opened calls whose output Claude Code stores in a file."""

from pathlib import Path

from ...archiver.formats.claude_code.claude_lines import user
from ...archiver.history import ORIGINAL
from .sessions import bash, conversation, viewed


def test_an_output_in_a_file_is_shown_without_secrets(tmp_path: Path) -> None:
    """The transcript has only a preview of it."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    folder = tmp_path / "projects" / "shop" / ORIGINAL / "tool-results"
    folder.mkdir(parents=True)
    (folder / "b1.txt").write_text(f"first\n{secret}\n" + "row\n" * 50_000)
    preview = f"<persisted-output>\nFull output saved to: {folder / 'b1.txt'}\n\nPreview:\nfirst\n</persisted-output>"
    with viewed(tmp_path, conversation(user("Go"), *bash("make", preview, "t1"))) as (views, number, _):
        [step] = views.pages.steps_on(number, 1, 2)
        output = views.details.call(number, 1, step, 0).output

    assert output.text.startswith("first\n[secret:github-pat:")
    assert output.hidden == 0
    assert output.text.endswith(" characters; `palaver resume` restores the file]")
    assert len(output.text) < 66_000
