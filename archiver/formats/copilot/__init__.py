"""GitHub Copilot CLI: events as JSON lines in `~/.copilot/session-state`.

Read: prompts with the names of attachments, replies, reasoning, tool calls with results, skills, notifications,
compactions, titles, changed files and token usage at the end of a session.

Not read: permissions, hooks, progress of tools, system messages.

Checked against version 1.0.12 and later (measured). Test data: `examples/copilot.jsonl`; samples
`EntityProcess+agentv/copilot/*.jsonl` and `agents/copilot` of agent-sessions.
"""
