"""Viewer in this process, for tests of its pages and its gate."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from starlette.testclient import TestClient

from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.viewer.app import viewer_app
from palaver.viewer.gate import Access

HOST, PORT = "palaver-0123abcd.localhost", 9101


class Viewer:
    """Viewer of a home with a client that has not opened the link yet."""

    def __init__(self, client: TestClient, access: Access) -> None:
        self.client, self.access = client, access

    def enter(self) -> "Viewer":
        """Open the one-time link."""
        assert self.client.get(self.access.link(), follow_redirects=False).status_code == 303
        return self

    def page(self, path: str, status: int = 200) -> str:
        """Return the HTML of a page below `/view`."""
        answer = self.client.get(f"/view{path}")
        assert answer.status_code == status, answer.text
        return answer.text

    def submit(self, path: str, fields: Mapping[str, str], status: int = 200) -> str:
        """Send a form as the viewer's own pages do, and return the HTML of the page that follows."""
        data = {"form_token": self.access.form_token, **fields}
        answer = self.client.post(f"/view{path}", data=data, headers={"origin": self.access.origin})
        assert answer.status_code == status, answer.text
        return answer.text


@contextmanager
def viewing(home: Home) -> Generator[Viewer]:
    """Open a viewer for a home."""
    access = Access(HOST, PORT)
    app = viewer_app(Archive(home), access, "1.0", lambda: None)
    with TestClient(app, base_url=access.origin) as client:
        yield Viewer(client, access)


def text_of(html: str) -> str:
    """Return the visible text of a page, with single spaces."""
    body = re.sub(r"(?s)<(head|script|style)\b.*?</\1>", " ", html)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())
