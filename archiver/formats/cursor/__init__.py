"""Support for Cursor: the editor, the command line and agent transcripts.

The editor stores conversations in its databases. The command line has one database per chat.

- Supported: prompts, replies, thinking, tool calls with results, titles, models, token usage.
- Not recorded by Cursor: IDs and times in agent transcripts. The modification time of the file replaces the times.
- Not supported: checkpoints, context of messages, binary parts of chats.
- Tested with: fixtures of agent transcripts. Support for the databases is based on descriptions.
- Test data: `examples/cursor.jsonl`, and `agents/cursor` of agent-sessions.
"""
