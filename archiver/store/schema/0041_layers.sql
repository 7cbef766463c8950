-- Last visit of each project, by its identity.
CREATE TABLE visit (project TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
-- The newest memories of a namespace are listed often: those of a session and those of a project.
CREATE INDEX memory_newest ON memory (namespace, state, created);
