"""Support for GitHub Copilot CLI.

Copilot stores events as JSON lines in `~/.copilot/session-state`.

- Supported: prompts with the names of attachments, replies, reasoning, tool calls with results, skills, notifications,
  compactions, titles, words and tool calls of sub-agents, and, at the end of a session, changed files and token usage.
- Not supported: permissions, hooks, progress of tools, system messages.
- Tested with: versions 1.0.12 to 1.0.102.
- Test data: `examples/copilot.jsonl`, `EntityProcess+agentv/copilot/*.jsonl`, and `agents/copilot` of agent-sessions.
"""
