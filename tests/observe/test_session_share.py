"""Sharing of a session: what is chosen, and what never leaves the archive."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.config import Config
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput, InvalidLineRange
from palaver.core.home import Home
from palaver.core.shared_session import LeftOutReason, SharedSession, ShareOptions
from palaver.core.transcript_page import StepKind
from palaver.observe.archive import Archive
from palaver.observe.pipeline import Pipeline
from palaver.observe.transcript.image_metadata import without_metadata
from palaver.templates.render import Renderer
from palaver.viewer.shared_html import file_name, shared_html

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, queue, result, text, tool, user
from ..archiver.history import ORIGINAL
from .shared import NAME, SECRET, image, planted, png
from .transcript.sessions import conversation


@contextmanager
def archived(root: Path, records: list[dict[str, object]], config: Config | None = None) -> Generator[Archive]:
    """Archive a session with its card and its observations."""
    path = root / "projects" / "shop" / f"{ORIGINAL}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl(records))
    home = Home(root / "home")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([path.parent]))
    with Archive(home, config or Config()) as archive:
        yield archive


def records_of(*records: dict[str, object]) -> list[dict[str, object]]:
    """Return records with their own working folder, if they have one."""
    return [{**dated, **record} for dated, record in zip(conversation(*records), records, strict=True)]


def shared(archive: Archive, **options: object) -> SharedSession:
    return archive.sharing.session(archive.sharing.number(ORIGINAL), msgspec.convert(options, ShareOptions))


def pages(session: SharedSession) -> dict[str, str]:
    """Return everything that people see of a shared session."""
    renderer = Renderer(None, at_shell=True)
    return {
        "html": shared_html(session),
        "markdown": renderer.fill("shared_session", session=session),
        "preview": renderer.fill("share_preview", reports=[session.report]),
        "name": file_name(session, "html"),
        "json": msgspec.json.encode(session.report).decode(),
    }


@pytest.mark.parametrize("output", [False, True], ids=["without output", "with output"])
def test_planted_secrets_and_home_folders_stay_out_of_every_place(tmp_path: Path, output: bool) -> None:
    """Neither is in a page, in the preview, in the name of the file, or in the metadata of an image."""
    with archived(tmp_path, [*records_of(*planted()[:-1]), {**planted()[-1], "sessionId": ORIGINAL}]) as archive:
        session = shared(archive, output=output)

        for name, page in pages(session).items():
            assert SECRET[4:] not in page, name
            assert NAME not in page, name
        images = [shown for exchange in session.exchanges for step in exchange.steps for shown in step.images]
        images += [
            shown
            for exchange in session.exchanges
            for step in exchange.steps
            for call in step.calls
            for shown in call.images
        ]
        assert len(images) == (2 if output else 1)
        assert not any(NAME.encode() in shown.data or SECRET.encode() in shown.data for shown in images)
        assert session.report.secrets == {"github-pat": 1}
        assert session.report.home_paths > 20
        assert session.header.facts != ()


def test_tool_output_is_shared_only_on_request(tmp_path: Path) -> None:
    records = records_of(
        user("Go"),
        assistant({"type": "thinking", "thinking": "a thought"}, id="m1"),
        assistant(text("I test it."), id="m2"),
        assistant(tool("Bash", {"command": "make test"}, "t1"), id="m3"),
        result("the output of the tool", None, "t1", is_error=True),
    )
    with archived(tmp_path, records) as archive:
        brief, whole = shared(archive), shared(archive, output=True)

        assert brief.report.withheld == {"tool outputs": 1, "thoughts": 1}
        assert (brief.report.outputs, whole.report.outputs) == (0, 1)
        for name in ("html", "markdown"):
            assert "make test" in pages(brief)[name]
            assert "the output of the tool" not in pages(brief)[name]
            assert "a thought" not in pages(brief)[name]
            assert "the output of the tool" in pages(whole)[name]
            assert "a thought" in pages(whole)[name]


def test_prompts_only_shares_nothing_of_the_agent(tmp_path: Path) -> None:
    """The card is left out too, because it quotes the agent."""
    records = records_of(user("First question"), assistant(text("An answer."), id="m1"), user("Second question"))
    with archived(tmp_path, records) as archive:
        session = shared(archive, prompts_only=True)

        kinds = {step.step.kind for exchange in session.exchanges for step in exchange.steps}
        assert kinds == {StepKind.PROMPT}
        assert session.header.facts == ()
        assert "An answer." not in pages(session)["html"]
        assert "Second question" in pages(session)["html"]


def test_a_queued_prompt_is_shared_once(tmp_path: Path) -> None:
    records = records_of(
        user("First question"), assistant(text("An answer."), id="m1"),
        queue("enqueue", "Second question"), queue("dequeue"), user("Second question"),
    )  # fmt: skip
    with archived(tmp_path, records) as archive:
        session = shared(archive)

        assert [exchange.heading for exchange in session.exchanges] == ["First question", "Second question"]
        assert session.report.prompts == 2


def test_only_the_chosen_lines_are_shared(tmp_path: Path) -> None:
    records = records_of(
        user("First question"),
        assistant(text("First answer."), id="m1"),
        user("Second question"),
        assistant(text("Second answer."), id="m2"),
    )
    with archived(tmp_path, records) as archive:
        page = pages(shared(archive, first=2, last=3))["markdown"]
        assert "First answer." in page
        assert "Second question" in page
        assert "Second answer." not in page

        with pytest.raises(InvalidLineRange, match="line 9 is past the last line, which is 4"):
            shared(archive, first=9)


def test_deleted_lines_are_left_out_and_named(tmp_path: Path) -> None:
    records = records_of(
        user("Keep this"),
        assistant(text("Kept."), id="m1"),
        user("Forget that"),
        assistant(text("Forgotten."), id="m2"),
    )
    with archived(tmp_path, records) as archive:
        request = DeletionRequest(targets=(f"{ORIGINAL}:3-4",))
        archive.deletions.delete(request, archive.deletions.preview(request).token)
        session = shared(archive)

        [lines] = session.report.left_out
        assert (lines.reason, lines.first, lines.last) == (LeftOutReason.FORGOTTEN, 3, 4)
        assert "Forget that" not in pages(session)["html"]
        assert "Left out as forgotten: lines 3-4" in pages(session)["preview"]
        with pytest.raises(InvalidInput, match="Nothing of this session can be shared: forgotten"):
            shared(archive, first=3)


def test_private_text_and_private_projects_are_left_out_and_named(tmp_path: Path) -> None:
    """A title that can come from a private exchange is replaced."""
    records = records_of(
        user("Public <private>hidden words</private> question", cwd="/code/app"),
        assistant(text("An answer."), id="m1", cwd="/code/app"),
        user("A client question", cwd="/code/client"),
        assistant(text("A client answer."), id="m2", cwd="/code/client"),
    )
    records.append({"type": "custom-title", "customTitle": "The client", "sessionId": ORIGINAL})
    with archived(tmp_path, records, Config(private_projects=("/code/client",))) as archive:
        session = shared(archive)

        page, preview = pages(session)["html"], pages(session)["preview"]
        assert "hidden words" not in page
        assert "client" not in page.lower()
        assert session.header.title == "Public [private] question"
        assert "Private text removed on line 1" in preview
        assert "Left out as private project: lines 3-5" in preview
    with (
        archived(tmp_path / "all", records, Config(private_projects=("/code",))) as archive,
        pytest.raises(InvalidInput, match="Nothing of this session can be shared: private project"),
    ):
        shared(archive)


def test_long_output_is_shortened(tmp_path: Path) -> None:
    records = records_of(
        user("Go"), assistant(tool("Bash", {"command": "yes"}, "t1"), id="m1"), result("x" * 99 + "\n", None, "t1")
    )
    records[2]["message"]["content"][0]["content"] = ("x" * 99 + "\n") * 3_000  # type: ignore[index]
    with archived(tmp_path, records) as archive:
        page = pages(shared(archive, output=True))

        assert "283,999 more characters are not shown" in page["html"]
        assert len(page["html"]) < 80_000


def test_an_image_that_cannot_be_cleaned_is_left_out(tmp_path: Path) -> None:
    records = records_of(user([{"type": "text", "text": "Look"}, image(png()[:-20])]))
    with archived(tmp_path, records) as archive:
        assert shared(archive).report.withheld == {"images": 1}


def test_metadata_is_removed_from_images() -> None:
    """The image itself stays the same."""
    marked, plain = png("Made by zebulon"), png("")
    jpeg = (
        b"\xff\xd8\xff\xe0\x00\x04AB\xff\xe1\x00\x09zebulon\xff\xfe\x00\x04zz\xff\xda\x00\x04AB\x01\x02\xff\xd9zebulon"
    )
    webp = (
        b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x08" + bytes(9) + b"VP8 \x02\x00\x00\x00ABEXIF\x02\x00\x00\x00zz"
    )

    assert without_metadata("image/png", marked) == without_metadata("image/png", plain)
    assert without_metadata("image/jpeg", jpeg) == b"\xff\xd8\xff\xe0\x00\x04AB\xff\xda\x00\x04AB\x01\x02\xff\xd9"
    cleaned = without_metadata("image/webp", webp)
    assert cleaned is not None
    assert b"EXIF" not in cleaned
    assert b"zz" not in cleaned
    assert int.from_bytes(cleaned[4:8], "little") == len(cleaned) - 8
    assert cleaned[20] == 0
    assert without_metadata("image/gif", b"GIF89a") is None


def test_a_part_of_a_session_has_the_title_of_its_first_prompt(tmp_path: Path) -> None:
    """An extracted title can state what an agent said, or what other lines say."""
    records = records_of(
        user("Make the lamp brighter"),
        assistant(text("I replaced the secret dimmer of the lamp."), id="m1"),
        user("Now the door"),
        assistant(text("The door is open."), id="m2"),
    )
    with archived(tmp_path, records) as archive:
        assert shared(archive, prompts_only=True).header.title == "Make the lamp brighter"
        assert shared(archive, first=3).header.title == "Now the door"
