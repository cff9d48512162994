"""External manifest stores: which manifest is that of a version is decided by entries outside of the object store."""
