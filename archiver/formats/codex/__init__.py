"""Codex: rollouts as JSON lines in `~/.codex`, compressed with Zstandard after a week.

Read: prompts, replies, reasoning summaries, tool calls with results, patches, web searches, reviews, messages between
agents, compactions, titles, token usage, rewinds, forks. Both forms of the history: events and paginated items.

Not read: encrypted reasoning, the copy of the history inside a compaction, and the program's state such as
`world_state`.

Checked against versions 0.121 to 0.145 (measured), descriptions of older headers, and source code of paginated history.
Test data: `examples/codex.jsonl`; samples `*/codex/*.jsonl` of entire-graph and agentv.
"""
