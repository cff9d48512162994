"""Lance: a table format beside Delta, with its own manifests and data files."""
