"""OpenCode: databases in `~/.local/share/opencode`, the files of versions before 1.2, and exports.

Read: prompts, text that the program added, replies, reasoning, tool calls with results, names of attached files,
compactions, errors, titles, token usage, sub-agents.

Not read: steps, snapshots, patches, contents of attached files.

Checked against exports of version 1.2 (measured), files of earlier versions, and descriptions of the database. Test
data: `examples/opencode.jsonl`; samples `agents/opencode` of agent-sessions.
"""
