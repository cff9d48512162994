"""The operation that clusters files: which are rewritten together, and the tags of files clustered together.

Files that one run ordered together are a cube: they have the tags ``ZCUBE_ID`` and ``ZCUBE_ZORDER_BY``, as delta-spark
writes and reads them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.api import (
    Optimized,
    OptimizeOptions,
    Snapshot,
    UnsupportedOperationError,
    decode_json,
    optimize_table,
    parse_columns,
)
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, int64_values, is_valid, one_array
from delta_plugins.clustering.logic import check_columns, clustering_columns, logical_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PROVIDER", "choose_files", "cluster"]

#: The clustering implementation that delta-spark's files name too, which may therefore be clustered by both.
PROVIDER = "liquid"
ID_TAG = "ZCUBE_ID"
COLUMNS_TAG = "ZCUBE_ZORDER_BY"
#: A cube of this many bytes is good enough; smaller ones are clustered again with new files, as by delta-spark.
FULL_CUBE_BYTES = 100 << 30
#: Files are clustered together up to this many bytes.
CUBE_BYTES = 150 << 30


def cluster(
    source: Any, options: OptimizeOptions | None = None, *, full: bool = False, full_cube_bytes: int = FULL_CUBE_BYTES
) -> Optimized:
    """Order rows by the clustering columns, along a Hilbert curve, in files that are not yet clustered well enough.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table.
    options : OptimizeOptions, optional
        Sizes and limits; its choice of files and columns is replaced.
    full : bool
        Write files that are clustered by other columns, or another implementation, again too.
    full_cube_bytes : int
        Files that were clustered together and have this many bytes stay as they are.

    Raises
    ------
    UnsupportedOperationError
        The table has no clustering columns.
    SchemaError
        A clustering column is not a column of the table.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    columns = logical_columns(snapshot.state)
    if not columns:
        raise UnsupportedOperationError(
            "The table has no clustering columns; set them with table.operation('cluster_by')(columns) first."
        )
    if len(columns) < len(clustering_columns(snapshot.state)):
        check_columns(snapshot.state, None)
    own = replace(
        options or OptimizeOptions(),
        predicate=None,
        purge=False,
        order="hilbert",
        order_by=columns,
        choose=lambda files: choose_files(files, columns, full, full_cube_bytes),
        describe=lambda adds: _tagged(adds, columns),
        parameters={"clusterBy": json.dumps(list(columns)), "isFull": full},
    )
    return optimize_table(snapshot, own)


def choose_files(
    files: pa.Table, columns: Sequence[str], full: bool = False, full_cube_bytes: int = FULL_CUBE_BYTES
) -> list[NDArray[np.int64]]:
    """Return the numbers of the files to cluster, those of each new cube by themselves.

    Unclustered files and cubes that are too small are clustered. A single cube with no file beside it stays, and so
    do files that other columns or another implementation cluster, unless ``full``.

    Parameters
    ----------
    files : pyarrow.Table
        Live files, with ``clusteringProvider``, ``tags`` and ``size``.
    columns : sequence of str
        The clustering columns, by logical names.
    full : bool
        Whether files of other columns and implementations are clustered again.
    full_cube_bytes : int
        The bytes of a cube that stays.
    """
    cubes, is_foreign = _cubes(files, columns)
    sizes = int64_values(files.column("size"))
    weights = np.bincount(cubes + 1, weights=sizes)
    is_loose = cubes < 0
    is_small = weights[cubes + 1] < full_cube_bytes
    chosen = (is_loose | is_small) & ~is_foreign
    is_single = not (chosen & is_loose).any() and len(np.unique(cubes[chosen])) < 2
    if full and is_foreign.any():
        chosen |= is_foreign
    elif is_single:
        return []
    numbers = np.flatnonzero(chosen)
    order = numbers[np.argsort(cubes[numbers], kind="stable")]
    ends = np.cumsum(sizes[order]) // CUBE_BYTES
    return [part for part in np.split(order, np.flatnonzero(np.diff(ends)) + 1) if len(part)]


def _cubes(files: pa.Table, columns: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a number for the cube of each file, -1 for none, and whether it is clustered in another way."""
    provider = one_array(files.column("clusteringProvider")).dictionary_encode()
    names = [name == PROVIDER for name in provider.dictionary.to_pylist()]
    is_foreign = ~np.array([*names, True])[int64_values(_codes(provider, len(names)))]
    tags = one_array(files.column("tags"))
    ids, own_columns = (_tag(tags, name) for name in (ID_TAG, COLUMNS_TAG))
    cubes = int64_values(_codes(ids, -1))
    matches = [_names(text) == [_parts(c) for c in columns] for text in own_columns.dictionary.to_pylist()]
    has_columns = is_valid(own_columns)
    is_other = ~np.array([*matches, True])[int64_values(_codes(own_columns, len(matches)))]
    # without both tags a file is in no cube
    return np.where(has_columns, cubes, -1), is_foreign | (is_other & (cubes >= 0))


def _codes(encoded: Any, missing: int) -> Any:
    return encoded.indices.cast(pa.int64()).fill_null(missing)


def _tag(tags: Any, name: str) -> Any:
    """Return a tag's values, one a file, dictionary-encoded; null for files without it."""
    return pc.map_lookup(tags, query_key=name, occurrence="last").dictionary_encode()


def _names(text: str | None) -> list[Any] | None:
    try:
        found = decode_json(text or "")
    except ValueError:
        return None
    return [_parts(n) for n in found] if isinstance(found, list) and all(isinstance(n, str) for n in found) else None


def _parts(name: str) -> Any:
    """Return the parts of a dotted name; names that differ in backticks alone are equal."""
    try:
        return parse_columns(name)
    except ValueError:
        return name


def _tagged(adds: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return files of one new cube."""
    tags = [(ID_TAG, str(uuid.uuid4())), (COLUMNS_TAG, json.dumps(list(columns), separators=(",", ":")))]
    count = adds.num_rows
    own = {
        "tags": array_of([tags] * count, adds.schema.field("tags").type),
        "clusteringProvider": pa.repeat(PROVIDER, count),
    }
    for name, values in own.items():
        adds = adds.set_column(adds.schema.get_field_index(name), adds.schema.field(name), values)
    return adds
