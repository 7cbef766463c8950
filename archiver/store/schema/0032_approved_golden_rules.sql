-- Golden rules that agents made without the approval of the user return to their type, and memories of sessions get an
-- end.
UPDATE memory SET type = promoted_from, promoted_from = '', strikes = 0
    WHERE type = 'golden_rule' AND promoted_from != '' AND origin != 'human';
UPDATE memory SET valid_until = created + 172800000
    WHERE valid_until IS NULL AND pinned = 0 AND (family = 'session' OR namespace LIKE 'session:%');
