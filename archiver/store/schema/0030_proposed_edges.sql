-- Superseded memories are indexed, too, so their entries are rebuilt. An edge that superseded no memory, such as one to
-- a golden rule, is a proposal.
ALTER TABLE memory_edge ADD COLUMN proposed INTEGER NOT NULL DEFAULT 0;
UPDATE memory_edge SET proposed = 1
    WHERE relation = 'supersedes' AND target IN (SELECT item FROM memory WHERE state != 'superseded');
INSERT INTO change (entity, id) SELECT 'item', item FROM memory WHERE state = 'superseded';
