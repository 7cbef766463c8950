-- The redaction rules that were last applied to stored names of files and sessions.
CREATE TABLE checked_names (rules TEXT NOT NULL);
