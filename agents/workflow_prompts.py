"""MCP prompts, which a user starts in the client: recall a topic, and review a session."""

from collections.abc import Callable, Mapping
from typing import Final

from mcp_types import Prompt, PromptArgument
from msgspec import Struct
from msgspec.structs import replace

from ..core.errors import InvalidInput, UnknownIds, UnknownProject
from ..core.query import Query
from ..core.text import is_one_word
from ..templates.quote import brief, inert
from .archive_resources import latest_sessions
from .conversation_tools import ConversationContext

_HITS: Final = 8
"""Number of search results in the prompt that recalls a topic."""
_SHOWN: Final = 60
"""Maximum tokens of an unknown name in an error."""
_PROJECTS: Final = 5
"""Maximum number of projects in an error."""
_SESSION_ID: Final = "Use a session ID, or at least its first 4 characters, such as 0b6f in search results."


class WorkflowPrompt(Struct, frozen=True):
    """Prompt of the server. `fill` takes the values of the listed arguments, in their order, and returns the text."""

    listed: Prompt
    fill: Callable[..., str]

    def text(self, conversation: ConversationContext, given: Mapping[str, str]) -> str:
        """Return the text of the prompt.

        Raises:
            InvalidInput: An argument is missing, unknown or invalid.
        """
        arguments = self.listed.arguments or []
        known = [each.name for each in arguments]
        missing = [each.name for each in arguments if each.required and not given.get(each.name, "").strip()]
        if unknown := [name for name in given if name not in known]:
            raise InvalidInput(f"Unknown argument: {brief(unknown[0], _SHOWN)}", hint=f"Use: {', '.join(known)}.")
        if missing:
            raise InvalidInput(f"Missing argument: {missing[0]}", hint=f"The prompt needs {missing[0]}.")
        return self.fill(conversation, *(given.get(name, "").strip() for name in known))


def _recall(conversation: ConversationContext, topic: str, project: str) -> str:
    query = Query.parse(topic, limit=_HITS, projects=[project] if project else ())
    asked = replace(query, here=conversation.here) if query.prefers_project else query
    try:
        found = conversation.index.find(asked, snippets=False)
    except UnknownProject as error:
        # An error is not marked as quoted text, so it contains only names that cannot be sentences.
        latest = [each.project for each in latest_sessions(conversation)]
        names = [name for name in dict.fromkeys([*error.near, *latest]) if is_one_word(name)][:_PROJECTS]
        hint = f"Projects: {', '.join(names)}." if names else "Leave out the project."
        raise InvalidInput(f"Unknown project: {brief(project, _SHOWN)}", hint=hint) from None
    results = conversation.renderer.search(found)
    return conversation.renderer.fill("recall_prompt", topic=topic, project=project, results=results)


def _review(conversation: ConversationContext, session: str) -> str:
    try:
        details = conversation.index.details([session])
    except UnknownIds:
        raise InvalidInput(f"Unknown session: {brief(session, _SHOWN)}", hint=_SESSION_ID) from None
    page = conversation.renderer.observations(details)
    return conversation.renderer.fill("review_prompt", path=details[0].path, page=page)


PROMPTS: Final = {
    each.listed.name: each
    for each in (
        WorkflowPrompt(
            Prompt(
                name="recall",
                title="Recall a topic",
                description="What past sessions say about a topic: decisions, fixes and open questions, with sources.",
                arguments=[
                    PromptArgument(name="topic", description="Question or keywords", required=True),
                    PromptArgument(name="project", description="Only this project", required=False),
                ],
            ),
            _recall,
        ),
        WorkflowPrompt(
            Prompt(
                name="review_session",
                title="Review a session",
                description="What was asked, decided, repaired and left open in a session, and what to do differently.",
                arguments=[
                    PromptArgument(name="session", description="Session ID, or its first characters", required=True)
                ],
            ),
            _review,
        ),
    )
}
"""Prompts by name, in the order in which clients list them."""


def completions(conversation: ConversationContext, argument: str, typed: str) -> list[str]:
    """Return the projects, or the IDs of the latest sessions, that begin with the typed text, the latest first.

    Other arguments have no completions.
    """
    match argument:
        case "project":
            known = conversation.project_names()
        case "session":
            known = [each.session_id for each in latest_sessions(conversation)]
        case _:
            known = []
    names = map(inert, dict.fromkeys(known))
    return [name for name in names if name and name.casefold().startswith(typed.casefold())]
