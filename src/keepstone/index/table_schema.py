"""The tables, indexes and triggers of an index, in SQL.

A row of ``entry`` holds a live entry completely: ``record`` is the JSON of its record without id, time, type
and later counts of ``access``, which have separate columns. A given vector is stored only in ``vector``, in
the space ``given``, as long as it exists there. The other columns repeat values that queries use. ``digest``
is the digest of the searched text, NULL for a text without words; ``head`` is the beginning of the text
itself. See docs/decisions/0034.
"""

from keepstone.model import BOUNDS, STANDING

IS_STANDING = f"type IN {STANDING}"
"""The condition in exactly the words of the partial index, so that SQLite uses that index."""

# Naming all spaces lets SQLite use the one index that vectors have.
_WITHOUT_VECTORS = "DELETE FROM vector WHERE space IN (SELECT number FROM space) AND"

TAGS = "tags, one by one"
"""The path of an entry's tags, one by one."""

ALWAYS = (TAGS, *sorted(BOUNDS))
"""Paths that are always indexed, as the filters of most lists use them."""

# No number of a vector is used twice (AUTOINCREMENT), as files of vectors refer to these numbers. The files
# also copy times and types, so if either changes, the entry's vector gets a new number. A row has one vector
# in a space: ``entry_scope`` keeps the copy under the negative row number until the old vector is gone.
# Ids come first in ``entry_id``, as an entry is looked up in all sessions as often as in one. SQLite uses a
# partial index only if a query repeats its condition.
TABLES = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE session(
    sid INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
    size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL,
    offset INTEGER NOT NULL, ts INTEGER, tail INTEGER NOT NULL, crc INTEGER NOT NULL,
    compacted INTEGER NOT NULL DEFAULT 0, title TEXT
);
CREATE TABLE seen(sid INTEGER, digest TEXT, count INTEGER, PRIMARY KEY(sid, digest)) WITHOUT ROWID;
CREATE TABLE entry(
    eid INTEGER PRIMARY KEY, sid INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL,
    ts INTEGER NOT NULL, type TEXT NOT NULL, priority REAL, pinned INTEGER, tags TEXT, links TEXT,
    access INTEGER, digest INTEGER, head TEXT NOT NULL, given INTEGER, record TEXT NOT NULL
);
CREATE UNIQUE INDEX entry_id ON entry(id, sid);
CREATE INDEX entry_ts ON entry(sid, ts);
CREATE UNIQUE INDEX entry_number ON entry(sid, number);
CREATE INDEX entry_pinned ON entry(eid) WHERE pinned IS NOT NULL;
CREATE INDEX entry_links ON entry(eid) WHERE links IS NOT NULL;
CREATE INDEX entry_standing ON entry(ts) WHERE {IS_STANDING};
CREATE INDEX entry_time ON entry(ts);
CREATE INDEX entry_type ON entry(type);
CREATE TABLE changed(number INTEGER PRIMARY KEY, eid INTEGER NOT NULL);
CREATE TRIGGER changed_before AFTER INSERT ON changed
    BEGIN DELETE FROM changed WHERE number<=NEW.number-4096; END;
CREATE TABLE path(number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, upto INTEGER NOT NULL);
CREATE TABLE field(
    path INTEGER NOT NULL, value NOT NULL, eid INTEGER NOT NULL, PRIMARY KEY(path, value, eid)
) WITHOUT ROWID;
CREATE INDEX field_eid ON field(eid);
CREATE TABLE space(number INTEGER PRIMARY KEY, id TEXT NOT NULL, dim INTEGER NOT NULL, UNIQUE(id, dim));
CREATE TABLE vector(
    vid INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL, eid INTEGER NOT NULL, made INTEGER NOT NULL, f32 BLOB NOT NULL,
    UNIQUE(space, eid)
);
CREATE TABLE gone(number INTEGER PRIMARY KEY AUTOINCREMENT, space INTEGER NOT NULL, vid INTEGER NOT NULL);
CREATE TABLE generation(
    space INTEGER PRIMARY KEY, number INTEGER NOT NULL, upto INTEGER NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE graph(
    space INTEGER NOT NULL, sid INTEGER NOT NULL, number INTEGER NOT NULL,
    mark INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(space, sid)
);
CREATE TABLE kept(
    sid INTEGER NOT NULL, space INTEGER NOT NULL, digest INTEGER NOT NULL, f32 BLOB NOT NULL,
    PRIMARY KEY(sid, space, digest)
) WITHOUT ROWID;
CREATE TRIGGER entry_gone AFTER DELETE ON entry
    BEGIN {_WITHOUT_VECTORS} eid=OLD.eid; INSERT INTO changed(eid) VALUES(OLD.eid); END;
CREATE TRIGGER entry_fields AFTER DELETE ON entry BEGIN DELETE FROM field WHERE eid=OLD.eid; END;
CREATE TRIGGER entry_text AFTER UPDATE OF digest ON entry WHEN OLD.digest IS NOT NEW.digest
    BEGIN {_WITHOUT_VECTORS} eid=OLD.eid; INSERT INTO changed(eid) VALUES(OLD.eid); END;
CREATE TRIGGER entry_scope AFTER UPDATE OF ts, type ON entry
    WHEN OLD.ts IS NOT NEW.ts OR OLD.type IS NOT NEW.type BEGIN
    INSERT INTO vector(space, eid, made, f32) SELECT space, -eid, made, f32 FROM vector
        WHERE space IN (SELECT number FROM space) AND eid=OLD.eid;
    {_WITHOUT_VECTORS} eid=OLD.eid;
    UPDATE vector SET eid=OLD.eid WHERE space IN (SELECT number FROM space) AND eid=-OLD.eid;
END;
CREATE TRIGGER vector_given BEFORE DELETE ON vector WHEN OLD.made=0 BEGIN
    UPDATE entry SET given=NULL,
        record=with_vector(record, (SELECT id FROM space WHERE number=OLD.space), OLD.f32)
        WHERE eid=OLD.eid AND given=OLD.space;
END;
CREATE TRIGGER vector_gone AFTER DELETE ON vector BEGIN
    INSERT INTO gone(space, vid) VALUES(OLD.space, OLD.vid); INSERT INTO changed(eid) VALUES(OLD.eid); END;
INSERT INTO path(name, upto) VALUES {", ".join(f"('{name}', -1)" for name in ALWAYS)};
INSERT INTO meta VALUES ('flushed', 0), ('purges', 0), ('identity', lower(hex(randomblob(16))));
"""
