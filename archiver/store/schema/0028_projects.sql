-- The namespace of each project, and the folders whose memory files the user allowed. Memories from files are external
-- until the user allows their folder.
CREATE TABLE project (identity TEXT PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, plain TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE allowed_folder (path TEXT PRIMARY KEY) WITHOUT ROWID;
UPDATE memory SET origin = 'external' WHERE origin = 'document' AND path != '';
