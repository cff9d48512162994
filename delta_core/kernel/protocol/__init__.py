"""The meaning of the log's text: types, schemas, actions and table properties. No I/O."""
