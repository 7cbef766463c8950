"""Support for Kimi CLI.

Kimi CLI stores a journal of events per session in `~/.kimi/sessions`. Older versions store the model's context instead.

- Supported: prompts, replies, thinking, tool calls with results, compactions, token usage, sub-agents,
  working folders.
- Not supported: the context of a session that has a journal, events of sub-agents in their parent's journal, approvals,
  hooks.
- Tested with: descriptions only, because no samples exist.
- Test data: `examples/kimi-cli.jsonl`.
"""
