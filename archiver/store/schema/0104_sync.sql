-- Devices in the shared folder of `palaver sync`. `revision` and `digest` are those of the last accepted manifest.
-- `applied` is the number of the last segment that was read, or written if it is this device.
CREATE TABLE sync_device (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL DEFAULT x'',
    applied INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
-- What this device sent: raw copies, result files, memories and deletions, by key. `segments` are the numbers of the
-- segments with records of the key, as JSON.
CREATE TABLE sync_sent (
    key TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    size INTEGER NOT NULL,
    state BLOB NOT NULL,
    digest BLOB NOT NULL,
    segments TEXT NOT NULL
) WITHOUT ROWID;
-- Raw copies of other devices, by archive path. A copy is incomplete while parts of its version are missing.
CREATE TABLE sync_copy (
    archived TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    size INTEGER NOT NULL,
    complete INTEGER NOT NULL
) WITHOUT ROWID;
-- Identity of memories on all devices. `lamport` and `device` order the versions of the content. A memory is forgotten
-- while `forgotten` exceeds `restored`. An erased memory has no `memory`.
CREATE TABLE sync_memory (
    uid TEXT PRIMARY KEY,
    memory INTEGER REFERENCES memory ON DELETE SET NULL,
    lamport INTEGER NOT NULL,
    device TEXT NOT NULL,
    forgotten INTEGER NOT NULL DEFAULT 0,
    restored INTEGER NOT NULL DEFAULT 0,
    erased INTEGER NOT NULL DEFAULT 0,
    state BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX sync_memory_memory ON sync_memory (memory);
-- Deletions of other devices. `lines` maps the IDs of copies to line ranges, as JSON. `local` are the deletions of this
-- archive that carried them out.
CREATE TABLE sync_deletion (
    device TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    lines TEXT NOT NULL,
    local TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (device, number)
) WITHOUT ROWID;
-- Lines of raw copies that each deletion selected, as JSON ranges. `copy` is the ID of a copy on all devices, which
-- delete the same lines.
CREATE TABLE deleted_lines (
    deletion INTEGER NOT NULL REFERENCES deletion ON DELETE CASCADE,
    copy TEXT NOT NULL,
    ranges TEXT NOT NULL,
    PRIMARY KEY (deletion, copy)
) WITHOUT ROWID;
