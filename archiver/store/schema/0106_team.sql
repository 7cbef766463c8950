-- Team that this machine joined: at most one row. After leaving, `device` is empty. `cursor` is the number of the last
-- change that the server acknowledged, `sent` that of the last change of a batch on its way, `last` the highest number
-- that was issued. `planned` is the last entry of the change log that was planned, with the rules and the projects of
-- that time. `compared` is 0 while a new epoch still has to be compared with the server.
CREATE TABLE team (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    url TEXT NOT NULL,
    team TEXT NOT NULL,
    team_name TEXT NOT NULL,
    person TEXT NOT NULL,
    person_name TEXT NOT NULL,
    device TEXT NOT NULL,
    epoch TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    last INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    rules TEXT NOT NULL,
    places TEXT NOT NULL,
    compared INTEGER NOT NULL
);
-- Projects of which more than nothing is shared, by their identity. All others are private.
CREATE TABLE team_project (identity TEXT PRIMARY KEY, name TEXT NOT NULL, level TEXT NOT NULL) WITHOUT ROWID;
-- Projects of the folders with shared sessions, for the time after a folder is deleted.
CREATE TABLE team_folder (folder TEXT PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID;
-- Memories that the user chose to share.
CREATE TABLE team_memory (memory INTEGER PRIMARY KEY REFERENCES memory ON DELETE CASCADE);
-- Items that were offered to the team. A row is written before the item is sent, and outlives the item, so that every
-- item can be withdrawn. `unit` is the session or group with which the item is planned. `item` is the key of the item,
-- if it has one. `hash` and `context` identify the state that the server acknowledged.
CREATE TABLE offered (
    id TEXT PRIMARY KEY,
    unit TEXT NOT NULL,
    item INTEGER,
    kind TEXT NOT NULL,
    project TEXT NOT NULL,
    level TEXT NOT NULL,
    seq INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'shared', 'leaving', 'gone', 'refused')),
    hash TEXT NOT NULL DEFAULT '',
    context TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX offered_unit ON offered (unit);
CREATE INDEX offered_item ON offered (item) WHERE item IS NOT NULL;
CREATE INDEX offered_waiting ON offered (seq) WHERE state IN ('waiting', 'leaving');
