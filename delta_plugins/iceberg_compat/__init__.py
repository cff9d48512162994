"""Features of tables that Apache Iceberg takes over, a module each: files and metadata that convert to it.

They differ by the version of Iceberg and are on one set of rules, `logic`.
"""
