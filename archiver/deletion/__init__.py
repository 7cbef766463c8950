"""Deletion of archived content: selection, tombstones, undo, erasure of lines from copies.

1. `selector` resolves a request to exchanges, sessions, copies and lines. An exchange is always deleted whole.
2. `deletion_plan` computes the tombstones: keyed hashes of lines and record ids. A line that a fork or resumed session
   repeats belongs to the session that contained it first (`ownership`): deleting that session deletes the line
   everywhere, deleting the fork keeps it.
3. `deletions` removes the rows and stores the tombstones in one transaction, with the rows that undo needs.
4. `suppression` recognises deleted lines when files are read again, copied or renamed, and in a new database.
5. `copy_eraser` blanks erased lines in the copies: at once for an erasure, after 30 days for a deletion.

Limits:

- The agents' own files are never changed.
- A line without an id or a time is recognised only at its place in the same file, because others may write the same.
- Undo restores the ids of exchanges and observations. Summaries of sessions, and exchanges that other files repeat
  without record ids, get new ones.
- Observations cannot be deleted without their exchange.
- One exchange cannot be erased from a damaged copy; its whole session can.
"""
