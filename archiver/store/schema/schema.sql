-- Change log. Triggers add an entry for every write to a column from which index entries are built. The log is the only
-- input of an index.
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL CHECK (entity IN ('item', 'vector')),
    id INTEGER NOT NULL
);

-- Sessions. The ID of a sub-agent is unique only within `scope`, the session of its parent.
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
    scope TEXT NOT NULL DEFAULT '',
    UNIQUE (agent, native_id, scope)
);
CREATE INDEX session_native_id ON session (native_id);
CREATE INDEX session_parent ON session (parent_id);

-- Files of agents and their raw copies. A source with empty `rules` is read again.
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
    resume TEXT NOT NULL DEFAULT '[1, 0, 0, {}]',
    rules TEXT NOT NULL DEFAULT '',
    sums BLOB NOT NULL DEFAULT x''
);
CREATE UNIQUE INDEX source_path ON source (path) WHERE NOT superseded;
CREATE INDEX source_session ON source (session);
-- First source and line of each record ID.
CREATE TABLE record (
    id TEXT PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source,
    line INTEGER NOT NULL
) WITHOUT ROWID;
-- Exchanges that another source repeats, by their position in the source that stores them.
CREATE TABLE repetition (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    repeated_in INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    PRIMARY KEY (source, ordinal, repeated_in)
) WITHOUT ROWID;
CREATE INDEX repetition_repeated_in ON repetition (repeated_in);
-- Last verification of each raw copy, with the fault that it found.
CREATE TABLE verification (
    source INTEGER PRIMARY KEY REFERENCES source ON DELETE CASCADE,
    at INTEGER NOT NULL,
    fault TEXT NOT NULL
);
-- Calls that started sub-agents, each with the ID that the agent gave to the sub-agent. The sub-agent may be unknown.
CREATE TABLE subagent_call (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    call TEXT NOT NULL,
    native_id TEXT NOT NULL,
    PRIMARY KEY (source, call, native_id)
) WITHOUT ROWID;
-- State in which a container of many sessions was last read.
CREATE TABLE container (path BLOB PRIMARY KEY, state INTEGER NOT NULL) WITHOUT ROWID;
-- Files that cannot be read.
CREATE TABLE problem (path BLOB PRIMARY KEY, reason TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
-- Redaction rules that were last applied to stored names of files and sessions.
CREATE TABLE redacted_names (rules TEXT NOT NULL);

-- Searchable content of every kind: exchanges, observations, memories and chunks share one sequence of IDs.
CREATE TABLE item (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    session INTEGER REFERENCES session,
    at INTEGER,
    embedded TEXT
);
CREATE INDEX item_session ON item (session);
CREATE INDEX item_embedded ON item (embedded);
CREATE TABLE vector (
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    part INTEGER NOT NULL CHECK (part BETWEEN 0 AND 255),
    model TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (item, part)
) WITHOUT ROWID;
-- Binary embeddings of the tokens of a text. With a rowid, unlike `vector`: without one, each row of a kilobyte takes a
-- page.
CREATE TABLE token (
    item INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bits BLOB NOT NULL,
    PRIMARY KEY (item, part),
    FOREIGN KEY (item, part) REFERENCES vector (item, part) ON DELETE CASCADE
);
-- Tokens of the published indexes.
CREATE TABLE publication (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE
);

-- Exchanges. `observed` is the extractor that was last applied. `turn_costs` are the token costs of reading the turns, as
-- JSON. They are NULL until they are computed from the current turns.
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
    refused INTEGER NOT NULL DEFAULT 0,
    turn_costs BLOB,
    UNIQUE (source, ordinal)
);
CREATE INDEX exchange_observed ON exchange (observed);
CREATE INDEX exchange_without_costs ON exchange (item) WHERE turn_costs IS NULL;
CREATE TABLE edited_file (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
-- Keyed hashes of the files that a live exchange read or modified, taken when it was observed. `path` is the path as
-- observations cite it, `file` the absolute path.
CREATE TABLE file_state (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    file TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;

-- Observations. `fingerprint` is equal for near-duplicates, `tokens` the cost of reading the observation.
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
    tokens INTEGER NOT NULL,
    scope TEXT NOT NULL DEFAULT 'exchange',
    fingerprint TEXT NOT NULL DEFAULT ''
);
CREATE INDEX observation_exchange ON observation (exchange);
CREATE INDEX observation_fingerprint ON observation (fingerprint) WHERE fingerprint != '';
-- Exchanges that repeat an observation of an earlier exchange.
CREATE TABLE confirmation (
    observation INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    evidence TEXT NOT NULL,
    PRIMARY KEY (observation, exchange)
) WITHOUT ROWID;
CREATE INDEX confirmation_exchange ON confirmation (exchange);
-- Observations that a later observation of their session replaces, and the line that says so.
CREATE TABLE replacement (
    earlier INTEGER PRIMARY KEY REFERENCES observation ON DELETE CASCADE,
    later INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    line INTEGER NOT NULL
);
CREATE INDEX replacement_later ON replacement (later);
-- Session cards, and the sessions that need a new one.
CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE
);
CREATE INDEX summary_item ON summary (item);
CREATE TABLE summary_due (session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE);

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
    decayed INTEGER,
    rules TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX memory_claim ON memory (namespace, family, hash) WHERE state = 'active' AND path = '';
