"""Crawler of the viewer's own links, and a parser that lists what a page could load or execute."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

from .viewing import Viewer

_PASSIVE: Final = frozenset({"link", "meta", "img", "script", "form", "input"})
_FOLLOWED: Final = ("href", "hx-get", "src", "action")


class Page(HTMLParser):
    """Elements of a page with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        """Record a text."""
        self.text += data

    def links(self) -> Iterator[str]:
        """Yield the addresses of links, fragments and pictures."""
        for tag, attributes in self.elements:
            if tag == "form" and attributes.get("method") == "post":
                continue  # It changes the archive, and its address has no page.
            yield from (attributes[name] for name in _FOLLOWED if name in attributes)


def dangers(html: str) -> list[str]:
    """Return what a page could execute, or load from another host."""
    found = list[str]()
    for tag, attributes in Page(html).elements:
        if tag in {"iframe", "object", "embed", "svg", "math", "base", "style", "template", "video", "audio", "frame"}:
            found.append(f"<{tag}>")
        if tag == "script" and not attributes.get("src", "").startswith("/view/static/"):
            found.append("script")
        for name, value in attributes.items():
            scheme = "".join(value.split()).lower()
            if name.startswith("on") or name in {"style", "srcdoc", "srcset", "background", "formaction", "ping"}:
                found.append(f"{tag} {name}={value}")
            if name in {"src", "action", "hx-get", "data", "poster"} and not value.startswith("/view/"):
                found.append(f"{tag} {name}={value}")
            if name == "href" and not scheme.startswith(("/view", "#", "http://", "https://", "mailto:", "data:,")):
                found.append(f"{tag} {name}={value}")
            if name == "href" and tag not in {"a", "link"}:
                found.append(f"{tag} {name}={value}")
            if name == "href" and tag == "link" and not value.startswith(("/view/", "data:,")):
                found.append(f"{tag} {name}={value}")
            if name == "http-equiv":
                found.append(f"{tag} {name}={value}")
    return found


def crawl(viewer: Viewer, start: str, most: int = 400) -> dict[str, str]:
    """Return every page and part of a page that links lead to, below the path `start`. Pictures are not read."""
    found, waiting = dict[str, str](), [f"/view{start}"]
    while waiting and len(found) < most:
        path = waiting.pop(0)
        if path in found:
            continue
        answer = viewer.client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        if not answer.headers["content-type"].startswith("text/html"):
            found[path] = ""
            continue
        found[path] = answer.text
        for link in Page(answer.text).links():
            target = urlsplit(urljoin(path, link))
            address = target.path + (f"?{target.query}" if target.query else "")
            if not target.netloc and target.path.startswith(f"/view{start}") and address not in found:
                waiting.append(address)
    return found
