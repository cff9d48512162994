"""Unity Catalog: tables by name, short-lived credentials of their stores, and commits through the catalog.

`delta_plugins.unity_catalog.catalog` has the client, `place` the storage of ``uc://catalog.schema.table``. Protocol:
Catalog-managed tables; Unity Catalog's REST API 2.1.
"""
