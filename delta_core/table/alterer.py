"""`DeltaTable.alter` and names of features, with the call forms of `deltalake`; loads no operation before a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from delta_core import operations
from delta_core.errors import (
    ArgumentInterfaceError,
    ArgumentTypeError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    did_you_mean,
)
from delta_core.kernel.commit.options import CommitProperties, PostCommitHookProperties, commit_arguments
from delta_core.kernel.plugins.registry import default_registry
from delta_core.runtime.arguments import properties_by_position

if TYPE_CHECKING:
    from delta_core.kernel.snapshot import Snapshot
    from delta_core.schema.types import DataType, Field

__all__ = ["AlteredTable", "TableAlterer", "TableFeatures"]


class AlteredTable(Protocol):
    """The table that is altered: a `DeltaTable`."""

    def snapshot(self) -> Snapshot:
        """Return the version that is loaded."""
        ...

    def adopt(self, snapshot: Snapshot) -> None:
        """Move to a version that is built already."""
        ...

    def update_incremental(self) -> None:
        """Move to the latest version."""
        ...

    def operation(self, name: str) -> Callable[..., Any]:
        """Return a feature's own operation."""
        ...


#: The names of features in ``deltalake`` that differ from the protocol's.
_PEER_NAMES = {"timestampwithouttimezone": "timestampntz"}
_OWN_NAMES = {"TimestampNtz": "TimestampWithoutTimezone"}
#: A feature that ``deltalake`` names, and that no plugin here provides: `add_feature` reports it.
_PEER_FEATURES = {"timestampnanos": "timestampNanos"}


class _FeatureNames(type):
    """Finds a feature of any installed plugin by an attribute."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):  # for inspection, copies and pickles, which look for names that need not exist
            raise AttributeError(name)
        known = {**_PEER_FEATURES, **{_attribute(n): n for n in default_registry().names()}}
        wanted = _PEER_NAMES.get(name.lower(), name.lower())
        if wanted not in known:
            raise UnsupportedFeatureError(
                f"No installed plugin provides the feature {name!r}.{did_you_mean(name, dir(cls))} Installed: "
                f"{', '.join(dir(cls))}.",
                feature=name,
            )
        return cls(known[wanted])

    def __dir__(cls) -> list[str]:
        return sorted(n[:1].upper() + n[1:] for n in default_registry().names() if n.isidentifier())


def _feature_name(feature: object) -> str:
    """Return the name of a feature, also of one of ``deltalake.TableFeatures``."""
    if isinstance(feature, str):
        return str.__str__(feature)
    name = str(feature).removeprefix("TableFeatures.")
    if name == str(feature):
        raise ArgumentTypeError(f"Found a feature as {type(feature).__name__}, expected its name.")
    return str.__str__(getattr(TableFeatures, name))


def _attribute(name: str) -> str:
    """Return a feature's name as attributes are compared: letters and digits, case does not count."""
    return "".join(c for c in name if c.isalnum()).lower()


class TableFeatures(str, metaclass=_FeatureNames):
    """The names of the features that are installed, with upper-case initials: ``TableFeatures.AppendOnly``.

    Each attribute is a member of the class, which is the protocol's name of the feature as text too.

    Examples
    --------
    >>> TableFeatures.DeletionVectors
    TableFeatures.DeletionVectors
    >>> TableFeatures.DeletionVectors == "deletionVectors"
    True
    """

    __slots__ = ()

    def __new__(cls, feature: str = "") -> Self:
        """Return the member of a feature, by the protocol's name."""
        return super().__new__(cls, feature)

    def __repr__(self) -> str:
        words = re.split(r"[^A-Za-z0-9]", self)
        name = "".join(w[:1].upper() + w[1:] for w in words)
        return f"TableFeatures.{_OWN_NAMES.get(name, name)}"

    __str__ = __repr__


