"""Rows to data files: the plan, names, rows made physical, statistics."""
