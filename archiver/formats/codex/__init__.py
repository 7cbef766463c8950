"""Support for Codex.

Codex stores sessions, called rollouts, as JSON lines in `~/.codex`. It compresses rollouts with Zstandard after a week.
Rollouts with events and rollouts with a paginated history (`item_completed` events) are supported.

- Supported: prompts, replies, reasoning summaries, tool calls with results, patches, web searches, reviews, messages
  between agents, compactions, titles, token usage, rewinds, forks.
- Not supported: encrypted reasoning, the copy of the history inside a compaction, and the program's state such as
  `world_state`.
- Tested with: versions 0.121 to 0.145, and 0.169 with the paginated history. Support for older headers is based on
  descriptions.
- Test data: `examples/codex.jsonl`, and `*/codex/*.jsonl` of entire-graph and agentv.
"""
