-- Undo rebuilds summaries, so the copies that an earlier version kept for it are deleted.
DELETE FROM forgotten_item WHERE start_line = 0;
