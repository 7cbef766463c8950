-- Statements that led to version 51 of the schema, the last before `schema.sql`. `migration.py` applies them.
-- This file is never changed.
-- Version 1
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL CHECK (entity IN ('item', 'vector')),
    id INTEGER NOT NULL
);
CREATE TABLE session (
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
    UNIQUE (agent, native_id)
);
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    session INTEGER REFERENCES session,
    path BLOB NOT NULL,
    archived TEXT NOT NULL UNIQUE,
    superseded INTEGER NOT NULL DEFAULT 0,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    head BLOB NOT NULL,
    tail BLOB NOT NULL,
    parsed INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    lines INTEGER NOT NULL DEFAULT 0,
    coverage TEXT NOT NULL DEFAULT '{}',
    resume TEXT NOT NULL DEFAULT '[1, 0, 0, {}]'
);
CREATE UNIQUE INDEX source_path ON source (path) WHERE NOT superseded;
CREATE TABLE record (
    id TEXT PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source,
    line INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE item (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session,
    at INTEGER,
    embedded TEXT
);
CREATE INDEX item_session ON item (session);
CREATE INDEX item_embedded ON item (embedded);
CREATE TABLE exchange (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source,
    ordinal INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL,
    ended INTEGER,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    turns BLOB NOT NULL,
    observed TEXT,
    UNIQUE (source, ordinal)
);
CREATE INDEX exchange_observed ON exchange (observed);
CREATE TABLE observation (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    subtitle TEXT NOT NULL,
    narrative TEXT NOT NULL,
    facts TEXT NOT NULL,
    concepts TEXT NOT NULL,
    files_read TEXT NOT NULL,
    files_modified TEXT NOT NULL,
    evidence TEXT NOT NULL,
    origin TEXT NOT NULL,
    extractor TEXT NOT NULL,
    price INTEGER NOT NULL
);
CREATE INDEX observation_exchange ON observation (exchange);
CREATE TABLE vector (
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    part INTEGER NOT NULL CHECK (part BETWEEN 0 AND 255),
    model TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (item, part)
) WITHOUT ROWID;
CREATE TABLE problem (
    path BLOB PRIMARY KEY,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
-- Version 2
CREATE TABLE batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE,
    name TEXT,
    at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'sent', 'ended'))
);
CREATE TABLE job (
    exchange INTEGER PRIMARY KEY REFERENCES exchange ON DELETE CASCADE,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL,
    batch INTEGER REFERENCES batch,
    outcome TEXT NOT NULL DEFAULT '',
    refused INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL DEFAULT ''
);
CREATE INDEX job_state ON job (state, due);
CREATE INDEX job_batch ON job (batch) WHERE batch IS NOT NULL;
CREATE TABLE call (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    digest TEXT NOT NULL,
    batch INTEGER REFERENCES batch,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
    cost INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    cache_written INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX call_at ON call (at);
CREATE INDEX call_batch ON call (batch) WHERE batch IS NOT NULL;
-- Version 3
ALTER TABLE item ALTER COLUMN session DROP NOT NULL;
CREATE TABLE memory (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    content TEXT NOT NULL,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    namespace TEXT NOT NULL,
    project TEXT NOT NULL,
    level TEXT NOT NULL,
    importance REAL NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT NOT NULL,
    session_id TEXT NOT NULL,
    path TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    valid_from INTEGER,
    valid_until INTEGER,
    family TEXT NOT NULL,
    hash TEXT NOT NULL,
    confidence REAL NOT NULL,
    successes INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    promoted_from TEXT NOT NULL,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    accessed INTEGER,
    accesses INTEGER NOT NULL DEFAULT 0,
    decayed INTEGER
);
CREATE UNIQUE INDEX memory_claim ON memory (namespace, family, hash) WHERE state = 'active' AND path = '';
CREATE UNIQUE INDEX memory_path ON memory (path) WHERE state = 'active' AND path != '';
CREATE INDEX memory_scope ON memory (state, namespace, type, valid_until, valid_from);
CREATE INDEX memory_created ON memory (state, created);
CREATE INDEX memory_updated ON memory (state, updated);
CREATE INDEX memory_accessed ON memory (state, accessed);
CREATE INDEX memory_importance ON memory (state, importance);
CREATE INDEX memory_confidence ON memory (state, confidence);
CREATE TABLE memory_tag (
    tag TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    PRIMARY KEY (tag, memory)
) WITHOUT ROWID;
CREATE INDEX memory_tag_memory ON memory_tag (memory);
CREATE TABLE memory_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    context TEXT NOT NULL,
    session_id TEXT NOT NULL,
    before TEXT NOT NULL
);
CREATE INDEX memory_event_memory ON memory_event (memory, id);
CREATE TABLE memory_edge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    relation TEXT NOT NULL,
    weight REAL NOT NULL,
    reason TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    UNIQUE (source, target, relation)
);
CREATE INDEX memory_edge_target ON memory_edge (target);
-- Version 4
CREATE TABLE container (
    path BLOB PRIMARY KEY,
    state INTEGER NOT NULL
) WITHOUT ROWID;
-- Version 5
CREATE TABLE stage (
    name TEXT PRIMARY KEY,
    succeeded INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    failed INTEGER
) WITHOUT ROWID;
-- Version 6
ALTER TABLE source ADD COLUMN rules TEXT NOT NULL DEFAULT '';
-- Version 7
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
-- Version 8
CREATE TABLE publication (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE
);
-- Version 9
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
-- Version 10
-- The twelfth value of a turn lists the files that it wrote.
CREATE TABLE edited (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
INSERT OR IGNORE INTO edited (exchange, path)
    SELECT exchange.item, written.value
    FROM exchange, json_each(CAST(exchange.turns AS TEXT)) AS turn, json_each(turn.value, '$[11]') AS written;
-- Version 11
-- When an observation is deleted, the exchanges that confirmed it are observed again and the summary of its session is
-- rebuilt.
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
-- Version 12
ALTER TABLE source ADD COLUMN masked TEXT NOT NULL DEFAULT '';
-- Version 13
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
-- Version 14
-- Keyed by position, so that an exchange restored after a deletion finds its repetitions. Sources archived before are
-- read again if they have repeated lines.
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
-- Version 15
-- The index entry of an exchange includes what it confirms.
CREATE TRIGGER confirmation_made AFTER INSERT ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER confirmation_gone AFTER DELETE ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
END;
INSERT INTO change (entity, id) SELECT DISTINCT 'item', exchange FROM confirmation;
-- Version 16
-- When an observation is deleted, a language model is asked again about the exchanges that confirmed it.
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
-- Version 17
-- `register` contains the number of the last write of the register file that these tables include. `told` contains the
-- numbers of items that a deletion covers.
CREATE TABLE register (seq INTEGER NOT NULL);
ALTER TABLE forgetting ADD COLUMN told TEXT NOT NULL DEFAULT '{}';
-- Version 18
-- Memories stored before are redacted once more.
ALTER TABLE memory ADD COLUMN rules TEXT NOT NULL DEFAULT '';
CREATE INDEX memory_rules ON memory (rules);
-- Version 19
-- When each raw copy was last verified, and its fault at that time.
CREATE TABLE inspection (
    source INTEGER PRIMARY KEY REFERENCES source ON DELETE CASCADE,
    at INTEGER NOT NULL,
    fault TEXT NOT NULL
);
-- Version 20
-- Few memories have a term, so the invalid ones are counted separately.
CREATE INDEX memory_term ON memory (state, valid_until, valid_from)
    WHERE valid_until IS NOT NULL OR valid_from IS NOT NULL;
-- Version 21
-- Binary embeddings of the tokens of a text. With a rowid, unlike `vector`: without one, each row of a kilobyte takes a
-- page.
CREATE TABLE token (
    item INTEGER NOT NULL,
    part INTEGER NOT NULL,
    signs BLOB NOT NULL,
    PRIMARY KEY (item, part),
    FOREIGN KEY (item, part) REFERENCES vector (item, part) ON DELETE CASCADE
);
-- Version 22
-- The packaged model embeds tokens from version 2 on and gives the same vectors as version 1. The old vectors stay
-- searchable until everything is embedded again.
UPDATE vector SET model = 'all-MiniLM-L6-v2-int8/2' WHERE model = 'all-MiniLM-L6-v2-int8/1';
UPDATE item SET embedded = NULL WHERE embedded = 'all-MiniLM-L6-v2-int8/1';
-- Version 23
-- Extraction opt-outs, by exchange, so that undo can revert them. Every deletion that covered only observations may
-- have been one. An opt-out without a deletion was undone.
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
-- Version 24
-- Keyed by position, so that an exchange restored after a deletion keeps its opt-out; `origins` limits it.
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
-- Version 25
-- Keyed by marks of the content, so that an opt-out holds wherever the content occurs. Positions are converted when
-- they are read.
CREATE TABLE renunciation (
    mark INTEGER NOT NULL,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    origins TEXT NOT NULL,
    PRIMARY KEY (mark, forgetting)
) WITHOUT ROWID;
CREATE INDEX renunciation_forgetting ON renunciation (forgetting);
-- Version 26
CREATE TABLE summary_due (session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE);
-- Version 27
-- Triggers log every write to a column from which index entries are built. This log is the only input of an index. The
-- entries of up to 4 short exchanges after an exchange contain its text, so they are logged with it.
CREATE TRIGGER item_inserted AFTER INSERT ON item BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.key);
END;
CREATE TRIGGER item_updated AFTER UPDATE OF session, at ON item
    WHEN (OLD.session, OLD.at) IS NOT
        (NEW.session, NEW.at) BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.key);
