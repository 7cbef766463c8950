"""Preview and download of a shared session in the viewer."""

from pathlib import Path

from palaver.core.home import Home

from ..archiver.history import ORIGINAL, History, talk
from .viewing import viewing


def test_a_download_needs_the_form_token(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.write(talk("paint"))
        history.ingest()
        with viewing(history.home) as viewer:
            viewer.enter()
            page = viewer.submit("/share", {"target": ORIGINAL, "content": "prompts"})
            refused = viewer.client.post(
                "/view/share", data={"target": ORIGINAL}, headers={"origin": viewer.access.origin}
            )

    assert "paint?" in page
    assert "paint!" not in page
    assert refused.status_code == 403


def test_read_only_mode_allows_a_download(tmp_path: Path) -> None:
    """It changes nothing. A deletion is still refused."""
    with History(tmp_path) as history:
        history.write(talk("paint"))
        history.ingest()
    with viewing(Home(history.home.root, read_only=True)) as viewer:
        viewer.enter()
        assert "paint!" in viewer.submit("/share", {"target": ORIGINAL})
        viewer.submit("/forget", {"target": ORIGINAL}, status=403)


def test_an_unknown_session_is_reported(tmp_path: Path) -> None:
    with History(tmp_path) as history:
        history.write(talk("paint"))
        history.ingest()
        with viewing(history.home) as viewer:
            assert "Unknown ID: nothing" in viewer.enter().page("/share?target=nothing", status=404)
