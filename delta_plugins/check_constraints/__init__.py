"""checkConstraints: named conditions on rows. Protocol: CHECK Constraints."""

from delta_core.api import TableFeature, TableState

__all__ = ["FEATURE"]

PREFIX = "delta.constraints."


def _is_active(table: TableState) -> bool:
    return any(name.startswith(PREFIX) for name in table.configuration)


FEATURE = TableFeature(
    "checkConstraints",
    "writer",
    "The table states conditions that every written row fulfils.",
    legacy_writer=3,
    properties={"delta.constraints.<name>": "a condition in Spark SQL"},
    active=_is_active,
)