END;
CREATE TRIGGER item_deleted AFTER DELETE ON item BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.key);
END;
CREATE TRIGGER exchange_inserted AFTER INSERT ON exchange BEGIN
    INSERT INTO change (entity, id) SELECT 'item', item FROM exchange
        WHERE source = NEW.source AND ordinal BETWEEN NEW.ordinal + 1 AND NEW.ordinal + 4;
END;
CREATE TRIGGER exchange_updated AFTER UPDATE OF source, ordinal, cwd, branch, turns ON exchange
    WHEN (OLD.source, OLD.ordinal, OLD.cwd, OLD.branch, OLD.turns) IS NOT
        (NEW.source, NEW.ordinal, NEW.cwd, NEW.branch, NEW.turns) BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.item);
    INSERT INTO change (entity, id) SELECT 'item', item FROM observation WHERE exchange = NEW.item;
    INSERT INTO change (entity, id) SELECT 'item', item FROM exchange
        WHERE source = OLD.source AND ordinal BETWEEN OLD.ordinal + 1 AND OLD.ordinal + 4;
    INSERT INTO change (entity, id) SELECT 'item', item FROM exchange
        WHERE source = NEW.source AND ordinal BETWEEN NEW.ordinal + 1 AND NEW.ordinal + 4;
END;
CREATE TRIGGER exchange_deleted AFTER DELETE ON exchange BEGIN
    INSERT INTO change (entity, id) SELECT 'item', item FROM exchange
        WHERE source = OLD.source AND ordinal BETWEEN OLD.ordinal + 1 AND OLD.ordinal + 4;
