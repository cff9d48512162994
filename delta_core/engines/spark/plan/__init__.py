"""How a read becomes a plan of Spark: files, pruning, the log of very large tables."""
