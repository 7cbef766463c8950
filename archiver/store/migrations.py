"""The schema, one step after the other. A released step is never edited; a new one is appended.

`PRAGMA user_version` counts the steps that a file has seen.
"""

from typing import Final

from .change_triggers import CHANGE_TRIGGERS
from .first_schema import ARCHIVE_AND_OBSERVATIONS, JOBS_AND_LEDGER, MEMORIES

_CONTAINERS: Final = """
CREATE TABLE container (
    path BLOB PRIMARY KEY,
    state INTEGER NOT NULL
) WITHOUT ROWID;
"""

_STAGES: Final = """
CREATE TABLE stage (
    name TEXT PRIMARY KEY,
    succeeded INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    failed INTEGER
) WITHOUT ROWID;
"""

_RULES: Final = """
ALTER TABLE source ADD COLUMN rules TEXT NOT NULL DEFAULT '';
"""

_DOCUMENTS: Final = """
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    language TEXT NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (path, namespace)
);
CREATE TABLE chunk (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES document,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    page INTEGER NOT NULL,
    header_path TEXT NOT NULL,
    unit TEXT NOT NULL,
    name TEXT NOT NULL,
    signature TEXT NOT NULL
);
CREATE INDEX chunk_document ON chunk (document, ordinal);
CREATE TABLE waiting_file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    root BLOB NOT NULL,
    problem TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    UNIQUE (path, namespace)
);
"""

_PUBLICATIONS: Final = """
CREATE TABLE publication (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE
);
"""

_FORGETTING: Final = """
CREATE TABLE forgetting (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('kept', 'erasing', 'erased'))
);
CREATE TABLE tombstone (
    mark INTEGER NOT NULL,
    forgetting INTEGER NOT NULL REFERENCES forgetting,
    PRIMARY KEY (mark, forgetting)
) WITHOUT ROWID;
CREATE INDEX tombstone_forgetting ON tombstone (forgetting);
CREATE TABLE erasure (
    archived TEXT PRIMARY KEY,
    forgetting INTEGER NOT NULL REFERENCES forgetting,
    whole INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE emptied (
    mark INTEGER PRIMARY KEY,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL
);
"""

# The twelfth value of a turn are the files it wrote.
_EDITED: Final = """
CREATE TABLE edited (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
INSERT OR IGNORE INTO edited (exchange, path)
    SELECT exchange.item, written.value
    FROM exchange, json_each(CAST(exchange.turns AS TEXT)) AS turn, json_each(turn.value, '$[11]') AS written;
"""

# An observation that goes leaves what confirmed it to be observed anew, and its session's summary to be told anew.
_CONFIRMATIONS: Final = """
ALTER TABLE exchange ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE observation ADD COLUMN scope TEXT NOT NULL DEFAULT 'exchange';
ALTER TABLE observation ADD COLUMN mark TEXT NOT NULL DEFAULT '';
CREATE INDEX observation_mark ON observation (mark) WHERE mark != '';
CREATE TABLE confirmation (
    observation INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    evidence TEXT NOT NULL,
    PRIMARY KEY (observation, exchange)
) WITHOUT ROWID;
CREATE INDEX confirmation_exchange ON confirmation (exchange);
CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE
);
CREATE INDEX summary_item ON summary (item);
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed NOT LIKE 'llm:%';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange;
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange);
END;
"""

_MASKED: Final = """
ALTER TABLE source ADD COLUMN masked TEXT NOT NULL DEFAULT '';
"""

_MNEMONICS: Final = """
CREATE TABLE mnemonic (
    path TEXT PRIMARY KEY,
    memory INTEGER REFERENCES memory ON DELETE SET NULL,
    digest TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    declared TEXT NOT NULL,
    created TEXT NOT NULL,
    gone INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX mnemonic_memory ON mnemonic (memory);
"""

# Kept by place, so that an exchange that is had back after it was forgotten finds what repeats it. What was archived
# before is read again where lines are repeated.
_REPETITIONS: Final = """
CREATE TABLE repetition (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    PRIMARY KEY (source, ordinal, elsewhere)
) WITHOUT ROWID;
CREATE INDEX repetition_elsewhere ON repetition (elsewhere);
UPDATE source SET rules = '' WHERE coverage ->> '$.repeated' > 0;
"""

