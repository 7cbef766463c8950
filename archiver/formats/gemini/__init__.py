"""Support for Gemini CLI.

Gemini CLI stores conversations in `~/.gemini/tmp/*/chats`, as JSON documents or, since version 0.40, as JSON lines.

- Supported: prompts, replies, thoughts, tool calls with results, notices, titles, token usage, corrections of messages,
  rewinds, sub-agents, project folders.
- Not supported: checkpoints, `logs.json`, tool output in separate files, documents with `history` instead of
  `messages`.
- Tested with: documents of versions up to 0.39, and JSON lines of version 0.61.
- Test data: `examples/gemini.jsonl`, `entireio+cli/gemini-cli/*.json`, and `agents/gemini` of agent-sessions.
"""
