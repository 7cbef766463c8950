"""Kimi Code: journals as JSON lines in `~/.kimi-code/sessions`, one per agent of a session.

Read: prompts, replies, thinking, tool calls with results, compactions, undone turns, models, token usage, sub-agents.

Not read: requests to the model, tool lists, changes of settings, tombstones of deleted sessions.

Checked against protocol versions 1.1 to 1.5 (from descriptions). Test data: `examples/kimi-code.jsonl`; samples
`agents/kimi/*.jsonl` of agent-sessions.
"""
