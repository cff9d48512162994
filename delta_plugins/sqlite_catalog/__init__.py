"""A catalog of names without a server: a file of SQLite, whose transactions make it safe for concurrent processes.

`delta_plugins.sqlite_catalog.catalog` has the catalog.
"""
