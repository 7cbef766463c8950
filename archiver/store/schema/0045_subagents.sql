-- The ID of a sub-agent is unique only in the session of its parent. SQLite cannot change a constraint, so the table is
-- created again.
CREATE TABLE session_with_scope (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    native_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    project TEXT NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL,
    title TEXT NOT NULL,
    title_rank INTEGER NOT NULL,
    version TEXT NOT NULL,
    models TEXT NOT NULL,
    links TEXT NOT NULL,
    started INTEGER,
    ended INTEGER,
    scope TEXT NOT NULL DEFAULT '',
    UNIQUE (agent, native_id, scope)
);
INSERT INTO session_with_scope SELECT id, agent, native_id, kind, parent_id, project, cwd, branch, title, title_rank,
    version, models, links, started, ended, iif(agent IN ('claude-code', 'cursor') AND kind = 'subagent', parent_id, '') FROM session;
DROP TABLE session;
ALTER TABLE session_with_scope RENAME TO session;
CREATE INDEX session_native_id ON session (native_id);
CREATE TRIGGER session_updated AFTER UPDATE OF agent, native_id, project, cwd, branch ON session
    WHEN (OLD.agent, OLD.native_id, OLD.project, OLD.cwd, OLD.branch) IS NOT
        (NEW.agent, NEW.native_id, NEW.project, NEW.cwd, NEW.branch) BEGIN
    INSERT INTO change (entity, id) SELECT 'item', key FROM item WHERE session = NEW.id;
END;
-- Transcripts are read again: for the messages of sub-agents in them, and because more text is known to be the
-- program's.
UPDATE source SET rules = '';
