-- Documentation comments of code units, and the paths that moved documents had before.
ALTER TABLE chunk ADD COLUMN doc TEXT NOT NULL DEFAULT '';
CREATE TABLE former_path (
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    path BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (document, path)
) WITHOUT ROWID;
-- Index of digests, to find the document of a moved file.
CREATE INDEX document_digest ON document (digest);
