"""Verification of tables, and their repair; `operation` and `repair` are the entries."""
