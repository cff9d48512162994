"""What `DeltaTable`, `Snapshot` and `Scan` share as objects: how they are pickled, and shown in notebooks."""
