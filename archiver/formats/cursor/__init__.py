"""Cursor: the editor's databases, one database per command-line chat, and agent transcripts.

Read: prompts, replies, thinking, tool calls with results, titles, models, token usage. Agent transcripts have no IDs
and no times; the modification time of the file is used instead.

Not read: checkpoints, context of messages, binary parts of chats.

Checked against agent transcripts (fixtures) and descriptions of the databases. Test data: `examples/cursor.jsonl`;
samples `agents/cursor` of agent-sessions.
"""
