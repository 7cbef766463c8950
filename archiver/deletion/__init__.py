"""Deletion of archived content: selection, tombstones, undo, and removal of lines from copies.

1. `suppression` resolves a request to exchanges, sessions, copies and lines. An exchange is always deleted whole.
2. `deletions` computes the tombstones: keyed hashes of lines and record IDs. If a fork or a resumed session repeats
   a line, the line belongs to the session that contained it first. If that session is deleted, the line
   is deleted everywhere. If the fork is deleted, the line is kept. Hashes of the content of deleted exchanges recognise
   copies with other record IDs or times (`reading/lineage.py`).
3. It removes the rows and stores the tombstones in one transaction. It also stores the rows that undo needs.
4. `suppression` recognises deleted lines in copied, renamed or re-read files, and in a new database.
5. `CopyEraser` overwrites erased lines in the copies: immediately for an erasure, after 30 days for a deletion.

Limits:

- The agents' own files are never changed.
- A line without an ID or a time is recognised only in the same file, because other files may contain an identical line.
- Undo restores the IDs of exchanges and observations. Session summaries get new IDs, and also exchanges without record
  IDs that other files repeat.
- Observations cannot be deleted without their exchange.
- Content that was deleted by an earlier version returns through a fork with other record IDs that is archived later.
- A single exchange cannot be erased from a damaged copy, but its whole session can.
"""
