"""The prose linter, its word list and its tests."""
