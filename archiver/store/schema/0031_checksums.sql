-- Older copies get their checksums from `palaver fsck` or the background archiver. `key_check` identifies the key in
-- redaction.key without revealing it.
ALTER TABLE source ADD COLUMN sums BLOB NOT NULL DEFAULT x'';
ALTER TABLE source ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;
CREATE TABLE key_check (sign BLOB NOT NULL);
