"""Make the screenshots of docs/viewer.md from the sample archive: `python release/viewer_screenshots.py FOLDER`.

It needs Chromium and Playwright, as the tests of the viewer in a browser do.
"""

import subprocess
import sys
import tempfile
from os import environ
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
SESSION = "0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01"
SHOTS = {"home": "/view/", "session": f"/view/sessions/{SESSION}", "search": "/view/search?q=sqlite+or+json+files"}
"""Path of the page on each screenshot."""


def main(folder: Path) -> None:
    """Serve the sample archive and save a screenshot of each page."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "palaver", "--demo", "view", "--no-browser"]
        settings = {**environ, "HOME": home, "PALAVER_HOME": home}
        with subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            link = next(line for line in server.stderr if "/enter?" in line).split()[-1]
            try:
                _take(link, folder)
            finally:
                server.kill()


def _take(link: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        page.goto(link)
        origin = link.partition("/view")[0]
        for name, path in SHOTS.items():
            page.goto(origin + path)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"viewer-{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
