-- Metadata of documents as a JSON object, such as title and author, and the folders that the watcher keeps indexed.
ALTER TABLE document ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
CREATE TABLE watched_folder (
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    recursive INTEGER NOT NULL,
    PRIMARY KEY (path, namespace)
);