class TableAlterer:
    """Changes of a table's definition. Each call commits one version, and the table then has it.

    A column is named by text, dotted for fields of structs (`` `a.b` `` in backticks is a name that contains a dot), or
    by a sequence with the parts of its path. Calls that change nothing commit nothing. Every call takes
    ``commit_properties`` and ``post_commithook_properties``, and may raise CommitConflictError if another writer
    changed the table's definition meanwhile: nothing is committed then.

    Examples
    --------
    >>> table.alter.add_column("country", "string")
    >>> table.alter.set_column_comment("country", "of the customer")
    >>> table.schema().get("country").metadata
    {'comment': 'of the customer'}
    """

    def __init__(self, table: AlteredTable) -> None:
        self.table = table

    def __repr__(self) -> str:
        return f"TableAlterer({self.table!r})"

    # --- columns ---

    @properties_by_position("commit_properties", "post_commithook_properties")
    def add_columns(
        self,
        fields: Field | Sequence[Field],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add nullable columns, and fields to structs that the table has; rows that are there have null in them.

        Parameters
        ----------
        fields : Field or sequence of Field
            The columns; for a struct that the table has, the fields that it lacks are added.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        SchemaError
            For a column that is NOT NULL, that the table has with another type, or whose metadata provides values, such
            as a default.

        Examples
        --------
        >>> table.alter.add_columns([Field("country", "string"), Field("day", "date")])
        >>> table.schema().names
        ['id', 'city', 'amount', 'country', 'day']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.add_columns(self.table.snapshot(), fields, commit, operation="ADD COLUMN"))

    def add_column(
        self,
        column: str | Sequence[str],
        data_type: DataType | str,
        *,
        comment: str | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add a nullable column, or a field of a struct: ``add_column("address.city", "string")``.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        data_type : DataType or str
            A type, or its name, such as ``bigint`` or ``struct<a: int>``.
        comment : str, optional
            The comment of the column.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        SchemaError
            The table has a column of this name.
        ColumnNotFoundError
            It has no such struct.

        Examples
        --------
        >>> table.alter.add_column("day", "date", comment="of the sale")
        >>> table.schema().get("day")
        Field(day, PrimitiveType("date"), nullable=True, metadata={'comment': 'of the sale'})
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        metadata = {} if comment is None else {"comment": comment}
        self.table.adopt(operations.add_column(self.table.snapshot(), column, data_type, commit, metadata=metadata))

    def rename_column(
        self,
        column: str | Sequence[str],
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Rename a column, or a field of a struct. The table needs column mapping.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        name : str
            Its new name, without those of the structs that contain it.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        UnsupportedOperationError
            The files contain columns by the names of the table; the message names the property that changes this.
        SchemaError
            Another column has the name, or a constraint or generated column uses the old one.

        Examples
        --------
        >>> mapped.alter.rename_column("city", "town")
        >>> mapped.schema().names
        ['id', 'town', 'amount']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.rename_column(self.table.snapshot(), column, name, commit))

    def drop_column(
        self,
        column: str | Sequence[str | Sequence[str]],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a column, or several, or fields of structs. The table needs column mapping; files keep the values.

        Parameters
        ----------
        column : str or sequence
            One name, or several columns, each as its name or as its path.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        UnsupportedOperationError
            The files contain columns by the names of the table; the message names the property that changes this.
        SchemaError
            The partitioning, the clustering, a constraint or a generated column needs the column.

        Examples
        --------
        >>> mapped.alter.drop_column("city")
        >>> mapped.schema().names
        ['id', 'amount']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.drop_columns(self.table.snapshot(), column, commit))

    def move_column(
        self,
        column: str | Sequence[str],
        *,
        first: bool = False,
        after: str | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Move a column to the front of the table or of its struct, or after the column ``after`` beside it.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        first : bool
            Whether it becomes the first one.
        after : str, optional
            The column after which it is put, if it does not become the first one.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.move_column("amount", after="id")
        >>> table.schema().names
        ['id', 'amount', 'city']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.move_column(self.table.snapshot(), column, commit, first=first, after=after))

    def widen_type(
        self,
        column: str | Sequence[str],
        data_type: DataType | str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Change the type of a column to one that contains all its values; the table needs type widening.

        Parameters
        ----------
        column : str or sequence of str
            ``element``, ``key`` and ``value`` name the parts of lists and maps: ``items.element``.
        data_type : DataType or str
            A type, or its name, such as ``bigint``.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        TypeChangeError
            For a change that no feature of the table allows, or of a column that a constraint or generated column uses.

        Examples
        --------
        >>> mapped.alter.widen_type("id", "bigint")
        >>> mapped.schema().get("id").type
        PrimitiveType("long")
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.widen_type(self.table.snapshot(), column, data_type, commit))

    @properties_by_position("commit_properties", "post_commithook_properties")
    def set_column_metadata(
        self,
        column: str,
        metadata: dict[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set keys of a column's metadata; other keys stay.

        Parameters
        ----------
        column : str
            The column.
        metadata : dict of str to str
            Values by key.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        InvalidArgumentError, ArgumentInterfaceError
            For a key that begins with ``delta.``, which only table features set, and for what is no mapping.

        Examples
        --------
        >>> table.alter.set_column_metadata("amount", {"unit": "EUR"})
        >>> table.schema().get("amount").metadata
        {'unit': 'EUR'}
        """
        if not isinstance(metadata, Mapping):
            raise ArgumentInterfaceError(f"Found metadata as {type(metadata).__name__}, expected a mapping.")
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(
            operations.change_column_metadata(
                self.table.snapshot(), column, metadata, commit, operation="UPDATE FIELD METADATA"
            )
        )

    def set_column_comment(
        self,
        column: str | Sequence[str],
        comment: str | None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the comment of a column; None removes it.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        comment : str or None
            The comment of the column.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.set_column_comment("amount", "in euros")
        >>> table.schema().get("amount").metadata
        {'comment': 'in euros'}
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.change_column_metadata(self.table.snapshot(), column, {"comment": comment}, commit))

    def set_column_not_null(
        self,
        column: str | Sequence[str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Make a column NOT NULL, once every row was checked to have a value in it.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        ConstraintViolationError
            A row has no value there; the table stays as it was.
        ConcurrentAppendError
            Rows were added meanwhile, which were not checked.

        Examples
        --------
        >>> table.alter.set_column_not_null("id")
        >>> table.schema().get("id").nullable
        False
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.set_not_null(self.table.snapshot(), column, commit))

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        raise_if_nullable: bool = True,
    ) -> None:
        """Let a column be null.

        Parameters
        ----------
        column_name : str
            The column.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        raise_if_nullable : bool
            Whether a column that may be null already is an error.

        Raises
        ------
        SchemaError
            If the column may be null already.

        Examples
        --------
        >>> table.alter.set_column_not_null("id")
        >>> table.alter.drop_column_not_null("id")
        >>> table.schema().get("id").nullable
        True
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.drop_not_null(self.table.snapshot(), column_name, raise_if_nullable, commit))

    def set_default(
        self,
        column: str,
        expression: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the value of a column for later writes that leave the column out; rows that are there stay.

        Parameters
        ----------
        column : str or sequence of str
            The column.
        expression : str
            Spark SQL without columns; text is in quotes: ``"'new'"``.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.add_feature("allowColumnDefaults", allow_protocol_versions_increase=True)
        >>> table.alter.set_default("city", "'Oslo'")
        >>> write_deltalake(table, pa.table({"id": [4]}), mode="append")
        >>> table.to_pyarrow_table(columns=["city"], filters="id = 4").to_pydict()
        {'city': ['Oslo']}
        """
        self._run("set_default", commit_properties, post_commithook_properties, column, expression)

    def drop_default(
        self,
        column: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop the default of a column: writes that leave it out then write null.

        Parameters
        ----------
        column : str
            The column.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.add_feature("allowColumnDefaults", allow_protocol_versions_increase=True)
        >>> table.alter.set_default("city", "'Oslo'")
        >>> table.alter.drop_default("city")
        >>> table.schema().get("city").metadata
        {}
        """
        self._run("drop_default", commit_properties, post_commithook_properties, column)

    def cluster_by(
        self,
        columns: Sequence[str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the columns by which files are clustered from now on; an empty list ends clustering.

        Parameters
        ----------
        columns : sequence of str
            The clustering columns, dotted for fields of structs.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.cluster_by(["city"])
        >>> table.protocol().writer_features
        ['appendOnly', 'clustering', 'domainMetadata', 'invariants']
        """
        self._run("cluster_by", commit_properties, post_commithook_properties, columns)

    def sync_identity(self, column: str) -> None:
        """Have the next values of an identity column begin after all values that the rows contain.

        Parameters
        ----------
        column : str
            The identity column.

        Examples
        --------
        >>> identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
        >>> schema = Schema([Field("id", "long", metadata=identity), Field("city", "string")])
        >>> numbered = DeltaTable.create("numbered", schema)
        >>> write_deltalake(numbered, pa.table({"id": [100], "city": ["Oslo"]}), mode="append")
        >>> numbered.alter.sync_identity("id")
        >>> numbered.schema().get("id").metadata["delta.identity.highWaterMark"]
        100
        """
        self.table.update_incremental()
        self.table.operation("sync_identity")(column)
        self.table.update_incremental()

    # --- constraints ---

    @properties_by_position("post_commithook_properties", "commit_properties")
    def add_constraint(
        self,
        constraints: dict[str, str],
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add CHECK constraints, Spark SQL by name, once every row was checked to fulfil them.

        Parameters
        ----------
        constraints : dict of str to str
            Spark SQL by the name of the constraint.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        ConstraintViolationError
            A row breaks one of them; the table stays as it was.

        Examples
        --------
        >>> table.alter.add_constraint({"positive": "amount > 0"})
        >>> table.metadata().configuration
        {'delta.constraints.positive': 'amount > 0'}
        """
        self._run("add_constraint", commit_properties, post_commithook_properties, constraints)

    @properties_by_position("post_commithook_properties", "commit_properties")
    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a CHECK constraint by its name; case does not count.

        Parameters
        ----------
        name : str
            The constraint.
        raise_if_not_exists : bool
            Whether a constraint that the table does not have is an error.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.add_constraint({"positive": "amount > 0"})
        >>> table.alter.drop_constraint("positive")
        >>> table.metadata().configuration
        {}
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.update_incremental()
        try:
            drop = self.table.operation("drop_constraint")
        except UnsupportedOperationError:
            if raise_if_not_exists:
                raise
            return  # a table without the feature has no constraints
        drop(name, raise_if_not_exists, **commit)
        self.table.update_incremental()

    # --- the table ---

    @properties_by_position("commit_properties", "post_commithook_properties")
    def add_feature(
        self,
        feature: str | Sequence[str],
        allow_protocol_versions_increase: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add table features, with those that they need.

        Parameters
        ----------
        feature : str or sequence of str
            Names of the protocol, such as ``TableFeatures`` has them.
        allow_protocol_versions_increase : bool
            Whether the reader or writer version may rise, which locks out older programs.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.add_feature("deletionVectors", allow_protocol_versions_increase=True)
        >>> table.protocol().reader_features
        ['deletionVectors']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        given = feature if isinstance(feature, (list, tuple, set)) else [feature]
        names = [_feature_name(f) for f in given]
        self.table.adopt(
            operations.add_features(
                self.table.snapshot(), names, commit, allow_higher_versions=allow_protocol_versions_increase
            )
        )

    def drop_feature(
        self,
        feature: str,
        *,
        truncate_history: bool = False,
        protect_history: bool = True,
        dry_run: bool = False,
        progress: Callable[[str], None] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> list[str]:
        """Remove a table feature: first what it left in metadata and files, then its name from the protocol.

        Rows stay as they are; files with deletion vectors, mapped columns or older types are written again. Several
        commits are made, and the table reads as before after each: if the call is interrupted, call it again.

        Parameters
        ----------
        feature : str
            The protocol's name.
        truncate_history : bool
            Drop a feature that readers need only if no version in the log uses it. Otherwise the feature
            ``checkpointProtection`` is added, which keeps checkpoints that readers without the dropped feature start
            from.
        protect_history : bool
            False: that feature is not added. The feature is dropped when ``delta.logRetentionDuration`` has passed, and
            the log has no version any more that uses it; the call before removes what it left, and fails.
        dry_run : bool
            Only check and return the steps.
        progress : function(str), optional
            Called with a description of each step before it begins.
        commit_properties : CommitProperties, optional
            Custom metadata of the commits, and application versions of the last one.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.

        Returns
        -------
        list of str
            Descriptions of the steps.

        Examples
        --------
        >>> table.alter.cluster_by(["city"])
        >>> table.alter.drop_feature("clustering", dry_run=True)
        ['remove domains delta.clustering', 'remove clustering from the protocol']
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        options = operations.DropFeatureOptions(truncate_history, protect_history, dry_run, progress, commit)
        dropped = operations.drop_feature(self.table.snapshot(), feature, options)
        self.table.adopt(dropped.snapshot)
        return list(dropped.steps)

    @properties_by_position("commit_properties", "post_commithook_properties")
    def set_table_properties(
        self,
        properties: dict[str, str],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set table properties, and add the features that they need.

        Parameters
        ----------
        properties : dict of str to str
            ``delta.feature.X`` = ``supported`` adds the feature X.
        raise_if_not_exists : bool
            Whether a name that begins with ``delta.`` and is not known is rejected; other names are your own.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.set_table_properties({"delta.appendOnly": "true", "owner": "sales"})
        >>> table.metadata().configuration
        {'delta.appendOnly': 'true', 'owner': 'sales'}
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(
            operations.set_properties(self.table.snapshot(), properties, commit, known_only=raise_if_not_exists)
        )

    def unset_table_properties(
        self,
        names: str | Sequence[str],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove table properties; those that features need stay supported, but are no longer active.

        Parameters
        ----------
        names : str or sequence of str
            Their names; the case of those that begin with ``delta.`` does not count.
        raise_if_not_exists : bool
            Whether a property that the table does not have is an error.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.set_table_properties({"owner": "sales"})
        >>> table.alter.unset_table_properties("owner")
        >>> table.metadata().configuration
        {}
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        wanted = [names] if isinstance(names, str) else names
        self.table.adopt(
            operations.unset_properties(self.table.snapshot(), wanted, commit, if_exists=not raise_if_not_exists)
        )

    @properties_by_position("commit_properties", "post_commithook_properties")
    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the name of the table.

        Parameters
        ----------
        name : str
            The new name.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.set_table_name("sales")
        >>> table.metadata().name
        'sales'
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.set_table_texts(self.table.snapshot(), {"name": name}, commit))

    @properties_by_position("commit_properties", "post_commithook_properties")
    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the description of the table.

        Parameters
        ----------
        description : str
            The new description.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Examples
        --------
        >>> table.alter.set_table_description("Sales by city")
        >>> table.metadata().description
        'Sales by city'
        """
        commit = commit_arguments(commit_properties, post_commithook_properties)
        self.table.adopt(operations.set_table_texts(self.table.snapshot(), {"description": description}, commit))

    def _run(
        self, name: str, commit: CommitProperties | None, post: PostCommitHookProperties | None, *arguments: Any
    ) -> None:
        """Run a feature's own operation on the latest version."""
        options = commit_arguments(commit, post)
        self.table.update_incremental()
        self.table.operation(name)(*arguments, **options)
        self.table.update_incremental()
