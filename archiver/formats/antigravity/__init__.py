"""Support for Antigravity, the successor of Gemini CLI.

Antigravity stores sessions as JSON lines in `~/.gemini/antigravity*/brain`.

- Supported: prompts, replies, thinking, tool calls with results, checkpoints, messages from the program.
- Not supported: conversations of the editor, which are stored elsewhere.
- Not recorded: the text that the program truncates in tool results.
- Tested with: fixtures that do not state a version.
- Test data: `examples/antigravity.jsonl`, and `agents/antigravity/cli_*.jsonl` from the project agent-sessions.
"""