END;
CREATE TRIGGER observation_inserted AFTER INSERT ON observation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER observation_updated AFTER UPDATE OF exchange, type, title, subtitle, narrative, facts, concepts,
    files_read, files_modified, evidence, origin ON observation
    WHEN (OLD.exchange, OLD.type, OLD.title, OLD.subtitle, OLD.narrative, OLD.facts, OLD.concepts, OLD.files_read,
        OLD.files_modified, OLD.evidence, OLD.origin) IS NOT
        (NEW.exchange, NEW.type, NEW.title, NEW.subtitle, NEW.narrative, NEW.facts, NEW.concepts, NEW.files_read,
        NEW.files_modified, NEW.evidence, NEW.origin) BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.item);
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER observation_deleted AFTER DELETE ON observation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
END;
CREATE TRIGGER confirmation_inserted AFTER INSERT ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER confirmation_deleted AFTER DELETE ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
END;
CREATE TRIGGER session_updated AFTER UPDATE OF agent, native_id, project, cwd, branch ON session
    WHEN (OLD.agent, OLD.native_id, OLD.project, OLD.cwd, OLD.branch) IS NOT
        (NEW.agent, NEW.native_id, NEW.project, NEW.cwd, NEW.branch) BEGIN
    INSERT INTO change (entity, id) SELECT 'item', key FROM item WHERE session = NEW.id;
END;
CREATE TRIGGER memory_updated AFTER UPDATE OF content, type, title, namespace, project, tags, origin, session_id,
    state, created ON memory
    WHEN (OLD.content, OLD.type, OLD.title, OLD.namespace, OLD.project, OLD.tags, OLD.origin, OLD.session_id,
        OLD.state, OLD.created) IS NOT
        (NEW.content, NEW.type, NEW.title, NEW.namespace, NEW.project, NEW.tags, NEW.origin, NEW.session_id,
        NEW.state, NEW.created) BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.item);
END;
CREATE TRIGGER chunk_updated AFTER UPDATE OF document, text, kind, start_line, end_line, header_path ON chunk
    WHEN (OLD.document, OLD.text, OLD.kind, OLD.start_line, OLD.end_line, OLD.header_path) IS NOT
        (NEW.document, NEW.text, NEW.kind, NEW.start_line, NEW.end_line, NEW.header_path) BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.item);
