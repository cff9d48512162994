"""VACUUM: files that no version within the retention can reach are found and deleted; `operation` is its entry."""
