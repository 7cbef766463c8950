"""Timeline of observations, and the page of one observation, exchange or document beside its evidence."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.lines import one_line
from ..archiver.store import Store
from ..archiver.store.observation_table import StoredObservation
from ..core import ids
from ..core.observation import Observation, ObservationType
from ..core.results import Detail
from ..core.text import strip_markdown
from ..search.present.details import SessionNames
from ..templates.environment import has_transcript, label
from .gate import BASE
from .html_filters import day_name, type_name
from .markdown_html import markdown
from .pages import archive_of, page_number, redirect, render, route
from .search_page import evidence_address

_ROWS: Final = 50
"""Observations on one page."""
_MINOR: Final = (ObservationType.TEST, ObservationType.GENERAL)
"""Types that are listed only on request."""
_MAIN: Final = tuple(kind for kind in ObservationType if kind not in _MINOR)
_QUOTE: Final = 600
"""Maximum characters of a quote. Stored quotes are short; the rest of their line is added."""


class Proof(NamedTuple):
    """Lines that prove an observation: their address, and whole sentences from them."""

    first: int
    last: int
    address: str
    quotes: list[str]


class StatedFact(NamedTuple):
    """Fact of an observation. If a line says just this, its number and address are set."""

    text: str
    line: int = 0
    address: str = ""


class ListedObservation(NamedTuple):
    """Observation in the list, with the project and the title of its session, and the address of its evidence."""

    id: str
    observation: Observation
    project: str
    session_title: str
    evidence: str


def observations(request: Request) -> Response:
    """Show observations by day, the newest first, of the type and project in the address.

    Cards are in the list of sessions.
    """
    store = archive_of(request).store
    chosen = {name: value for name in ("type", "project") if (value := request.query_params.get(name, ""))}
    kinds, project = (chosen["type"],) if "type" in chosen else _MAIN, chosen.get("project", "")
    counts = Counter(store.observations.count_by_type(project, cards=False))
    total = sum(counts[kind] for kind in kinds)
    page = page_number(request)
    first = (page - 1) * _ROWS
    rows = _listed(store, store.observations.page(kinds, project, _ROWS, first))
    projects = store.sessions.totals_by_project()
    return render(
        request,
        "observations.html.j2",
        days=[(name, list(group)) for name, group in groupby(rows, key=lambda row: day_name(row.observation.at))],
        types=[
            (kind, counts[kind], _address(chosen, type=kind))
            for kind in ObservationType
            if counts[kind] or str(kind) == chosen.get("type")
        ],
        all_types=_address(chosen, type=""),
        chosen=chosen,
        projects=sorted(filter(None, (project.name for project in projects)), key=str.lower),
        total=total,
        minor=sum(counts[kind] for kind in _MINOR),
        newer=_address(chosen, page=str(page - 1)) if page > 1 else "",
        older=_address(chosen, page=str(page + 1)) if first + _ROWS < total else "",
    )


def _listed(store: Store, page: Sequence[StoredObservation]) -> list[ListedObservation]:
    numbers = {stored.session for stored in page}
    sessions, addresses = store.sessions.several(numbers), store.session_list.addresses(numbers)
    names, rows = SessionNames(store).of_all(numbers), list[ListedObservation]()
    for stored in page:
        public, lines = ids.show("observation", stored.key), stored.observation.lines
        address = addresses[stored.session]
        evidence = evidence_address(address, address, lines[0], public) if lines else ""
        title = names[stored.session].title
        rows.append(ListedObservation(public, stored.observation, sessions[stored.session].project, title, evidence))
    return rows


def item(request: Request) -> Response:
    """Show the details of an observation, exchange, document or memory beside the lines that prove them."""
    public = ids.canonical(request.path_params["item"]) or request.path_params["item"]
    if ids.key(public, "memory") is not None:
        return redirect(f"/memories/{public}")
    [detail] = archive_of(request).search.details([public])
    facts, proofs = _proofs(archive_of(request).store, detail)
    return render(
        request,
        "item.html.j2",
        detail=detail,
        label=type_name(label(detail)),
        markdown=markdown,
        has_transcript=has_transcript(detail),
        session=_session_address(detail),
        line_address=partial(evidence_address, detail.short_session_id, detail.session_id),
        facts=facts,
        proofs=proofs,
    )


def _proofs(store: Store, detail: Detail) -> tuple[list[StatedFact], list[Proof]]:
    """Return the facts of an item with the address of their line, and the other evidence, by lines.

    A quote that the title or the narrative contains is left out, but not its line, unless a fact has the same line.
    """
    key, seen = ids.key(detail.id), detail.observation
    exchanges = [stored.exchange for stored in store.items.load([key] if key is not None else []).values()]
    facts, proofs = [StatedFact(fact) for fact in seen.facts], dict[tuple[int, int], Proof]()
    stated = [_letters(strip_markdown(fact)) for fact in seen.facts]
    text = _letters(strip_markdown(f"{seen.name}\n{seen.lead}\n{seen.narrative}"))
    for evidence in seen.evidence:
        first, last = evidence.start_line, evidence.end_line
        address = evidence_address(detail.short_session_id, detail.session_id, first, detail.id)
        texts = [text for exchange in exchanges for text in store.exchanges.texts_on(exchange, first, last)]
        quote = _whole(evidence.quote, texts) if evidence.quote else ""
        said = _letters(strip_markdown(quote))
        same = next((place for place, fact in enumerate(stated) if said and _is_repeated(said, fact)), None)
        if same is not None:
            facts[same] = facts[same] if facts[same].line else StatedFact(facts[same].text, first, address)
            continue
        proof = proofs.setdefault((first, last), Proof(first, last, address, []))
        if said and said not in text and quote not in proof.quotes:
            proof.quotes.append(quote)
    linked = {fact.line for fact in facts}
    return facts, [proof for proof in proofs.values() if proof.quotes or proof.first not in linked]


def _is_repeated(quote: str, fact: str) -> bool:
    """Return whether a fact says a quote, or more than half of it. Both are letters and digits without spaces."""
    return quote in fact or (fact in quote and 2 * len(fact) > len(quote))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _whole(quote: str, texts: Sequence[str]) -> str:
    """Return a quote up to the end of its line in the texts, which may be shortened."""
    text = next((text for text in texts if quote in text), quote)
    return one_line(text[text.find(quote) :].partition("\n")[0], _QUOTE)


def _session_address(detail: Detail) -> str:
    path = detail.short_session_id if "/" in detail.short_session_id else detail.session_id
    return f"{BASE}/sessions/{quote(path)}"


def _address(chosen: dict[str, str], **changes: str) -> str:
    """Return the address of the timeline with changed parameters."""
    values = {name: value for name, value in {**chosen, **changes}.items() if value}
    return f"{BASE}/observations?{urlencode(values)}" if values else f"{BASE}/observations"


routes: Final[list[BaseRoute]] = [route("/observations", observations), route("/items/{item}", item)]
