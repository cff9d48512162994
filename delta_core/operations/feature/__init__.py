"""Table features are added, and dropped with what they left in a table; `add` and `drop` are the entries."""
