"""``DeltaTable._table``: the methods of `deltalake`'s inner object that public libraries call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.kernel.log.paths import decode_paths

if TYPE_CHECKING:
    from delta_core.expressions.filters import PredicateLike
    from delta_core.kernel.commit.options import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction

__all__ = ["RawTable"]


class RawTable:
    """A view of a table; it moves with it.

    Parameters
    ----------
    table : DeltaTable
        The table.
    """

    def __init__(self, table: Any) -> None:
        self._of = table

    def __getattr__(self, name: str) -> Any:
        offered = sorted(n for n in vars(type(self)) if not n.startswith("_"))
        raise AttributeError(
            f"DeltaTable._table has no {name!r} here: it is deltalake's own, and has {', '.join(offered)} for "
            "libraries that call them. Use the methods of DeltaTable."
        )

    def version(self) -> int:
        """Return the table's version."""
        version: int = self._of.version()
        return version

    def table_uri(self) -> str:
        """Return the table's place."""
        uri: str = self._of.table_uri
        return uri

    def update_incremental(self) -> None:
        """Move the table to the latest version."""
        self._of.update_incremental()

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """Return a row for each data file, as `DeltaTable.get_add_actions` does.

        Parameters
        ----------
        flatten : bool
            A column for each value instead of structs.
        """
        return self._of.get_add_actions(flatten)

    def get_add_file_sizes(self) -> dict[str, int]:
        """Return the bytes of each data file by its path from the table's root, not encoded; others by their URIs."""
        files = self._of.snapshot().files.columns(["path", "size"])
        return dict(zip(decode_paths(files.column("path")), files.column("size").to_pylist(), strict=True))

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        partition_by: Sequence[str],
        schema: Any,
        partition_filters: PredicateLike | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit files that were written elsewhere, as `DeltaTable.create_write_transaction` does.

        Parameters
        ----------
        actions, mode, partition_by, schema, partition_filters, commit_properties, post_commithook_properties
            As there; the order is deltalake's.
        """
        self._of.create_write_transaction(
            actions,
            mode,
            schema,
            list(partition_by),
            partition_filters,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
