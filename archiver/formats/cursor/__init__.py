"""Cursor: the editor's databases, a database per chat of the command line, and transcripts of agents.

Read: prompts, replies, thinking, tool calls with results, titles, models, token usage. Transcripts of agents have no
ids and no times; the time of the file stands in for them.

Lost: checkpoints, context of messages, binary parts of chats.

Checked against transcripts of agents (fixtures); the databases from descriptions. Test data: `examples/cursor.jsonl`;
samples `agents/cursor` of agent-sessions.
"""
