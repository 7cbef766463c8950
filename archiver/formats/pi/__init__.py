"""Support for pi.

pi stores sessions as JSON lines in `~/.pi/agent/sessions`. Every entry contains the ID of its parent.

- Supported: prompts, skills, replies, thinking, tool calls with results, shell commands of the user, compactions,
  summaries of branches, titles, token usage, rewinds, forks.
- Not supported: labels, changes of the thinking level, custom entries of extensions.
- Tested with: sessions of November 2025 to May 2026.
- Test data: `examples/pi.jsonl`, `badlogic+pi-mono/.../large-session.jsonl`, and `agents/pi/small.jsonl` of
  agent-sessions.
"""
