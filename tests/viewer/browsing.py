"""Viewer in Chromium, for tests that are skipped where it is missing, except in continuous integration."""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Dialog, Page

from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.viewer.app import viewer_app
from palaver.viewer.gate import Access

CHROMIUM = Path("/usr/bin/chromium")
if not CHROMIUM.exists() and not os.environ.get("CI"):
    pytest.skip("Chromium is not installed", allow_module_level=True)


@contextmanager
def serving(home: Home) -> Generator[Access]:
    """Serve the viewer of a home on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        access = Access("127.0.0.1", listener.getsockname()[1])
        app = viewer_app(Archive(home), access, "1.0", lambda: None)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield access
        finally:  # a failed or skipped test would leave a thread that keeps the process alive
            server.should_exit = True
            thread.join()


@contextmanager
def opened(browser: Browser, access: Access, path: str, **options: Any) -> Generator[Page]:
    """Open a page of the viewer in a new window, whose requests must all go to the viewer."""
    context: BrowserContext = browser.new_context(**options)
    page = context.new_page()
    requests, dialogs = list[str](), list[str]()

    def refuse(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", refuse)
    page.goto(access.link(path))
    page.wait_for_load_state("networkidle")
    yield page
    assert dialogs == []
    assert [url for url in requests if not url.startswith((access.origin, "data:"))] == []
    context.close()
