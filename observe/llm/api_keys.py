"""Environment variables with the API keys of language model servers."""

from typing import Final

KEYS: Final = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Key variables of known servers. Each key is sent only to its own server."""
OWN_KEY: Final = "PALAVER_LLM_KEY"
"""Environment variable with the key for a server that has no variable of its own."""
