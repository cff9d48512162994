"""Make a table of a folder of Parquet files, in place: one commit names them; no data is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.records import WALKED_FILE, FolderFiles
from delta_core.errors import (
    InvalidArgumentError,
    IrregularFileError,
    SchemaError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.options import AddAction
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.encodings import check_not_encoded
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.files import FooterStatistics
from delta_core.kernel.write.names import encode_path, local_uri
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, int64_values, number_array, one_array, scalar_of, strings_of
from delta_core.operations.create import stage_definition
from delta_core.operations.footers import ManyFooters
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.operations.register import check_partitions, register_files
from delta_core.operations.sink_log import files_of_sink
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.progress_bars import shows_progress
from delta_core.schema.evolution import merge_schemas
from delta_core.schema.fields import NOT_IN_NAMES, Schema, format_path, walk
from delta_core.schema.types import ArrayType, DataType, Field, MapType, StructType, spark_name

__all__ = ["ConvertOptions", "Converted", "convert_folder"]

_log = logging.getLogger(__name__)
#: How the names of Parquet files end.
_PARQUET = (".parquet", ".parq", ".pq")
_PARQUET_NAME = r"\.(parquet|parq|pq)$"
#: Files whose names do not begin as hidden ones.
_SHOWN = r"(^|/)[^/_.][^/]*$"
#: Paths that the log percent-encodes.
_UNUSUAL = r"[^A-Za-z0-9/=\-_.~!$&'()*+,;:@]"
#: The text of null in the name of a partition's folder.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_OPERATION = "CONVERT"
#: Operations that neither write nor remove data files of the table.
_HARMLESS = frozenset(
    {_OPERATION, "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "CHANGE COLUMN"}
)
#: The types that Delta lacks, by Arrow's names.
_LACKING = {"uint": "unsigned integers", "[ns": "nanoseconds", "halffloat": "floats of 16 bits"}


class ConvertOptions(Struct, frozen=True):
    """How a folder becomes a table.

    Parameters
    ----------
    partition_by : StructType, optional
        The partition columns with their types, in the order of the folders.
    strategy : str, optional
        ``hive``: folders are named ``column=value``. ``directory``: by the value alone.
    statistics : bool
        Whether bounds and counts of nulls are taken from the files' footers; the number of rows always is.
    name, description : str, optional
        Texts of the table's metadata.
    properties : Mapping
        Table properties.
    commit : Mapping
        Arguments of `register_files` on how to commit.
    dry_run : bool
        Whether everything is checked, and nothing committed.
    progress : function(OperationProgress), optional
        Called while footers are read (step ``find``).
    null_on_failed_cast : bool
        Whether a value of a partition becomes null that is none of its column's type; otherwise it is an error.
    use_sink_log : bool
        Whether the log of a streaming query of Spark that wrote the folder decides which files are taken.
    """

    partition_by: StructType | None = None
    strategy: Literal["hive", "directory"] | None = None
    statistics: bool = True
    name: str | None = None
    description: str | None = None
    properties: Mapping[str, str | None] = {}
    commit: Mapping[str, Any] = {}
    dry_run: bool = False
    progress: Callable[[OperationProgress], None] | None = None
    null_on_failed_cast: bool = False
    use_sink_log: bool = True


class Converted(Struct, frozen=True):
    """The result of a conversion.

    Parameters
    ----------
    snapshot : Snapshot or None
        The table; as it was if nothing is new, or with ``dry_run``.
    num_files : int
        Files that it got, or would get.
    """

    snapshot: Snapshot | None
    num_files: int


@shows_progress
def convert_folder(
    context: TableContext, base: Snapshot | None, options: ConvertOptions, *, into: TableContext | None = None
) -> Converted:
    """Commit the Parquet files of a folder as a table's first version, or those that are new in it.

    Files and folders whose names begin with ``_`` or ``.`` are left out, unless the folder is that of a partition, and
    so are files whose names do not end as those of Parquet files. Symbolic links to Parquet files are taken under their
    own names. Partition values are recorded as writers spell them, whatever the spelling of the folders.

    Parameters
    ----------
    context : TableContext
        Where the folder is.
    base : Snapshot, optional
        The table that an earlier conversion made: files that it does not have yet are added.
    options : ConvertOptions
        The partition columns, and what the table is to be.
    into : TableContext, optional
        Where the log is to be, whose files then have absolute paths; beside the files unless given.

    Raises
    ------
    InvalidArgumentError
        If the folder has no Parquet files, its partition folders are not those of ``partition_by``, a symbolic link
        leads nowhere, to a folder or to a file that is taken already, or the name of a file is no UTF-8.
    SchemaError
        If a column has a type that no Delta type stores, or a name that no table has.
    SchemaMismatchError
        If two files have columns of one name but not of one type or spelling.
    DataFileError
        If a file is no Parquet file, or a damaged one.
    UnsupportedOperationError
        If the table was changed by other operations than conversions: a file that is new may then be what a failed
        write left.
    TableExistsError
        If a table of another format is there.
    """
    if base is not None:
        _check_only_converted(base)
    place = into or context
    transaction = Transaction(place, base, _OPERATION)
    by = StructType(()) if options.partition_by is None else options.partition_by
    if base is not None and options.partition_by is None:
        by = StructType([f for f in base.schema.members if f.name in base.state.partition_columns])
    strategy = options.strategy or "hive"
    files = _parquet_files(context, by, strategy, options.use_sink_log)
    if base is not None:
        known = decode_paths(base.files.columns(["path"]).column("path"))
        files = files.filter(pc.invert(pc.is_in(files.column("path"), value_set=strings_of(known))))
        if not files.num_rows:
            return Converted(base, 0)
    if not files.num_rows:
        why = "" if base is not None else context.log.why_no_table()
        raise InvalidArgumentError(
            f"There is no Parquet file in {context.log.uri}: none with a name that ends in {', '.join(_PARQUET)}."
            + (f" {why}" if why and LOG_DIRECTORY not in why else ""),
            path=context.log.uri,
        )
    folders, partitions = _partitions(files, by, strategy)
    paths: list[str] = files.column("path").to_pylist()
    report = ProgressReport(options.progress)
    report.begin("find", files.column("size"))
    footers = ManyFooters(context.log.engine, one_array(files.column("path")))
    start = Schema(()) if base is None else Schema([f for f in base.schema.members if by.get(f.name) is None])
    schema = _joined_schema(context, footers, paths, start, by)
    if base is None:
        _check_spelling(context, schema)
    transaction.parameters.update(
        numFiles=len(paths), partitionedBy=compact_json([f.name for f in by.members]), collectStats=options.statistics
    )
    if base is None:
        stage_definition(
            transaction,
            schema,
            partition_by=[f.name for f in by.members],
            name=options.name,
            description=options.description,
            properties=options.properties,
        )
    else:
        transaction.read(None, base.files.columns(["path", "dvId"]))
        if schema != base.schema:
            transaction.set_metadata(replace(base.metadata, schema_string=StructType(schema.members).to_json()))
    _check_names(transaction)
    check_not_encoded(
        transaction.table,
        "Files can't become those of the table as they are",
        "Convert without the encoding, or write the rows of the files to a new table (write_deltalake).",
    )
    normal = check_partitions(transaction, partitions, options.null_on_failed_cast)
    transaction.add_files(
        pa.table(
            {
                "path": _encoded(files.column("path")) if into is None else _absolute(context, paths),
                "partitionValues": array_of(normal, FILE_COLUMNS["partitionValues"]).take(folders),
                "size": files.column("size"),
                "modificationTime": pc.fill_null(files.column("modified_ms"), 0),
                "dataChange": pa.repeat(scalar_of(True, pa.bool_()), len(paths)),
                "stats": footers.statistics(
                    FooterStatistics.of(transaction.plan, statistics=options.statistics), report.add
                ),
                "fresh": pa.repeat(scalar_of(True, pa.bool_()), len(paths)),
            }
        )
    )
    transaction.metrics.update(numConvertedFiles=len(paths), numFiles=len(paths))
    if options.dry_run:
        return Converted(base, len(paths))
    done = register_files(place, base, [], [], operation=_OPERATION, transaction=transaction, **options.commit)
    return Converted(done.snapshot, len(paths))


def _check_only_converted(base: Snapshot) -> None:
    infos = base.history()
    first = infos[-1] if infos else {}
    other = next((i for i in infos if i.get("operation") not in _HARMLESS), None)
    if first.get("version") == 0 and other is None:
        return
    why = (
        f"its version {other.get('version')} is the operation {other.get('operation')}"
        if other is not None
        else f"its log begins at version {first.get('version')}"
    )
    raise UnsupportedOperationError(
        f"New files of {base.uri} can't be distinguished from those that writes have removed or failed to commit: "
        f"{why}, and only a table that conversions alone have changed is converted again. Add files by name with "
        "table.create_write_transaction(...), or append their rows.",
        operation="convert_to_deltalake",
    )


# --- files ---------------------------------------------------------------------------------


def _parquet_files(context: TableContext, by: StructType, strategy: str, use_sink_log: bool) -> pa.Table:
    """Return the Parquet files below the root, columns of `WALKED_FILE`, by path; those that a log names, if used."""

    def skip(folder: str) -> bool:
        above, _, name = folder.rpartition("/")
        if name == LOG_DIRECTORY and above:
            raise InvalidArgumentError(
                f"{above} in {context.log.uri} is a table of its own: its files may be deleted, or have deleted rows. "
                "Move it out.",
                path=above,
            )
        is_partition = strategy == "hive" and "=" in name and by.get(unquote(name.partition("=")[0])) is not None
        return name.startswith(("_", ".")) and not is_partition and name != _NULL

    parts = list(context.log.engine.storage.walk(skip))
    files = pa.Table.from_batches([part.files for part in parts], WALKED_FILE)
    files = _with_links(context, files, parts)
    shown = files.filter(pc.match_substring_regex(files.column("path"), _SHOWN))
    found = shown.filter(pc.match_substring_regex(shown.column("path"), _PARQUET_NAME, ignore_case=True))
    if shown.num_rows > found.num_rows:
        left_out = shown.num_rows - found.num_rows
        _log.info("Left out of %s: %d files whose names are not those of Parquet files", context.log.uri, left_out)
    found = found.sort_by("path").combine_chunks()
    named = files_of_sink(context.log.engine.storage, found.column("path").to_pylist()) if use_sink_log else None
    return found if named is None else found.filter(named)


def _with_links(context: TableContext, files: pa.Table, parts: Sequence[FolderFiles]) -> pa.Table:
    """Return the files with those that symbolic links lead to, under the names of the links, as Spark takes them.

    Raises
    ------
    InvalidArgumentError
        For a link that leads nowhere, to a folder, or to a file that is taken already, and for a name that is no UTF-8.
    IrregularFileError
        For a pipe, a socket or a device with the name of a Parquet file.
    """
    where, storage = context.log.uri, context.log.engine.storage
    unnamed = next((name for part in parts for name in part.unnamed if _is_parquet(name)), None)
    if unnamed is not None:
        raise InvalidArgumentError(
            f"The name of {unnamed!a} in {where} is no UTF-8, in which logs spell paths. Rename the file.", path=unnamed
        )
    irregular = next((name for part in parts for name in part.irregular if _is_parquet(name)), None)
    if irregular is not None:
        raise IrregularFileError.of(irregular)
    folder = next((link for part in parts for link in part.links_to_folders if _is_shown(link)), None)
    if folder is not None:
        raise InvalidArgumentError(
            f"{folder} in {where} is a symbolic link to a folder, whose files a conversion does not take. Move the "
            "folder here, or delete the link.",
            path=folder,
        )
    links = [link for part in parts for link in part.links_to_files if _is_parquet(link)]
    if not links:
        return files
    paths = files.column("path").to_pylist()
    seen = dict(zip(storage.identify(paths), paths, strict=True))
    for path in links:
        try:
            (found,) = storage.identify([path])
        except FileNotFoundError as e:
            raise InvalidArgumentError(
                f"{path} in {where} is a symbolic link to a file that is not there. Delete the link, or restore the "
                "file.",
                path=path,
            ) from e
        other = seen.setdefault(found, path)
        if other != path:
            raise InvalidArgumentError(
                f"{path} in {where} is a symbolic link to the file that {other} is too: its rows would be in the table "
                "twice. Delete the link.",
                path=path,
            )
    stats = storage.stat(links)
    columns = [strings_of(links), *(array_of([s[i] for s in stats], pa.int64()) for i in (0, 1))]
    return pa.concat_tables([files, pa.Table.from_arrays(columns, schema=WALKED_FILE)])


def _is_shown(path: str) -> bool:
    return not path.rpartition("/")[2].startswith(("_", "."))


def _is_parquet(path: str) -> bool:
    return _is_shown(path) and path.lower().endswith(_PARQUET)


def _partitions(files: pa.Table, by: StructType, strategy: str) -> tuple[pa.Array, list[AddAction]]:
    """Return the number of each file's folder, and of each folder a file with its partition values."""
    folders = one_array(pc.replace_substring_regex(files.column("path"), "/?[^/]*$", "")).dictionary_encode()
    numbers = int64_values(folders.indices)
    _, first = np.unique(numbers, return_index=True)
    paths = files.column("path").take(number_array(first)).to_pylist()
    found = [AddAction(path, 0, _partition_values(path, by, strategy), 0, True) for path in paths]
    return folders.indices, found


