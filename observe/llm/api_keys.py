"""Environment variables with the API keys of servers with a language model."""

from typing import Final

KEYS: Final = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Variables of servers that need a key. Such a key is sent to no other server."""
OWN_KEY: Final = "PALAVER_LLM_KEY"
"""Variable of the key for any other server."""
