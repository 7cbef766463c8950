"""pi: sessions as JSON lines in `~/.pi/agent/sessions`. Every entry contains the ID of its parent.

Read: prompts, skills, replies, thinking, tool calls with results, shell commands of the user, compactions, summaries of
branches, titles, token usage, rewinds, forks.

Not read: labels, changes of the thinking level, custom entries of extensions.

Checked against sessions of November 2025 to May 2026. Test data: `examples/pi.jsonl`; samples `badlogic+pi-
mono/.../large-session.jsonl` and `agents/pi/small.jsonl` of agent-sessions.
"""
