"""Support for exports of ChatGPT.

An export is a zip file with one or several `conversations.json` files.

- Supported: prompts with the names of attachments, replies, thoughts, tool calls with results, titles, models,
  branches.
- Not supported: pictures and sound (only type and size are recorded), hidden messages, custom instructions.
- Tested with: sample exports of unknown date.
- Test data: `examples/chatgpt.jsonl`, and `chatgpt/*.json` and `chatgpt-export.json` of the project polylogue.
"""
