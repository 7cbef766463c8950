"""Search page: hits with snippets, facets and explained scores, or the reasons for an empty result."""

from collections import Counter
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import Store
from ..core import ids
from ..core.errors import InvalidInput
from ..core.observation import ObservationType
from ..core.query import LISTS, HitKind, Mode, Query
from ..core.results import Hit, Results
from ..observe.archive import Archive
from ..search.present.details import SessionNames
from ..templates.environment import label
from .gate import BASE
from .html_filters import type_name
from .pages import archive_of, redirect, render, route
from .session_rows import SessionRow, rows_of

_HITS: Final = 20
"""Hits on one page."""
_COUNTED: Final = 50
"""Hits that the facets count."""
_FACETS: Final = {"project": "Project", "type": "Type of observation", "kind": "Kind of entry"}
"""Label of each facet, by the name of its parameter in the address."""
_ALLOWED: Final = {"type": set(map(str, ObservationType)), "kind": set(map(str, HitKind)) - LISTS}
"""Values that the filters accept. A hit can have others, such as the type of a memory."""
_LABELLED: Final = 5
"""Maximum number of sessions that are listed for their title or tags."""
_NEAR: Final = 200
"""Maximum characters of a snippet in the address of its line."""
_VALUES: Final = 6
"""Maximum number of values of one facet."""


class Facet(NamedTuple):
    """Value of a facet: its number of hits, the address with or without it, and whether it is chosen."""

    value: str
    hits: int
    address: str
    chosen: bool


class ListedHit(NamedTuple):
    """Hit with the addresses of its details and of its evidence. The second is empty if it has no conversation."""

    hit: Hit
    label: str
    details: str
    evidence: str


class NamedPage(NamedTuple):
    """Page of the item or session whose ID is the query: its path below `BASE`, and its title."""

    path: str
    title: str


def search(request: Request) -> Response:
    """Show the hits of the query in the address."""
    parameters = {name: value for name, value in request.query_params.items() if value.strip()}
    text = parameters.get("q", "").strip()
    problem = None
    try:
        query = _query(text, parameters) if text else None
    except InvalidInput as error:
        query, problem = None, error
    if query is None:
        values = {"text": text, "also": parameters.get("also", ""), "results": None, "problem": problem}
        return render(request, "search.html.j2", 400 if problem else 200, **values)
    results = archive_of(request).search.find(query)
    listed = results.hits[:_HITS]
    is_cut = len(results.hits) > _HITS
    return render(
        request,
        "search.html.j2",
        text=text,
        also=parameters.get("also", ""),
        parameters=parameters,
        results=results,
        problem=None,
        hits=[listed_hit(hit) for hit in listed],
        named=_named(archive_of(request), text),
        labelled=_labelled(archive_of(request).store, text) if "cursor" not in parameters else [],
        facets=_facets(results, parameters),
        explain="explain" in parameters,
        address=partial(_address, parameters),
        older=_address(parameters, cursor=listed[-1].cursor if is_cut else results.cursor)
        if is_cut or results.cursor
        else "",
        is_first="cursor" not in parameters,
        missing=_missing(results),
        is_filtered=any(name in parameters for name in (*_FACETS, "after", "before")),
        weak=[listed_hit(hit) for hit in results.explanation.weak] if results.explanation else [],
    )


def find(request: Request) -> Response:
    """Redirect to the page of the session or item with an ID, or else to the search for the words."""
    text = request.query_params.get("q", "").strip()
    named = _named(archive_of(request), text)
    return redirect(named.path if named else f"/search?{urlencode({'q': text})}")


def _named(archive: Archive, text: str) -> NamedPage | None:
    """Return the page of the item or session with an ID, or None if the text is no ID, or that of several sessions."""
    if public := ids.canonical(text):
        details, _ = archive.search.look_up([public])
        return next((NamedPage(f"/items/{detail.id}", detail.observation.name) for detail in details), None)
    store = archive.store
    matches = store.sessions.beginning_with(text) if text and " " not in text else []
    if len(matches) != 1:
        return None
    [number] = matches
    address = store.session_list.addresses(matches)[number]
    return NamedPage(f"/sessions/{quote(address)}", SessionNames(store).title(number) or "Untitled session")


def listed_hit(hit: Hit) -> ListedHit:
    """Return a hit with its addresses."""
    if hit.kind == "session":
        address = f"{BASE}/sessions/{quote(hit.id if '/' in hit.id else hit.session_id)}"
        return ListedHit(hit, type_name("session"), address, address)
    place = hit.short_session_id, hit.session_id, hit.start_line, hit.id
    evidence = evidence_address(*place, hit.snippet[:_NEAR]) if hit.session_id else ""
    return ListedHit(hit, type_name(label(hit)), f"{BASE}/items/{hit.id}", evidence)


def evidence_address(short_id: str, session_id: str, line: int, item: str = "", text: str = "") -> str:
    """Return the address of a line in the page of its session.

    With the ID of an item, it is the line of its exchange that contains the text. Otherwise, the session has one file.
    """
    path = short_id if "/" in short_id else session_id
    named = {"item": item, "line": str(line), "near": text} if item else {"line": str(line)}
    query = urlencode({name: value for name, value in named.items() if value})
    return f"{BASE}/sessions/{quote(path)}?{query}#L{line}"


def _labelled(store: Store, text: str) -> list[SessionRow]:
    """Return the sessions to which the user gave a title or tags with all words of the query."""
    words = [word.removeprefix("tag:").strip('#"') for word in text.split()]
    return rows_of(store, store.session_labels.matching([word for word in words if word])[:_LABELLED])


def _query(text: str, parameters: dict[str, str]) -> Query:
    """Return the query for parameters of an address. Raises `InvalidInput`."""
    filters: dict[str, Any] = {f"{name}s": [parameters[name]] for name in _FACETS if name in parameters}
    return Query.parse(
        text,
        mode=parameters.get("mode", Mode.BOTH),
        limit=_COUNTED,
        weak="weak" in parameters,
        by="session" if parameters.get("by") == "session" else "event",
        cursor=parameters.get("cursor", ""),
        also=[parameters["also"]] if "also" in parameters else [],
        after=parameters.get("after"),
        before=parameters.get("before"),
        **filters,
    )


def _facets(results: Results, parameters: dict[str, str]) -> dict[str, list[Facet]]:
    """Return the values of each facet among the hits. A facet with one value is shown only if it is chosen."""
    facets = dict[str, list[Facet]]()
    for name, heading in _FACETS.items():
        counts = Counter(value for hit in results.hits if (value := getattr(hit, name)))
        if name in _ALLOWED:
            counts = Counter({value: hits for value, hits in counts.items() if value in _ALLOWED[name]})
        chosen = parameters.get(name)
        if len(counts) > 1 or chosen:
            facets[heading] = [
                Facet(value, hits, _address(parameters, **{name: "" if value == chosen else value}), value == chosen)
                for value, hits in (counts or Counter({chosen or "": 0})).most_common(_VALUES)
            ]
    return facets


def _address(parameters: dict[str, str], **changes: str) -> str:
    """Return the address of the search with changed parameters. The search starts at its first page."""
    values = {name: value for name, value in {**parameters, "cursor": "", **changes}.items() if value}
    return f"{BASE}/search?{urlencode(values)}"


def _missing(results: Results) -> list[str]:
    """Return the search engines that did not answer."""
    engines = [Mode.TEXT, Mode.VECTOR] if results.query.mode is Mode.BOTH else [results.query.mode]
    return [mode.value for mode in engines if mode.value not in results.searched]


routes: Final[list[BaseRoute]] = [route("/search", search), route("/find", find)]
