"""Confirmation of a deletion by the user, through elicitation (a question of the server that the client shows).

Since protocol version 2026-07-28, a server cannot send requests. It returns the question as the result of the call, and
the client repeats the call with the answer. The key of the question is its digest, so an answer is valid only for the
same question. If the items to delete have changed in the meantime, the user is asked again.
"""

from hashlib import sha256
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import is_version_at_least

from ..core.errors import ChangedMeanwhile
from .delete_question import DeletionDeclined

_REPEATS_CALLS_SINCE: Final = "2026-07-28"
"""First protocol version in which the client repeats a call with the answers."""
_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""Schema of the form without fields: the user only accepts or declines."""


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can show a question as a form.

    A client that declares elicitation without a mode supports forms.
    """
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams, question: str
) -> InputRequiredResult | None:
    """Ask the user to confirm a deletion.

    Return the result that makes the client show the question, or None if the user has accepted.

    Raises:
        DeletionDeclined: The user declined, or closed the question.
    """
    form = ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
    if is_version_at_least(context.protocol_version, _REPEATS_CALLS_SINCE):
        key = f"confirm-{sha256((params.name + question).encode()).hexdigest()[:16]}"
        answer = (params.input_responses or {}).get(key)
        if not isinstance(answer, ElicitResult):
            return InputRequiredResult(input_requests={key: ElicitRequest(params=form)})
    else:
        answer = await context.session.elicit_form(question, _SCHEMA, context.request_id)
    if answer.action != "accept":
        raise DeletionDeclined
    return None


def check_unchanged(before: str, after: str) -> None:
    """Raise `ChangedMeanwhile` if the question that the user answered differs from the current question."""
    if before != after:
        raise ChangedMeanwhile
