"""Errors of HTTP servers with a language model, by the status of the response."""

from collections.abc import Mapping
from typing import Final

from .model_errors import ExtractionError, ModelBusy, ModelRefused, RequestRefused

TIMEOUT: Final = 180.0
"""Seconds within which a model answers, well within a job's lease."""
_PERMANENT: Final = {401, 402, 403, 404}
_TEMPORARY: Final = {408, 409, 425, 429}
_NOT_IMPLEMENTED: Final = 501
_HINTS: Final = {
    401: "Check {key}, then run `palaver observe` again.",
    404: "Check llm_model and llm_url in config.toml, then run `palaver observe` again.",
}


def error_of(
    status: int, message: str, *, after: float | None = None, unpaid: bool = False, key: str = "ANTHROPIC_API_KEY"
) -> ExtractionError:
    """Return the error for a status. `after` is the requested delay in seconds, `key` the variable with the API key."""
    if status in _PERMANENT or unpaid:
        hint = _HINTS.get(status, "Check the account that your API key belongs to, then run `palaver observe` again.")
        message = f"the provider refused the call with status {status}: {message}"
        return ModelRefused(message, status, hint=hint.format(key=key))
    if status in _TEMPORARY or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {message}", after=after)
    return RequestRefused(f"the provider rejected this request ({status}): {message}", status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait before the next request, if the server stated them."""
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None
