"""MCP resources of the archive: the latest sessions, and URI templates for all observations and sessions.

Only the ID in a URI is passed to the archive, which looks it up and never uses it as a path.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from mcp_types import Annotations, Resource, ResourceTemplate

from ..core.clock import show_instant
from ..core.errors import InvalidInput, UnknownIds
from ..core.ids import canonical
from ..core.query import LIMIT_MAX, Query
from ..core.results import Hit
from ..templates.quote import brief
from .conversation_tools import ConversationContext

OBSERVATION: Final = "palaver://observation/{id}"
SESSION: Final = "palaver://session/{id}"
MARKDOWN: Final = "text/markdown"

_ADDRESS: Final = re.compile(r"palaver://(observation|session)/([^/?#]{1,300})", re.IGNORECASE)
_TITLE, _SHOWN = 30, 60
"""Maximum tokens of a title in the list, and of an unknown address or ID in an error."""

TEMPLATES: Final = [
    ResourceTemplate(
        name="observation",
        title="Observation",
        uri_template=OBSERVATION,
        description="One thing learned in a conversation, with the lines that prove it. IDs come from search: obs-24.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        name="session",
        title="Session",
        uri_template=SESSION,
        description="Summary and observations of a session. The first characters of its ID are enough.",
        mime_type=MARKDOWN,
    ),
]


def latest_sessions(conversation: ConversationContext) -> tuple[Hit, ...]:
    """Return the latest sessions, newest first."""
    return conversation.index.find(Query.newest(by="session", limit=LIMIT_MAX), snippets=False).hits


def session_address(session: Hit) -> str:
    """Return the URI of a session, such as `palaver://session/0b6f2c1d`."""
    return SESSION.replace("{id}", quote(session.session_id, safe=""))


def list_resources(sessions: Iterable[Hit]) -> list[Resource]:
    """Return one resource for each session, in the given order. Sessions that share an ID are left out."""
    resources = [*map(_resource, sessions)]
    uses = Counter(each.uri for each in resources)
    return [each for each in resources if uses[each.uri] == 1]


def read_resource(conversation: ConversationContext, address: str) -> str:
    """Return the observation or session at a URI as Markdown, in the format of `get_observations`.

    Raises:
        InvalidInput: The address names no observation or session.
    """
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InvalidInput(
            f"Unknown resource: {brief(address, _SHOWN)}", hint=f"Addresses have the form {OBSERVATION} or {SESSION}."
        )
    kind, name = parts[1].lower(), unquote(parts[2])
    if bool(canonical(name)) is not (kind == "observation"):
        raise InvalidInput(f"Not the ID of {_ARTICLES[kind]}: {brief(name, _SHOWN)}", hint=_HINTS[kind])
    try:
        details = conversation.index.details([name])
    except UnknownIds as error:
        raise InvalidInput(f"Unknown {kind}: {brief(name, _SHOWN)}", hint=error.hint or _HINTS[kind]) from None
    return conversation.renderer.observations(details)


_ARTICLES: Final = {"observation": "an observation", "session": "a session"}
_HINTS: Final = {"observation": "Take IDs from search results.", "session": "resources/list has the latest sessions."}


def _resource(session: Hit) -> Resource:
    return Resource(
        uri=session_address(session),
        name=session.short_session_id or session.session_id,
        title=brief(f"{session.project}: {session.session_title or session.title}", _TITLE),
        mime_type=MARKDOWN,
        annotations=None if session.at is None else Annotations(last_modified=show_instant(session.at)),
    )
