"""The clauses of a MERGE as users add them. Light: the public API imports it at start-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

from msgspec import Struct

from delta_core import handles
from delta_core.errors import ArgumentTypeError

__all__ = ["Action", "Kind", "MergeClause", "TableMerger"]

Kind = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "delete", "insert"]


class MergeClause(Struct, frozen=True):
    """One clause as it was given.

    Parameters
    ----------
    kind : str
        Which rows: ``matched``, ``not_matched`` of the source, or ``not_matched_by_source``.
    action : str
        ``update``, ``delete`` or ``insert``.
    predicate : str or Expression, optional
        The clause applies to rows for which it is true.
    updates : Mapping of str to (str or Expression), optional
        Column of the table to value; None: every column of the source but ``except_columns``.
    except_columns : tuple of str
        Columns that are not assigned.
    """

    kind: Kind
    action: Action
    predicate: Any = None
    updates: Mapping[str, Any] | None = None
    except_columns: tuple[str, ...] = ()

    @property
    def is_star(self) -> bool:
        """Whether it assigns the columns of the source."""
        return self.updates is None and self.action != "delete"


class TableMerger:
    """A merge that is being put together; `DeltaTable.merge` returns it.

    Each method adds a clause and returns the object, `execute` runs the merge. Of the clauses of one kind, the first
    one applies whose ``predicate`` is true for a row. Values and predicates are Spark SQL over the columns of the table
    and the source, as ``target.x`` and ``source.x`` or with the aliases given to `DeltaTable.merge`; a name that only
    one of them has needs no alias.

    Parameters
    ----------
    builder : function(DeltaTable, tuple of MergeClause) -> dict
        Runs the merge and returns its metrics.
    table : DeltaTable
        The table to merge into.

    Examples
    --------
    >>> merge = table.merge(pa.table({"id": [1]}), "target.id = source.id")
    >>> merge.when_matched_delete().execute()["num_target_rows_deleted"]
    1
    """

    def __init__(self, builder: Callable[[Any, tuple[MergeClause, ...]], dict[str, Any]], table: Any) -> None:
        self._builder, self._table = builder, table
        self._clauses: list[MergeClause] = []

    def __repr__(self) -> str:
        clauses = ", ".join(f"{c.kind.replace('_', ' ')} {c.action}" for c in self._clauses) or "no clauses"
        return f"TableMerger({self._table!r}: {clauses})"

    def _repr_html_(self) -> str:
        rows = [
            (c.kind.replace("_", " "), "" if c.predicate is None else str(c.predicate), c.action, _assigned(c))
            for c in self._clauses
        ]
        return handles.page(f"Merge into {self._table!r}", {}, handles.grid(("rows", "if", "do", "values"), rows))

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """Update rows that match: ``updates`` maps columns of the table, or fields of structs, to values.

        Parameters
        ----------
        updates : Mapping of str to str
            Values (Spark SQL) by column.
        predicate : str, optional
            Only rows for which it is true (Spark SQL).

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [1, 2], "amount": [5.0, 50.0]}), "target.id = source.id")
        >>> merge = merge.when_matched_update({"amount": "source.amount"}, predicate="source.amount > 9")
        >>> merge.execute()["num_target_rows_updated"]
        1
        """
        return self._add("matched", "update", predicate, _assignments(updates))

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Sequence[str] | None = None) -> Self:
        """Set the columns of rows that match to those of the source, but ``except_cols``; others stay as they are.

        Columns that only the source has are ignored, unless the merge adds them to the table.

        Parameters
        ----------
        predicate : str, optional
            Only rows for which it is true (Spark SQL).
        except_cols : sequence of str, optional
            Columns that keep their values.

        Examples
        --------
        >>> source = pa.table({"id": [1], "amount": [5.0]})
        >>> merge = table.merge(source, "target.id = source.id").when_matched_update_all(except_cols=["id"])
        >>> merge.execute()["num_target_rows_updated"]
        1
        """
        return self._add("matched", "update", predicate, None, except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> Self:
        """Delete rows that match.

        Parameters
        ----------
        predicate : str, optional
            Only rows for which it is true (Spark SQL).

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [1, 2]}), "target.id = source.id")
        >>> merge.when_matched_delete(predicate="target.city = 'Oslo'").execute()["num_target_rows_deleted"]
        1
        """
        return self._add("matched", "delete", predicate, None)

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """Insert rows of the source that match no row; columns not in ``updates`` are filled as in any write.

        Parameters
        ----------
        updates : Mapping of str to str
            Values (Spark SQL over the source) by column.
        predicate : str, optional
            Only rows for which it is true (Spark SQL).

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [3, 4]}), "target.id = source.id")
        >>> merge = merge.when_not_matched_insert({"id": "source.id", "amount": "0.0"})
        >>> merge.execute()["num_target_rows_inserted"]
        1
        """
        return self._add("not_matched", "insert", predicate, _assignments(updates))

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Insert rows of the source that match no row, with all its columns but ``except_cols``.

        Parameters
        ----------
        predicate : str, optional
            Only rows for which it is true (Spark SQL).
        except_cols : sequence of str, optional
            Columns that are filled as if the source lacked them.

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [3, 4]}), "target.id = source.id")
        >>> merge.when_not_matched_insert_all().execute()["num_target_rows_inserted"]
        1
        """
        return self._add("not_matched", "insert", predicate, None, except_cols)

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """Update rows of the table that no row of the source matches.

        Parameters
        ----------
        updates : Mapping of str to str
            Values (Spark SQL over the table) by column.
        predicate : str, optional
            Only rows for which it is true (Spark SQL).

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [1]}), "target.id = source.id")
        >>> merge = merge.when_not_matched_by_source_update({"amount": "0.0"}, predicate="target.city = 'Oslo'")
        >>> merge.execute()["num_target_rows_updated"]
        1
        """
        return self._add("not_matched_by_source", "update", predicate, _assignments(updates))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Self:
        """Delete rows of the table that no row of the source matches.

        Parameters
        ----------
        predicate : str, optional
            Only rows for which it is true (Spark SQL).

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [1]}), "target.id = source.id")
        >>> merge.when_not_matched_by_source_delete().execute()["num_target_rows_deleted"]
        2
        """
        return self._add("not_matched_by_source", "delete", predicate, None)

    def execute(self) -> dict[str, Any]:
        """Run the merge and commit it; the table object then has the new version.

        If no row changes, nothing is committed; so it is without clauses.

        Returns
        -------
        dict
            ``num_source_rows``, ``num_target_rows_inserted``, ``_updated``, ``_deleted`` and ``_copied`` (unchanged
            rows of files that were rewritten), ``num_output_rows``, ``num_target_files_scanned``,
            ``_skipped_during_scan``, ``_added`` and ``_removed``, ``execution_time_ms``, ``scan_time_ms``,
            ``rewrite_time_ms`` and others, named as in the commit.

        Raises
        ------
        ExpressionError, ColumnNotFoundError, SchemaMismatchError
            A condition or a value does not fit the table and the source.
        MultipleMatchesError
            Several rows of the source match one row of the table.
        ConstraintViolationError
            A row that is written breaks a constraint of the table.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.

        Examples
        --------
        >>> merge = table.merge(pa.table({"id": [1, 9]}), "target.id = source.id")
        >>> metrics = merge.when_matched_delete().when_not_matched_insert_all().execute()
        >>> metrics["num_target_rows_deleted"], metrics["num_target_rows_inserted"]
        (1, 1)
        """
        return self._builder(self._table, tuple(self._clauses))

    def _add(
        self,
        kind: Kind,
        action: Action,
        predicate: Any,
        updates: Mapping[str, Any] | None,
        except_columns: Sequence[str] | None = None,
    ) -> Self:
        if isinstance(except_columns, str):
            raise ArgumentTypeError(f"Found except_cols={except_columns!r}; expected a list of names.")
        self._clauses.append(MergeClause(kind, action, predicate, updates, tuple(except_columns or ())))
        return self


def _assignments(updates: object) -> Mapping[str, Any]:
    if not isinstance(updates, Mapping):
        raise ArgumentTypeError(f"Found updates as {type(updates).__name__}; expected a dict of column to value.")
    return updates


def _assigned(clause: MergeClause) -> str:
    """Return the assignments of a clause as a text."""
    if clause.updates is not None:
        return ", ".join(f"{name} = {value}" for name, value in clause.updates.items())
    left = f" but {', '.join(clause.except_columns)}" if clause.except_columns else ""
    return f"the columns of the source{left}" if clause.is_star else ""
