-- Approved preferences of folders that no longer exist were stored under a number that no project has.
UPDATE OR IGNORE memory SET namespace = 'project:' || project
    WHERE source = 'conversation' AND namespace GLOB 'project:' || project || '-[1-9]*'
    AND ltrim(substr(namespace, length('project:' || project || '-') + 1), '0123456789') = ''
    AND namespace NOT IN (SELECT namespace FROM project);
-- Sessions in worktrees, and names in another Unicode form, get their project anew.
UPDATE source SET rules = '' WHERE session IN (
    SELECT id FROM session WHERE cwd GLOB '*[^ -~]*' OR cwd LIKE '%worktree%' OR cwd LIKE '%conductor%workspaces%'
);
