"""Support for Antigravity, the successor of Gemini CLI.

Antigravity stores sessions as JSON lines in `~/.gemini/antigravity*/brain`.

- Supported: prompts, replies, thinking, tool calls with results, checkpoints, messages that Antigravity added.
- Not supported: conversations of the editor, which are stored elsewhere.
- Not available: the full text of tool results that Antigravity truncated.
- Tested with: fixtures of unknown versions. Steps without number and type are based on descriptions.
- Test data: `examples/antigravity.jsonl`, and `agents/antigravity/cli_*.jsonl` from the project agent-sessions.
"""
