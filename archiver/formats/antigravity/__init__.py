"""Antigravity, the successor of Gemini CLI: steps as JSON lines in `~/.gemini/antigravity*/brain`.

Read: prompts, replies, thinking, tool calls with results, checkpoints, messages of the program.

Not read: text that the program truncated from tool results. Conversations of the editor are stored elsewhere.

Checked against fixtures that do not state a version. Test data: `examples/antigravity.jsonl`; samples
`agents/antigravity/cli_*.jsonl` from the project agent-sessions.
"""
