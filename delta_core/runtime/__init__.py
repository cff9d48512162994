"""What Python itself needs help with: forked processes, deep recursion, deep JSON, names that load late."""
