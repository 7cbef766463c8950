-- Copies are recognised by their content, so sessions that may repeat another session under other IDs are read again.
-- Codex and Claude.ai transcripts are read again for their origin and for their branches.
CREATE INDEX session_parent ON session (parent_id);
CREATE INDEX source_session ON source (session);
UPDATE source SET rules = '' WHERE session IN (
    SELECT id FROM session WHERE parent_id <> '' OR agent IN ('codex', 'claude-ai') OR (agent, started) IN (
        SELECT agent, started FROM session WHERE started NOT NULL GROUP BY agent, started HAVING count(*) > 1
    )
) OR session IN (SELECT session FROM source GROUP BY session HAVING count(*) > 1) OR id IN (
    SELECT r.elsewhere FROM repetition r JOIN source t ON t.id = r.source JOIN session s ON s.id = t.session
    WHERE s.kind = 'subagent'
);
