-- Memories stored before are redacted once more.
ALTER TABLE memory ADD COLUMN rules TEXT NOT NULL DEFAULT '';
CREATE INDEX memory_rules ON memory (rules);
