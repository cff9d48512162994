"""Places: local disks, object stores, archives; the log's files on them; which of them a table may name."""
