"""MERGE: rows of a source update, delete and insert rows of the table; `operation` is its entry."""