# What an exchange confirms is among what it is found by.
_CONFIRMED_AGAIN: Final = """
CREATE TRIGGER confirmation_made AFTER INSERT ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER confirmation_gone AFTER DELETE ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
END;
INSERT INTO change (entity, id) SELECT DISTINCT 'item', exchange FROM confirmation;
"""

# What a language model learned again is lost with its first wording as well, unless the model is asked once more.
_LOST_WITH_ITS_TWIN: Final = """
DROP TRIGGER observation_gone;
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    DELETE FROM job WHERE state = 'done' AND exchange IN (
        SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
        WHERE c.observation = OLD.item AND e.observed <> 'llm:renounced');
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange;
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange);
END;
"""

# Which write of the register the tables know, and how much each forgetting was about.
_REGISTER: Final = """
CREATE TABLE register (seq INTEGER NOT NULL);
ALTER TABLE forgetting ADD COLUMN told TEXT NOT NULL DEFAULT '{}';
"""

# What was stored before is looked at once.
_MEMORY_RULES: Final = """
ALTER TABLE memory ADD COLUMN rules TEXT NOT NULL DEFAULT '';
CREATE INDEX memory_rules ON memory (rules);
"""

# When each copy was last compared with what was archived, and what was wrong with it then.
_INSPECTIONS: Final = """
CREATE TABLE inspection (
    source INTEGER PRIMARY KEY REFERENCES source ON DELETE CASCADE,
    at INTEGER NOT NULL,
    fault TEXT NOT NULL
);
"""

# Few memories have a term, so those that are not valid now are counted apart from all the others.
_MEMORY_TERMS: Final = """
CREATE INDEX memory_term ON memory (state, valid_until, valid_from)
    WHERE valid_until IS NOT NULL OR valid_from IS NOT NULL;
"""

# What each token of a text means. With a rowid, unlike the vectors: without one, rows of a kilobyte take a page each.
_TOKENS: Final = """
CREATE TABLE token (
    item INTEGER NOT NULL,
    part INTEGER NOT NULL,
    signs BLOB NOT NULL,
    PRIMARY KEY (item, part),
    FOREIGN KEY (item, part) REFERENCES vector (item, part) ON DELETE CASCADE
);
"""

# The packaged model tells tokens from its second version on and gives the same vectors as before: these are searched
# until everything was embedded once more.
_TOKENS_TO_COME: Final = """
UPDATE vector SET model = 'all-MiniLM-L6-v2-int8/2' WHERE model = 'all-MiniLM-L6-v2-int8/1';
UPDATE item SET embedded = NULL WHERE embedded = 'all-MiniLM-L6-v2-int8/1';
"""

# Whose undoing lets an exchange be learned from again. Which forgetting renounced it was not told before: each that
# took nothing but what was learned may have. What no forgetting tells of was undone, and is learned from again.
_RENOUNCED: Final = """
CREATE TABLE renounced (
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    PRIMARY KEY (forgetting, exchange)
) WITHOUT ROWID;
CREATE INDEX renounced_exchange ON renounced (exchange);
INSERT INTO renounced (forgetting, exchange)
    SELECT f.id, e.item FROM forgetting f JOIN exchange e ON e.observed = 'llm:renounced'
    WHERE coalesce(json_extract(f.told, '$.exchanges'), 0) = 0
        AND coalesce(json_extract(f.told, '$.observations'), 1) > 0;
UPDATE exchange SET observed = NULL
    WHERE observed = 'llm:renounced' AND item NOT IN (SELECT exchange FROM renounced);
"""

# Kept by place, so that an exchange that is had back after it was forgotten is known as renounced; and which origins
# that was about.
_RENOUNCED_BY_PLACE: Final = """
DROP INDEX renounced_exchange;
ALTER TABLE renounced RENAME TO renounced_before;
CREATE TABLE renounced (
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    size INTEGER NOT NULL,
    origins TEXT NOT NULL,
    PRIMARY KEY (source, start_line, forgetting)
) WITHOUT ROWID;
CREATE INDEX renounced_forgetting ON renounced (forgetting);
INSERT INTO renounced (forgetting, source, start_line, size, origins)
    SELECT r.forgetting, e.source, e.start_line, length(e.turns), '[]'
    FROM renounced_before r JOIN exchange e ON e.item = r.exchange WHERE e.observed = 'llm:renounced';
DROP TABLE renounced_before;
"""

