"""The requirements of every version on tables and commits, with the differences between versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from delta_core.api import (
    FeatureRequirementError,
    FileRequirement,
    InvalidArgumentError,
    Metadata,
    PrimitiveType,
    RemainingFilesCheck,
    SchemaError,
    StructType,
    TableFeature,
    TableState,
    TypeChangeError,
    UnsupportedOperationError,
    format_path,
    parse_decimal,
    walk,
)
from delta_core.kernels import compute as pc

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["MODE", "Version", "switched_on"]

MODE = "delta.columnMapping.mode"
_VERSIONS = ("icebergCompatV1", "icebergCompatV2", "icebergCompatV3")
_PRIMITIVES = frozenset({
    "byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp",
    "timestamp_ntz", "timestampNTZ", "timestampWithoutTimezone",
})  # fmt: skip
_CHANGES = frozenset(
    {
        ("byte", "short"),
        ("byte", "integer"),
        ("byte", "long"),
        ("short", "integer"),
        ("short", "long"),
        ("integer", "long"),
        ("float", "double"),
    }
)


def switched_on(metadata: Metadata, switch: str) -> bool:
    """Whether a property is true."""
    return metadata.configuration.get(switch, "").strip().lower() == "true"


class Version(Struct, frozen=True):
    """The rules of one version.

    Parameters
    ----------
    vectors : str
        Whether deletion vectors may be ``supported``, ``inactive`` (supported, not switched on) or ``unsupported``.
    types : frozenset of str
        Primitive types beyond the common ones.
    nested : bool
        Whether lists and maps are allowed.
    """

    name: str
    vectors: str
    types: frozenset[str] = frozenset()
    nested: bool = True

    @property
    def switch(self) -> str:
        """The property that switches it on."""
        return f"delta.enable{self.name[0].upper()}{self.name[1:]}"

    def feature(self, summary: str, **more: Any) -> TableFeature:
        """Return what is known of the version as a feature."""
        active: Callable[[TableState], bool] = methodcaller("flag", self.switch)
        properties = {self.switch: "true switches the requirements on"}
        return TableFeature(self.name, "writer", summary, properties=properties, active=active, **more)

    def prepared(self, metadata: Metadata, previous: TableState | None) -> Metadata:
        """Return the metadata of a new table with what the version needs and the caller did not request otherwise."""
        if previous is not None or not switched_on(metadata, self.switch) or MODE in metadata.configuration:
            return metadata
        return replace(metadata, configuration={**metadata.configuration, MODE: "name"})

    # --- metadata ---

    def check(self, table: TableState, previous: TableState | None) -> None:
        """Reject metadata that Iceberg could not take over.

        Raises
        ------
        FeatureRequirementError
            For other features.
        SchemaError, TypeChangeError, InvalidArgumentError
            For columns, types or properties that Iceberg does not have.
        """
        if not table.is_active(self.name):
            return
        self._check_features(table)
        self._check_types(table.schema)
        self._check_changes(table.schema)
        if previous is not None and previous.is_active(self.name):
            self._check_partitioning(table, previous)

    def _check_features(self, table: TableState) -> None:
        if not table.is_active("columnMapping"):
            self._lacks(f"column mapping: set {MODE} to name or id")
        other = next((v for v in _VERSIONS if v != self.name and table.is_active(v)), None)
        if other is not None:
            self._lacks(f"that {other} is off: one version at a time")
        if self.vectors == "unsupported" and table.is_supported("deletionVectors"):
            self._lacks("a table without the feature deletionVectors: drop it first")
        if self.vectors == "inactive" and table.is_active("deletionVectors"):
            self._lacks(
                "that deletion vectors are off: set delta.enableDeletionVectors to false, and purge those there"
            )

    def _lacks(self, what: str) -> None:
        raise FeatureRequirementError(f"{self.switch}=true needs {what}.", feature=self.name)

    def _check_types(self, schema: StructType) -> None:
        allowed = _PRIMITIVES | self.types
        for path, f in walk(schema):
            if isinstance(f.type, PrimitiveType):
                if f.type.type not in allowed and parse_decimal(f.type.type) is None:
                    self._check_type(path, f.type.type)
            elif not isinstance(f.type, StructType) and not self.nested:
                self._check_type(path, f.type.type)

    def _check_type(self, path: tuple[str, ...], name: str) -> None:
        raise SchemaError(
            f"Column {format_path(path)} has type {name}, which {self.name} does not allow. Leave the column out, or "
            f"set {self.switch} to false.",
            column=format_path(path),
            type=name,
        )

    def _check_changes(self, schema: StructType) -> None:
        for path, f in walk(schema):
            for change in f.metadata.get("delta.typeChanges") or ():
                old, new = str(change.get("fromType")), str(change.get("toType"))
                if (old, new) not in _CHANGES and not _is_wider_decimal(old, new):
                    raise TypeChangeError(
                        f"Column {format_path(path)} was changed from {old} to {new}, which Iceberg can't follow "
                        f"({self.name}). {_COPY}",
                        column=format_path(path),
                        from_type=old,
                        to_type=new,
                    )

    def _check_partitioning(self, table: TableState, previous: TableState) -> None:
        old, new = previous.partition_columns, table.partition_columns
        if old and [c.lower() for c in old] != [c.lower() for c in new]:
            raise InvalidArgumentError(
                f"The table is partitioned by {', '.join(old)} and would be by {', '.join(new) or 'nothing'}: "
                f"{self.name} lets partition columns keep their names only."
            )

    # --- writing ---

    def requirements(self, table: TableState) -> Iterator[FileRequirement]:
        """Yield what data files need."""
        if table.is_active(self.name):
            yield FileRequirement(self.name, materialize_partition_columns=True, num_records=True, field_ids=True)

    def commit_rules(self, attempt: AttemptView) -> Iterator[RemainingFilesCheck]:
        """Yield what older files must be if the version is switched on: written as it requires."""
        previous = attempt.previous
        if previous is None or previous.is_active(self.name) or not attempt.table.is_active(self.name):
            return
        table = attempt.table
        has_parts = any(not isinstance(f.type, (PrimitiveType, StructType)) for _, f in walk(table.schema))
        vectors = self.vectors != "supported" and previous.is_supported("deletionVectors")
        if not previous.is_active("columnMapping") or table.partition_columns or has_parts or vectors:
            yield RemainingFilesCheck(
                self.name, "", f"were written before {self.switch} was set, not with its rules. {_COPY}"
            )
        else:
            yield RemainingFilesCheck(
                self.name, "stats", f"have no statistics, which {self.name} requires of every file. {_COPY}"
            )

    def check_commit(self, attempt: AttemptView) -> None:
        """Reject adds without a count of rows, and vectors if none may be.

        Raises
        ------
        InvalidArgumentError
            If an add lacks ``numRecords``.
        UnsupportedOperationError
            If an add has a deletion vector, and this version allows none.
        """
        if not attempt.table.is_active(self.name) or not attempt.adds.num_rows:
            return
        adds = attempt.adds
        has_num_records = pc.fill_null(pc.match_substring(adds.column("stats"), '"numRecords"'), False)
        if not pc.all(has_num_records).as_py():
            path = adds.filter(pc.invert(has_num_records)).column("path")[0].as_py()
            raise InvalidArgumentError(
                f"{path} has no numRecords in its statistics, as {self.name} requires.", path=path
            )
        vectors = adds.column("deletionVector")
        if self.vectors != "supported" and vectors.null_count < len(vectors):
            path = adds.filter(vectors.is_valid()).column("path")[0].as_py()
            raise UnsupportedOperationError(
                f"{path} has a deletion vector, which {self.name} does not allow. Rewrite the file.", path=path
            )


_COPY = "Copy the rows to a new table."


def _is_wider_decimal(old: str, new: str) -> bool:
    before, after = parse_decimal(old), parse_decimal(new)
    return before is not None and after is not None and after[0] > before[0] and after[1] == before[1]
