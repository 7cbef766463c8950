"""Names of the coding agents whose transcripts are read, and the other names that users type for them."""

from typing import Final

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "claude-code": ("claude", "cc"),
    "codex": ("codex-cli", "openai-codex"),
    "copilot": ("copilot-cli", "github-copilot-cli"),
    "pi": ("pi-agent",),
    "gemini": ("gemini-cli",),
    "antigravity": ("agy",),
    "kimi-code": ("kimi",),
    "kimi-cli": (),
    "opencode": ("open-code",),
    "cursor": ("cursor-agent", "cursor-cli"),
    "qwen-code": ("qwen",),
    "cline": ("claude-dev", "cline-cli"),
    "roo-code": ("roo", "roo-cline", "roocode"),
    "kilo-code": ("kilo", "kilocode"),
    "copilot-chat": ("vscode", "vscode-copilot", "github-copilot", "copilot-vscode"),
    "goose": ("block-goose",),
    "iflow": ("iflow-cli",),
    "openhands": ("open-hands", "openhands-cli"),
    "hermes": ("hermes-agent",),
    "warp": ("warp-terminal",),
    "windsurf": ("cascade", "devin-desktop"),
    "trae": ("trae-agent", "trae-cn"),
    "cowork": ("claude-desktop", "claude-cowork"),
    "grok": ("grok-build", "xai"),
    "openclaw": ("open-claw", "clawdbot"),
    "chatgpt": ("openai", "chat-gpt"),
    "claude-ai": ("claude.ai", "claude-web"),
    "aider": ("aider-chat",),
    "crush": ("charm-crush",),
    "continue-dev": ("continue", "cn"),
    "droid": ("factory", "factory-droid"),
    "zed": ("zed-agent",),
    "amp": ("ampcode",),
    "kiro": ("kiro-cli", "kiro-ide"),
    "gptme": (),
    "vibe": ("mistral-vibe", "mistral"),
    "junie": ("jetbrains-junie",),
    "gemini-apps": ("gemini-takeout", "google-takeout", "bard"),
}
"""Agents with their aliases, in the order in which detection tries their formats."""
AGENTS: Final = tuple(NAMES)
"""Names of all agents."""
_BY_ALIAS: Final = {alias: agent for agent, aliases in NAMES.items() for alias in aliases}


def agent_named(name: str) -> str:
    """Return the agent with this name or alias. Return any other name in lower case."""
    name = name.strip().lower()
    hyphenated = name.replace(" ", "-").replace("_", "-")
    return _BY_ALIAS.get(hyphenated, hyphenated if hyphenated in NAMES else name)