# Kept by marks, so that it is known wherever it stands. What is kept by place is carried over when it is met.
_RENOUNCED_BY_MARKS: Final = """
CREATE TABLE renunciation (
    mark INTEGER NOT NULL,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    origins TEXT NOT NULL,
    PRIMARY KEY (mark, forgetting)
) WITHOUT ROWID;
CREATE INDEX renunciation_forgetting ON renunciation (forgetting);
"""

# Sessions that lost their summary, or hold what it does not tell, without anything of them being observed again.
_SUMMARIES_DUE: Final = "CREATE TABLE summary_due (session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE);"

# Which project has which namespace, and the folders whose memory files the user allowed. Memories
# from files are external until the user allows their folder.
_PROJECTS: Final = """
CREATE TABLE project (identity TEXT PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, plain TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE allowed_folder (path TEXT PRIMARY KEY) WITHOUT ROWID;
UPDATE memory SET origin = 'external' WHERE origin = 'document' AND path != '';
"""

# Rows of forgotten exchanges, packed, while the deletion can be undone; summaries of sessions are of line 0.
_FORGOTTEN_ITEMS: Final = """
CREATE TABLE forgotten_item (
    exchange INTEGER PRIMARY KEY,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    observed TEXT,
    rows BLOB NOT NULL
);
"""

# Superseded memories are indexed as well, so their entries are rebuilt. An edge that superseded no memory, such as
# one to a golden rule, is a proposal.
_PROPOSED: Final = """
ALTER TABLE memory_edge ADD COLUMN proposed INTEGER NOT NULL DEFAULT 0;
UPDATE memory_edge SET proposed = 1
    WHERE relation = 'supersedes' AND target IN (SELECT item FROM memory WHERE state != 'superseded');
INSERT INTO change (entity, id) SELECT 'item', item FROM memory WHERE state = 'superseded';
"""

# Copies made before get their checksums from `palaver fsck` or the background archiver. `key_check` identifies the key
# of redaction.key without revealing it.
_CHECKSUMS: Final = """
ALTER TABLE source ADD COLUMN sums BLOB NOT NULL DEFAULT x'';
ALTER TABLE source ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;
CREATE TABLE key_check (sign BLOB NOT NULL);
"""

# Agents made golden rules without the user's approval, and memories of sessions had no end.
_REVIEWED: Final = """
UPDATE memory SET type = promoted_from, promoted_from = '', strikes = 0
    WHERE type = 'golden_rule' AND promoted_from != '' AND origin != 'human';
UPDATE memory SET valid_until = created + 172800000
    WHERE valid_until IS NULL AND pinned = 0 AND (family = 'session' OR namespace LIKE 'session:%');
"""

MIGRATIONS: Final = (
    ARCHIVE_AND_OBSERVATIONS,
    JOBS_AND_LEDGER,
    MEMORIES,
    _CONTAINERS,
    _STAGES,
    _RULES,
    _DOCUMENTS,
    _PUBLICATIONS,
    _FORGETTING,
    _EDITED,
    _CONFIRMATIONS,
    _MASKED,
    _MNEMONICS,
    _REPETITIONS,
    _CONFIRMED_AGAIN,
    _LOST_WITH_ITS_TWIN,
    _REGISTER,
    _MEMORY_RULES,
    _INSPECTIONS,
    _MEMORY_TERMS,
    _TOKENS,
    _TOKENS_TO_COME,
    _RENOUNCED,
    _RENOUNCED_BY_PLACE,
    _RENOUNCED_BY_MARKS,
    _SUMMARIES_DUE,
    CHANGE_TRIGGERS,
    _PROJECTS,
    _FORGOTTEN_ITEMS,
    _PROPOSED,
    _CHECKSUMS,
    _REVIEWED,
)
