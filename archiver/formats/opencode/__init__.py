"""Support for OpenCode.

OpenCode stores sessions in databases in `~/.local/share/opencode`. Versions before 1.2 used separate files. Versions 2
use other tables of the same database. Tables of later versions are reported. Exports are supported too.

- Supported: prompts, text that the program added, replies, reasoning, tool calls with results, commands of the user,
  names of attached files, compactions, errors, titles, token usage, sub-agents, forks.
- Not supported: steps, snapshots, patches, contents of attached files.
- Tested with: exports of version 1.2, files of earlier versions, and the database of version 1.18. Support for
  version 2 follows the published schema and is unconfirmed on real files.
- Test data: `examples/opencode.jsonl`, and `agents/opencode` of agent-sessions.
"""
