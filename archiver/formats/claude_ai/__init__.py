"""Support for exports of Claude.ai.

An export is a zip file with `conversations.json`.

- Supported: prompts with the names and the text of attachments, replies, thinking, tool calls with results, titles,
  branches of edited prompts and regenerated replies.
- Not supported: files (only their names are recorded), projects and memories of the account.
- Tested with: sample exports of unknown date.
- Test data: `examples/claude-ai.jsonl`, and `claude-ai/*.json` and `claude-ai-export.json` of the project polylogue.
"""