END;
CREATE TRIGGER document_updated AFTER UPDATE OF path, namespace, at ON document
    WHEN (OLD.path, OLD.namespace, OLD.at) IS NOT
        (NEW.path, NEW.namespace, NEW.at) BEGIN
    INSERT INTO change (entity, id) SELECT 'item', item FROM chunk WHERE document = NEW.id;
END;
-- Version 28
-- The namespace of each project, and the folders whose memory files the user allowed. Memories from files are external
-- until the user allows their folder.
CREATE TABLE project (identity TEXT PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, plain TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE allowed_folder (path TEXT PRIMARY KEY) WITHOUT ROWID;
UPDATE memory SET origin = 'external' WHERE origin = 'document' AND path != '';
-- Version 29
-- Packed rows of deleted exchanges, while the deletion can be undone. Summaries of sessions have line 0.
CREATE TABLE forgotten_item (
    exchange INTEGER PRIMARY KEY,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    observed TEXT,
    rows BLOB NOT NULL
);
-- Version 30
-- Superseded memories are indexed, too, so their entries are rebuilt. An edge that superseded no memory, such as one to
-- a golden rule, is a proposal.
ALTER TABLE memory_edge ADD COLUMN proposed INTEGER NOT NULL DEFAULT 0;
UPDATE memory_edge SET proposed = 1
    WHERE relation = 'supersedes' AND target IN (SELECT item FROM memory WHERE state != 'superseded');
INSERT INTO change (entity, id) SELECT 'item', item FROM memory WHERE state = 'superseded';
-- Version 31
-- Older copies get their checksums from `palaver fsck` or the background archiver. `key_check` identifies the key in
-- redaction.key without revealing it.
ALTER TABLE source ADD COLUMN sums BLOB NOT NULL DEFAULT x'';
ALTER TABLE source ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;
CREATE TABLE key_check (sign BLOB NOT NULL);
-- Version 32
-- Golden rules that agents made without the approval of the user return to their type, and memories of sessions get an
-- end.
UPDATE memory SET type = promoted_from, promoted_from = '', strikes = 0
    WHERE type = 'golden_rule' AND promoted_from != '' AND origin != 'human';
UPDATE memory SET valid_until = created + 172800000
    WHERE valid_until IS NULL AND pinned = 0 AND (family = 'session' OR namespace LIKE 'session:%');
-- Version 33
-- Undo rebuilds summaries, so the copies that an earlier version kept for it are deleted.
DELETE FROM forgotten_item WHERE start_line = 0;
-- Version 34
-- Keyed hashes of the files that a live exchange read or modified, taken when it was observed. `path` is the path as
-- observations cite it, `file` the absolute path.
CREATE TABLE file_state (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    file TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
-- Version 35
-- A job asks a model about an exchange, or about the session whose first exchange it names.
DROP TRIGGER observation_gone;
CREATE TABLE jobs (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    kind TEXT NOT NULL DEFAULT 'exchange' CHECK (kind IN ('exchange', 'session')),
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL,
    batch INTEGER REFERENCES batch,
    outcome TEXT NOT NULL DEFAULT '',
    refused INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (exchange, kind)
);
INSERT INTO jobs (exchange, digest, state, attempts, due, batch, outcome, refused, reason, reply)
    SELECT exchange, digest, state, attempts, due, batch, outcome, refused, reason, reply FROM job;
DROP TABLE job;
ALTER TABLE jobs RENAME TO job;
CREATE INDEX job_state ON job (state, due);
CREATE INDEX job_batch ON job (batch) WHERE batch IS NOT NULL;
-- Summaries by rules consist of observations, so they are deleted with any of these. Summaries by a model quote lines.
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    DELETE FROM job WHERE state = 'done' AND kind = 'exchange' AND exchange IN (
        SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
        WHERE c.observation = OLD.item AND e.observed <> 'llm:renounced');
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%';
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%');
END;
-- Version 36
-- Observations that a later observation of their session replaces, and the line that says so.
CREATE TABLE replacement (
    earlier INTEGER PRIMARY KEY REFERENCES observation ON DELETE CASCADE,
    later INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    line INTEGER NOT NULL
);
CREATE INDEX replacement_later ON replacement (later);
-- Version 37
-- Index of session IDs, to find their shortest unambiguous beginnings.
CREATE INDEX session_native_id ON session (native_id);
-- Version 38
-- Documentation comments of code units, and the paths that moved documents had before.
ALTER TABLE chunk ADD COLUMN doc TEXT NOT NULL DEFAULT '';
CREATE TABLE former_path (
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    path BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (document, path)
) WITHOUT ROWID;
-- Index of digests, to find the document of a moved file.
CREATE INDEX document_digest ON document (digest);
-- Version 39
-- Metadata of documents as a JSON object, such as title and author, and the folders that the watcher keeps indexed.
ALTER TABLE document ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
CREATE TABLE watched_folder (
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    recursive INTEGER NOT NULL,
    PRIMARY KEY (path, namespace)
);
-- Version 40
-- Index of the names of code units by their last part, without case and underscores.
CREATE INDEX chunk_symbol ON chunk (
    lower(replace(substr(name, 1 + length(rtrim(name, replace(name, '.', '')))), '_', ''))
) WHERE name <> '';
-- Version 41
-- Last visit of each project, by its identity.
CREATE TABLE visit (project TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
-- The newest memories of a namespace are listed often: those of a session and those of a project.
CREATE INDEX memory_newest ON memory (namespace, state, created);
-- Version 42
-- Text that hooks injected into sessions: what was shown, not the text itself.
CREATE TABLE injection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    session_id TEXT NOT NULL,
    project TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    items TEXT NOT NULL
);
CREATE INDEX injection_session ON injection (session_id);
-- Version 43
-- Lines of the whole unit of a chunk. Units with equal names differ in their first line.
ALTER TABLE chunk ADD COLUMN unit_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunk ADD COLUMN unit_end INTEGER NOT NULL DEFAULT 0;
-- Version 44
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
-- Version 45
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
-- Version 46
-- Transcripts are read again, because more of their content is read: comments above a request (codex), projects (gemini,
-- kimi-cli), records without a type (antigravity), token usage (kimi-code), times and projects (cursor), sub-agents
-- (copilot), and records on several lines.
UPDATE source SET rules = '' WHERE
    agent IN ('codex', 'gemini', 'kimi-cli', 'antigravity', 'kimi-code', 'cursor', 'copilot')
    OR coverage ->> '$."not-json"' > 0 OR coverage ->> '$."cut-short"' > 0;
-- Databases are searched again for sessions in tables of newer versions, and for the projects of sessions.
DELETE FROM container;
-- Version 47
-- Approved preferences of folders that no longer exist were stored under a number that no project has.
UPDATE OR IGNORE memory SET namespace = 'project:' || project
    WHERE source = 'conversation' AND namespace GLOB 'project:' || project || '-[1-9]*'
    AND ltrim(substr(namespace, length('project:' || project || '-') + 1), '0123456789') = ''
    AND namespace NOT IN (SELECT namespace FROM project);
-- Sessions in worktrees, and names in another Unicode form, get their project anew.
UPDATE source SET rules = '' WHERE session IN (
    SELECT id FROM session WHERE cwd GLOB '*[^ -~]*' OR cwd LIKE '%worktree%' OR cwd LIKE '%conductor%workspaces%'
);
-- Version 48
-- The redaction rules that were last applied to stored names of files and sessions.
CREATE TABLE checked_names (rules TEXT NOT NULL);
-- Version 49
-- Token costs of reading the turns of an exchange, as JSON. NULL until they are computed from the current turns.
ALTER TABLE exchange ADD COLUMN turn_costs BLOB;
CREATE INDEX exchange_without_costs ON exchange (item) WHERE turn_costs IS NULL;
CREATE TRIGGER exchange_costs_outdated AFTER UPDATE OF turns ON exchange WHEN OLD.turns IS NOT NEW.turns BEGIN
    UPDATE exchange SET turn_costs = NULL WHERE item = NEW.item;
END;
-- Version 50
-- The sessions without a card of the current prompt are the queue. The ledger records how each reply was used.
DROP TRIGGER observation_gone;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
    outcome TEXT NOT NULL DEFAULT '',
    cost INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    cache_written INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0
);
INSERT INTO calls (id, run, at, model, reason, exchange, digest, state, cost, tokens_in, cache_written, cache_read,
                   tokens_out)
    SELECT id, run, at, model, reason, exchange, digest, state, cost, tokens_in, cache_written, cache_read, tokens_out
    FROM call;
DROP TABLE call;
ALTER TABLE calls RENAME TO call;
CREATE INDEX call_at ON call (at);
CREATE INDEX call_digest ON call (digest);
DROP TABLE job;
DROP TABLE batch;
-- Cards by rules consist of observations, so they are deleted with any of these. Cards by a model quote lines.
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%';
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%');
END;
-- Version 51
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