def _encoded(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return paths as the log spells them."""
    unusual = pc.match_substring_regex(paths, _UNUSUAL)
    if not pc.any(unusual).as_py():
        return paths
    return pa.chunked_array([strings_of([encode_path(path) for path in paths.to_pylist()])])


def _absolute(context: TableContext, paths: Sequence[str]) -> pa.Array:
    """Return the URIs of files as a log elsewhere names them."""
    storage = context.log.engine.storage
    return strings_of([encode_path(local_uri(storage.uri(p))) for p in paths])


def _partition_values(path: str, by: StructType, strategy: str) -> dict[str, str | None]:
    folders = path.split("/")[:-1]
    names = [f.name for f in by.members]
    if strategy == "directory" and names:
        if len(folders) != len(names):
            raise InvalidArgumentError(
                f"{path} is in {len(folders)} folders, expected one for each of the partition columns "
                f"{', '.join(names)}.",
                path=path,
            )
        return {n: None if f == _NULL else unquote(f) for n, f in zip(names, folders, strict=True)}
    pairs = [f.partition("=") for f in folders if "=" in f]
    found = {unquote(key): None if value == _NULL else unquote(value) for key, _, value in pairs}
    if [unquote(key) for key, *_ in pairs] != names:
        columns = ", ".join(found) or "no column"
        raise InvalidArgumentError(
            f"{path} is partitioned by {columns}, expected {', '.join(names) or 'no column'}. Pass partition_by as a "
            "Schema of the partition columns in the order of the folders, with their types, and "
            'partition_strategy="hive" (on the command line --partition year=integer).',
            path=path,
        )
    return found


# --- schema --------------------------------------------------------------------------------


def _joined_schema(
    context: TableContext, footers: ManyFooters, paths: Sequence[str], start: Schema, by: StructType
) -> Schema:
    """Return the columns of all files, nullable, then the partition columns."""
    partitions = {f.name.lower() for f in by.members}
    schema, origin = start, "the table"
    for arrow, number in footers.schemas():
        path = paths[number]
        own = _file_schema(arrow, path, partitions)
        before, schema = schema, merge_schemas(schema, own, lambda *_: False)
        _check_same(before, own, schema, path, origin)
        origin = "files before it"
    if not schema.members:
        raise SchemaError(
            f"The files of {context.log.uri} have no column that does not partition them.", path=context.log.uri
        )
    return Schema([*schema.members, *(Field(f.name, f.type, True, {}) for f in by.members)])


def _file_schema(arrow: pa.Schema, path: str, partitions: set[str]) -> Schema:
    for f in arrow:
        lacking = next((what for part, what in _LACKING.items() if part in str(f.type)), None)
        if lacking is not None:
            raise SchemaError(
                f"Column {f.name!r} of {path} is {f.type}: Delta has no {lacking}. Write the file again with a type "
                "that Delta has.",
                path=path,
                column=f.name,
            )
    try:
        schema = Schema.from_arrow(arrow)
    except SchemaError as e:
        raise SchemaError(f"{path}: {e}", **{**e.facts, "path": path}) from e
    plain = _plain(StructType([f for f in schema.members if f.name.lower() not in partitions]))
    assert isinstance(plain, StructType)
    return Schema(plain.members)


def _plain(t: DataType) -> DataType:
    """Return a type with every part nullable and without the metadata that a file may have from elsewhere."""
    if isinstance(t, StructType):
        return StructType([Field(f.name, _plain(f.type), True, {}) for f in t.members])
    if isinstance(t, ArrayType):
        return ArrayType(_plain(t.element_type), True)
    if isinstance(t, MapType):
        return MapType(_plain(t.key_type), _plain(t.value_type), True)
    return t


def _check_same(before: Schema, own: Schema, merged: Schema, path: str, origin: str) -> None:
    """Reject columns that two files spell or type differently: readers find columns by their exact names."""
    types = dict(walk(merged))
    for place, field in walk(own):
        found = types.get(place)
        if found is None:
            raise SchemaMismatchError(
                f"{path} spells the column {format_path(place)} in another way than {origin}: names may not differ in "
                "case only.",
                path=path,
                column=format_path(place),
            )
        if not isinstance(found.type, StructType) and found.type != field.type:
            raise SchemaMismatchError(
                f"Column {format_path(place)} of {path} is {spark_name(field.type)}, and {spark_name(found.type)} in "
                f"{origin}. Write the file again with the same type, or leave it out of the folder.",
                path=path,
                column=format_path(place),
                found=str(field.type),
                expected=str(found.type),
            )


def _check_spelling(context: TableContext, schema: Schema) -> None:
    """Reject names that a table must not have: a conversion keeps the names of the files' columns."""
    for path, field in walk(schema):
        found = next((c for c in field.name if c in NOT_IN_NAMES), None)
        if found is not None:
            raise SchemaError(
                f"Column {format_path(path)} of the files has {found!r} in its name, and a conversion keeps the names "
                "of the files' columns. Write their rows to a table of its own instead (write_deltalake), with another "
                f"name there{context.registry.remedies('column_names')}.",
                column=format_path(path),
            )


def _check_names(transaction: Transaction[Snapshot]) -> None:
    table = transaction.table
    pairs = zip(table.schema.members, table.column_map.physical.members, strict=True)
    other = next((f.name for f, p in pairs if f.name != p.name), None)
    if other is not None:
        raise InvalidArgumentError(
            f"With these table properties the files' column {other!r} would have another name. Convert without them; "
            "the table's properties can be changed afterwards (table.alter.set_table_properties).",
            column=other,
        )
