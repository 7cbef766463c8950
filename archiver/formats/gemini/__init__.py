"""Gemini CLI: conversations in `~/.gemini/tmp/*/chats`, JSON documents and, since version 0.40, JSON lines.

Read: prompts, replies, thoughts, tool calls with results, notices, titles, token usage, corrections of messages,
rewinds, sub-agents.

Not read: checkpoints, `logs.json`, tool output in separate files, documents with `history` instead of `messages`.

Checked against documents of versions up to 0.39 (measured); JSON lines of 0.40 from the source code. Test data:
`examples/gemini.jsonl`; samples `entireio+cli/gemini-cli/*.json` and `agents/gemini` of agent-sessions.
"""
