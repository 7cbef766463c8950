"""Kimi CLI: a journal of events per session in `~/.kimi/sessions`; in older versions, the model's context.

Read: prompts, replies, thinking, tool calls with results, compactions, token usage, sub-agents.

Not read: the context of a session that has a journal, events of sub-agents in their parent's journal, approvals, hooks.

Checked against descriptions only; no samples exist. Test data: `examples/kimi-cli.jsonl`.
"""
