"""What the log's text means: types, schemas, actions and table properties. No I/O."""
