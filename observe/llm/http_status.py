"""Conversion of the status of an HTTP response to an error."""

from collections.abc import Mapping
from typing import Final

from .model_errors import ExtractionError, ModelBusy, ModelRefused, RequestRefused

TIMEOUT: Final = 180.0
"""Maximum seconds for the answer of a model."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_ADDRESS_MAX: Final = 200
_PERMANENT: Final = {401, 402, 403, 404}
_TEMPORARY: Final = {408, 409, 425, 429}
_NOT_IMPLEMENTED: Final = 501
_HINTS: Final = {
    401: "Check {key}, then run the command again.",
    404: "Check llm_model and llm_url in config.toml, then run the command again.",
}


def error_of(
    status: int, message: str, headers: Mapping[str, str], *, unpaid: bool = False, key: str = ""
) -> ExtractionError:
    """Return the error for the status of a response.

    `headers` has names in lower case. `unpaid` is True if the provider reported missing credit. `key` is the
    environment variable with the API key.
    """
    if status in _REDIRECTS:
        target = headers.get("location", "").partition("?")[0][:_ADDRESS_MAX]
        hint = "If you trust this address, set llm_url to it in config.toml."
        return ModelRefused(f"llm_url redirects to {target or 'no address'}", status, hint=hint)
    if status in _PERMANENT or unpaid:
        hint = _HINTS.get(status, "Check the account that your API key belongs to, then run the command again.")
        message = f"the provider refused the call with status {status}: {message}"
        return ModelRefused(message, status, hint=hint.format(key=key))
    if status in _TEMPORARY or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {message}", after=_retry_after(headers))
    return RequestRefused(f"the provider rejected this request ({status}): {message}", status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait before the next request, if the server stated them."""
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None