CREATE UNIQUE INDEX memory_path ON memory (path) WHERE state = 'active' AND path != '';
CREATE INDEX memory_scope ON memory (state, namespace, type, valid_until, valid_from);
CREATE INDEX memory_created ON memory (state, created);
CREATE INDEX memory_updated ON memory (state, updated);
CREATE INDEX memory_accessed ON memory (state, accessed);
CREATE INDEX memory_importance ON memory (state, importance);
CREATE INDEX memory_confidence ON memory (state, confidence);
CREATE INDEX memory_rules ON memory (rules);
-- Few memories have a term, so the invalid ones are counted separately.
CREATE INDEX memory_term ON memory (state, valid_until, valid_from)
    WHERE valid_until IS NOT NULL OR valid_from IS NOT NULL;
-- The newest memories of a namespace are listed often: those of a session and those of a project.
CREATE INDEX memory_newest ON memory (namespace, state, created);
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
-- Relations of memories. An edge that superseded no memory, such as one to a golden rule, is a proposal.
CREATE TABLE memory_edge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    relation TEXT NOT NULL,
    weight REAL NOT NULL,
    reason TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    proposed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (source, target, relation)
);
CREATE INDEX memory_edge_target ON memory_edge (target);
-- Memory files, and the folders whose memory files the user trusts.
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
CREATE TABLE trusted_folder (path TEXT PRIMARY KEY) WITHOUT ROWID;
-- Namespace of each project. `plain` is the namespace that its name alone gives.
CREATE TABLE project (identity TEXT PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, plain TEXT NOT NULL) WITHOUT ROWID;
-- Last visit of each project, by its identity.
CREATE TABLE visit (project TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
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

-- Documents and their chunks. `metadata` is a JSON object, such as title and author.
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    language TEXT NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    UNIQUE (path, namespace)
);
CREATE INDEX document_digest ON document (digest);
-- `unit_start` and `unit_end` are the lines of the whole unit of code. Units with equal names differ in them.
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
    signature TEXT NOT NULL,
    doc TEXT NOT NULL DEFAULT '',
    unit_start INTEGER NOT NULL DEFAULT 0,
    unit_end INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX chunk_document ON chunk (document, ordinal);
-- Names of code units by their last part, without case and underscores.
CREATE INDEX chunk_symbol ON chunk (
    lower(replace(substr(name, 1 + length(rtrim(name, replace(name, '.', '')))), '_', ''))
) WHERE name <> '';
-- Paths that moved documents had before.
CREATE TABLE former_path (
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    path BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (document, path)
) WITHOUT ROWID;
CREATE TABLE queued_file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    root BLOB NOT NULL,
    problem TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    UNIQUE (path, namespace)
);
-- Folders that the watcher keeps indexed.
CREATE TABLE watched_folder (
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    recursive INTEGER NOT NULL,
    PRIMARY KEY (path, namespace)
);

-- Deletions. `summary` is a JSON object with the numbers of deleted items.
CREATE TABLE deletion (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('kept', 'erasing', 'erased')),
    summary TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE tombstone (
    hash INTEGER NOT NULL,
    deletion INTEGER NOT NULL REFERENCES deletion,
    PRIMARY KEY (hash, deletion)
) WITHOUT ROWID;
CREATE INDEX tombstone_deletion ON tombstone (deletion);
-- Packed rows of deleted exchanges, while the deletion can be undone.
CREATE TABLE deleted_exchange (
    exchange INTEGER PRIMARY KEY,
    deletion INTEGER NOT NULL REFERENCES deletion ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    observed TEXT,
    rows BLOB NOT NULL
);
-- Raw copies from which lines must still be erased.
CREATE TABLE scheduled_erasure (
    archived TEXT PRIMARY KEY,
    deletion INTEGER NOT NULL REFERENCES deletion,
    whole INTEGER NOT NULL
) WITHOUT ROWID;
-- Agents' files that contain only erased content.
CREATE TABLE erased_file (
    path_hash INTEGER PRIMARY KEY,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL
);
-- Number of the last write of the tombstone file that these tables include.
CREATE TABLE tombstone_file (seq INTEGER NOT NULL);
-- Fingerprint of the key in redaction.key.
CREATE TABLE key_fingerprint (fingerprint BLOB NOT NULL);

-- Leases and stages of background work.
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE stage (
    name TEXT PRIMARY KEY,
    succeeded INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    failed INTEGER
) WITHOUT ROWID;
-- Ledger of the calls of language models.
CREATE TABLE call (
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
CREATE INDEX call_at ON call (at);
CREATE INDEX call_digest ON call (digest);

-- Triggers of the change log. The entries of up to 4 short exchanges after an exchange contain its text, so they are
-- logged with it. The index entry of an exchange includes its observations and what it confirms.
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

CREATE TRIGGER exchange_costs_outdated AFTER UPDATE OF turns ON exchange WHEN OLD.turns IS NOT NEW.turns BEGIN
    UPDATE exchange SET turn_costs = NULL WHERE item = NEW.item;
END;
-- When an observation is deleted, the exchanges that confirmed it are observed again. Cards by rules consist of
-- observations, so they are deleted with any of these. Cards by a model quote lines.
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:opted-out';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%';
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%');
END;
