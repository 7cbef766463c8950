-- Transcripts are read again, because more of their content is read: comments above a request (codex), projects (gemini,
-- kimi-cli), records without a type (antigravity), token usage (kimi-code), times and projects (cursor), sub-agents
-- (copilot), and records on several lines.
UPDATE source SET rules = '' WHERE
    agent IN ('codex', 'gemini', 'kimi-cli', 'antigravity', 'kimi-code', 'cursor', 'copilot')
    OR coverage ->> '$."not-json"' > 0 OR coverage ->> '$."cut-short"' > 0;
-- Databases are searched again for sessions in tables of newer versions, and for the projects of sessions.
DELETE FROM container;
