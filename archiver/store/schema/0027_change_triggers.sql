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
