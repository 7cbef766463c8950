-- Calls that started sub-agents, each with the ID that the agent gave to the sub-agent. The sub-agent may be unknown.
CREATE TABLE subagent_call (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    call TEXT NOT NULL,
    native_id TEXT NOT NULL,
    PRIMARY KEY (source, call, native_id)
) WITHOUT ROWID;
-- Transcripts are read again for these calls: those of parents, of their forks, and of sub-agents, which can start others.
UPDATE source SET rules = '' WHERE agent = 'claude-code' AND (coverage ->> '$.subagent' > 0 OR session IN (
    SELECT s.id FROM session s WHERE s.kind = 'subagent'
        OR s.native_id IN (SELECT parent_id FROM session WHERE kind = 'subagent')
        OR s.parent_id IN (SELECT parent_id FROM session WHERE kind = 'subagent' AND parent_id <> '')
));
