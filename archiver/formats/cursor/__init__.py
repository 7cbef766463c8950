"""Support for Cursor: the editor, the command line and agent transcripts.

The editor stores conversations in its databases. The command line has one database per chat.

- Supported: prompts, replies, thinking, tool calls with results, titles, models, token usage, project folders. A
  conversation in a database and in an agent transcript is archived once.
- Not recorded by Cursor: IDs and times of replies in agent transcripts, and times of prompts in older versions. Without
  any time, the modification time of the file is the time of the session.
- Not supported: checkpoints, context of messages, binary parts of chats.
- Tested with: fixtures of agent transcripts. Support for the databases, for project folders and for
  times in agent transcripts is based on descriptions and unconfirmed on real files.
- Test data: `examples/cursor.jsonl`, and `agents/cursor` of agent-sessions.
"""
