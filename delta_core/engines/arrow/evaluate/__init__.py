"""Expressions on Arrow arrays, with Spark's semantics."""
