"""The scripts: every public callable with forms of arguments, on kinds of tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.interop.deltalake_surface import values
from tests.interop.deltalake_surface.surface import Surface
from tests.interop.deltalake_surface.tables import KINDS

__all__ = ["Cell", "all_cells"]


@dataclass(frozen=True)
class Cell:
    """A script, whose last line is the value to describe, and the kind of table that ``uri`` is a copy of."""

    kind: str
    script: str

    @property
    def name(self) -> str:
        """The kind and the script in one text."""
        return f"{self.kind}: {self.script}"


def all_cells(surface: Surface) -> list[Cell]:
    """Return every script once, in a stable order."""
    generators = (
        _by_argument,
        _by_position,
        _by_property,
        _by_kind,
        _by_input,
        _by_type,
        _by_filter,
        _by_sql,
        _by_setting,
        _in_sequence,
        _of_types,
    )
    return list(dict.fromkeys(itertools.chain.from_iterable(g(surface) for g in generators)))


# --- from signatures ---


def _parameters(surface: Surface) -> Iterator[tuple[str, str, dict[str, str], list[str]]]:
    """Yield each callable with its call, the required arguments, and its parameters as listed."""
    for name, (call, required) in values.CALLS.items():
        yield name, call, required, surface[name] or []


def _places(name: str) -> list[str]:
    """Return the kinds of tables on which each argument of a callable is tried."""
    if name == "convert_to_deltalake":
        return ["files", "partitioned_files", "plain"]
    if name.startswith(("DeltaTable.load_cdf", "DeltaTable.restore", "DeltaTable.history")):
        return ["plain", "changes", "versions"]
    if name.startswith(
        ("DeltaTable.file_uris", "DeltaTable.partitions", "DeltaTable.to_pyarrow", "TableOptimizer", "write_deltalake")
    ):
        return ["plain", "partitioned"]
    if name == "TableAlterer.drop_column_not_null":
        return ["not_null"]
    if name == "TableAlterer.add_feature":
        return ["features"]
    if name.startswith(("DeltaTable.update", "DeltaTable.delete")):
        return ["plain", "partitioned"]
    return ["plain"]


def _ended(name: str, call: str) -> str:
    return f"{call}.execute()" if name == "DeltaTable.merge" or (name.startswith("TableMerger.when")) else call


def _written(name: str, call: str, arguments: dict[str, str], keyword: tuple[str, ...] = ()) -> str:
    text = ", ".join(f"{n}={v}" for n, v in arguments.items())
    whole = f"{call}({text})"
    if name == "DeltaTable.merge":
        return f"{whole}.when_matched_update_all().when_not_matched_insert_all().execute()"
    return _ended(name, whole)


def _by_argument(surface: Surface) -> Iterator[Cell]:
    for name, call, required, listed in _parameters(surface):
        for place in _places(name):
            yield Cell(place, _written(name, call, required))
            for parameter in (p.lstrip("*") for p in listed):
                if parameter in ("args", "kwargs"):
                    continue
                tried = values.VALUES.get(f"{name}.{parameter}", values.VALUES.get(parameter, ()))
                wrong = values.ANY[:2] if parameter.endswith("_properties") else values.ANY
                for value in dict.fromkeys((*tried, *(wrong if place == _places(name)[0] else ()))):
                    others = dict(required)
                    if parameter == "new_values":
                        del others["updates"]
                    yield Cell(place, _written(name, call, {**others, parameter: value}))
        for parameter in required:
            yield Cell("plain", _written(name, call, {n: v for n, v in required.items() if n != parameter}))
        yield Cell("plain", _written(name, call, {**required, "nonsense": "1"}))
        yield Cell("missing", _written(name, call, required))


_ARGUMENTS = {
    "commit_properties": "CommitProperties(custom_metadata={'who': 'me'})",
    "post_commithook_properties": "PostCommitHookProperties(create_checkpoint=False)",
}


def _by_position(surface: Surface) -> Iterator[Cell]:
    """Yield each call with its arguments by position, and with those that once were taken by position."""
    for name, call, required, listed in _parameters(surface):
        order = [p for p in listed if not p.startswith("*")]
        by_name = {p.lstrip("*") for p in listed}
        extra = [
            "CommitProperties(custom_metadata={'who': 'me'}), PostCommitHookProperties()",
            "PostCommitHookProperties(), CommitProperties(custom_metadata={'who': 'me'})",
            "CommitProperties(custom_metadata={'who': 'me'})",
            "PostCommitHookProperties()",
            "None",
            "None, None",
            "None, None, None",
            "None, None, False, None",
            "None, None, True, None, None",
        ]
        for count in range(1, len(order) + 1):
            given = [required.get(p, _default(name, p)) for p in order[:count]]
            rest = {n: v for n, v in required.items() if n not in order[:count]}
            text = ", ".join([*given, *(f"{n}={v}" for n, v in rest.items())])
            yield Cell("plain", _ended_positional(name, f"{call}({text})"))
        given = [required.get(p, _default(name, p)) for p in order]
        rest_text = [f"{n}={v}" for n, v in required.items() if n not in order]
        for more in extra if "commit_properties" in by_name else ["None", "None, None"]:
            yield Cell("plain", _ended_positional(name, f"{call}({', '.join([*given, more, *rest_text])})"))
            if "commit_properties" in by_name:
                text = ", ".join([*given, more, *rest_text, "commit_properties=CommitProperties()"])
                yield Cell("plain", _ended_positional(name, f"{call}({text})"))


def _ended_positional(name: str, call: str) -> str:
    if name == "DeltaTable.merge":
        return f"{call}.when_matched_update_all().when_not_matched_insert_all().execute()"
    return _ended(name, call)


_DEFAULTS = {
    "mode": "'error'",
    "nullable": "True",
    "contains_null": "True",
    "value_contains_null": "True",
    "dry_run": "True",
    "enforce_retention_duration": "True",
    "raise_if_not_exists": "True",
    "error_on_type_mismatch": "True",
    "streamed_exec": "True",
    "starting_version": "0",
    "create_checkpoint": "True",
}


def _default(name: str, parameter: str) -> str:
    if parameter in _DEFAULTS:
        return _DEFAULTS[parameter]
    flags = ("without_files", "skip_stats", "flatten", "as_large_types", "allow_", "merge_schema", "full", "ignore_")
    return "False" if parameter.startswith(flags) else "None"


# --- properties and attributes ---

_OBJECTS = {
    "AddAction": "AddAction('f', 1, {'a': None}, 5, True, '{}')",
    "ArrayType": "ArrayType('long', contains_null=False)",
    "BloomFilterProperties": "BloomFilterProperties(True, 0.1, 5)",
    "ColumnProperties": "ColumnProperties(True, 'PAGE')",
    "CommitProperties": "CommitProperties({'a': 'b'}, 3, [Transaction('a', 1)])",
    "DeltaTable": "table",
    "DeltaTableConfig": "table.table_config",
    "Field": "Field('id', 'long', nullable=False, metadata={'a': 'b'})",
    "MapType": "MapType('string', 'long', value_contains_null=False)",
    "Metadata": "table.metadata()",
    "PostCommitHookProperties": "PostCommitHookProperties(False, True)",
    "PrimitiveType": "PrimitiveType('decimal(5,2)')",
    "ProtocolVersions": "table.protocol()",
    "RemoveAction": "RemoveAction('f', True, 5)",
    "Schema": "Schema([Field('id', 'long'), Field('city', 'string')])",
    "StructType": "StructType([Field('id', 'long'), Field('city', 'string')])",
    "TableAlterer": "table.alter",
    "TableMerger": "table.merge(rows, 'target.id = source.id', 'source', 'target')",
    "TableOptimizer": "table.optimize",
    "Transaction": "Transaction('app', 3, 5)",
    "VariantType": "VariantType()",
    "WriterProperties": "WriterProperties(compression='ZSTD', max_row_group_size=5)",
}


def _by_property(surface: Surface) -> Iterator[Cell]:
    for name, parameters in surface.items():
        owner, _, member = name.partition(".")
        if member and owner in ("TableFeatures", "Compression", "Encoding"):
            yield Cell("plain", name)
            yield Cell("plain", f"{name} == {owner}.{member}")
            yield Cell("plain", f"str({name})")
            continue
        if (
            not member
            or owner not in _OBJECTS
            or member.startswith("__")
            or member in ("count", "index")
            and owner != "DeltaTable"
        ):
            continue
        text = f"({_OBJECTS[owner]}).{member}"
        if parameters is None:
            yield Cell("plain", text)
            for value in ("None", "5", "'text'"):
                yield Cell("plain", f"x = {_OBJECTS[owner]}\nx.{member} = {value}\nx.{member}")
        elif not parameters:
            yield Cell("plain", f"{text}()" if owner != "TableMerger" else f"{text}.__name__")
    for text in _OBJECTS.values():
        for form in (
            "type(x).__name__",
            "x",
            "x == x",
            f"x == {text}",
            "x == 1",
            "x != x",
            "str(x)",
            "repr(x)",
            "isinstance(hash(x), int)",
            "bool(x)",
            "vars(x)",
            "x.nonsense",
            "len(x)",
            "list(x)",
        ):
            yield Cell("plain", f"x = {text}\n{form}")
        yield Cell("plain", f"import copy\nx = {text}\ncopy.copy(x) == x")
    for name in ("DeltaError", "CommitFailedError", "DeltaProtocolError", "SchemaMismatchError", "TableNotFoundError"):
        yield Cell("plain", f"{name}('x')")
        yield Cell("plain", f"str({name}('x'))")
        yield Cell("plain", f"issubclass({name}, DeltaError)")
        yield Cell("plain", f"issubclass({name}, Exception)")
        yield Cell("plain", f"{name}.__name__")
        yield Cell("plain", f"raise_it = [].append\n(_ for _ in ()).throw({name}('x'))")


# --- by kinds of tables ---

_READS = (
    "table.to_pyarrow_table()",
    "table.to_pandas()",
    "table.to_pyarrow_dataset()",
    "table.to_pyarrow_dataset(as_large_types=True)",
    "table.scan()",
    "table.scan(predicate={where!r})",
    "table.schema()",
    "table.schema().to_arrow()",
    "table.schema().to_arrow(as_large_types=True)",
    "table.schema().fields",
    "[f.name for f in table.schema().fields]",
    "table.metadata()",
    "table.metadata().configuration",
    "table.metadata().partition_columns",
    "str(table.metadata())",
    "table.protocol()",
    "table.history()",
    "table.history(1)",
    "[h['operation'] for h in table.history()]",
    "table.count()",
    "table.file_uris()",
    "table.partitions()",
    "table.get_add_actions()",
    "table.get_add_actions(flatten=True)",
    "table.get_add_actions(flatten=True).column_names",
    "table.deletion_vectors()",
    "table.load_cdf()",
    "table.load_cdf(starting_version=1)",
    "table.load_cdf(starting_version=1, ending_version=1)",
    "QueryBuilder().register('t', table).execute('select * from t')",
    "QueryBuilder().register('t', table).execute('select count(*) as n from t')",
    "table.version()",
    "table.table_uri",
    "DeltaTable(uri, version=0).to_pyarrow_table()",
    "DeltaTable(uri, version=0).schema()",
    "DeltaTable(uri, version=1).count()",
    "DeltaTable.is_deltatable(uri)",
    "table.transaction_version('app')",
    "table.to_pyarrow_table(columns=[])",
    "pl.read_delta(uri).to_arrow()",
    "pl.scan_delta(uri).collect().to_arrow()",
)
_WRITES = (
    "write_deltalake(uri, rows, mode='append')",
    "write_deltalake(table, rows, mode='append')",
    "write_deltalake(uri, rows, mode='overwrite')",
    "write_deltalake(uri, rows, mode='ignore')",
    "write_deltalake(uri, rows)",
    "write_deltalake(uri, rows, mode='overwrite', predicate={where!r})",
    "write_deltalake(uri, rows, mode='append', schema_mode='merge')",
    "write_deltalake(uri, rows.append_column('extra', pa.array([1] * len(rows))), mode='append', schema_mode='merge')",
    "write_deltalake(uri, rows.append_column('extra', pa.array([1] * len(rows))), mode='append')",
    "write_deltalake(uri, rows.append_column('extra', pa.array([1] * len(rows))), mode='overwrite', schema_mode='overwrite')",
    "write_deltalake(uri, rows.drop_columns(rows.column_names[-1]), mode='append')",
    "write_deltalake(uri, rows.drop_columns(rows.column_names[-1]), mode='append', schema_mode='merge')",
    "write_deltalake(uri, pa.table({{'other': [1]}}), mode='append')",
    "write_deltalake(uri, pa.table({{'other': [1]}}), mode='overwrite', schema_mode='overwrite')",
    "write_deltalake(uri, rows.select(rows.column_names[::-1]), mode='append')",
    "write_deltalake(uri, rows, mode='append', partition_by={partition!r})",
    "write_deltalake(uri, rows, mode='append', partition_by=['nope'])",
    "write_deltalake(uri, rows.slice(0, 0), mode='append')",
    "write_deltalake(uri, rows.slice(0, 0), mode='overwrite')",
    "pl.from_arrow(rows).write_delta(uri, mode='append')",
    "table.delete()",
    "table.delete({where!r})",
    "table.delete('false')",
    "table.update({{{column!r}: {value!r}}})",
    "table.update({{{column!r}: {value!r}}}, predicate={where!r})",
    "table.update({{{column!r}: {value!r}}}, predicate='false')",
    "table.merge(rows, 'target.`{key}` = source.`{key}`', 'source', 'target').when_matched_update_all().when_not_matched_insert_all().execute()",
    "table.merge(rows, 'target.`{key}` = source.`{key}`', 'source', 'target').when_matched_delete().execute()",
    "table.merge(rows, 'target.`{key}` = source.`{key}`', 'source', 'target').when_not_matched_by_source_delete().execute()",
    "table.merge(rows, 'target.`{key}` = source.`{key}`', 'source', 'target').execute()",
    "table.optimize.compact()",
    "table.optimize.z_order([{key!r}])",
    "table.vacuum()",
    "table.vacuum(0, dry_run=False, enforce_retention_duration=False)",
    "table.vacuum(retention_hours=0, full=True, dry_run=True, enforce_retention_duration=False)",
    "table.restore(0)",
    "table.restore(1)",
    "table.create_checkpoint()",
    "table.cleanup_metadata()",
    "table.generate()",
    "table.repair()",
    "table.repair(dry_run=True)",
    "table.alter.add_columns(Field('new', 'long'))",
    "table.alter.add_columns([Field('new', 'timestamp_ntz')])",
    "table.alter.add_constraint({{'c': {where!r}}})",
    "table.alter.drop_constraint('positive')",
    "table.alter.drop_constraint('nope')",
    "table.alter.drop_constraint('nope', raise_if_not_exists=False)",
    "table.alter.drop_column_not_null({key!r})",
    "table.alter.set_table_name('sales')",
    "table.alter.set_table_description('of sales')",
    "table.alter.set_column_metadata({key!r}, {{'comment': 'x'}})",
    "table.alter.set_table_properties({{'delta.enableChangeDataFeed': 'true'}})",
    "table.alter.set_table_properties({{'delta.appendOnly': 'true'}})",
    "table.alter.set_table_properties({{'delta.enableDeletionVectors': 'true'}})",
    "table.alter.set_table_properties({{'delta.logRetentionDuration': 'interval 3 days'}})",
    "DeltaTable.create(uri, table.schema(), mode='overwrite')",
    "DeltaTable.create(uri, table.schema(), mode='ignore')",
    "DeltaTable.create(uri, table.schema(), mode='append')",
    "DeltaTable.create(uri, table.schema())",
    "DeltaTable.create(uri + '2', table.schema(), partition_by={partition!r})",
    "write_deltalake(uri + '2', rows)",
    "write_deltalake(uri + '2', rows, partition_by={partition!r})",
    "write_deltalake(uri + '2', rows)\nDeltaTable(uri + '2').history()",
    "write_deltalake(uri + '2', rows)\nDeltaTable(uri + '2').protocol()",
    "write_deltalake(uri + '2', rows)\nDeltaTable(uri + '2').to_pyarrow_table()",
    "convert_to_deltalake(uri)",
    "convert_to_deltalake(uri, mode='ignore')",
    "table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)",
)
_FEATURES = tuple(f"table.alter.add_feature(TableFeatures.{f}, True)" for f in values.FEATURES)


def _fitting(kind: str) -> dict[str, object]:
    of = KINDS[kind]
    return {
        "where": of.where,
        "column": of.updates[0],
        "value": of.updates[1],
        "key": of.more.column_names[0] if kind != "two_partitions" else "id",
        "partition": list(of.partition_by) or [of.more.column_names[-1] if kind != "nested" else "id"],
    }


def _by_kind(surface: Surface) -> Iterator[Cell]:
    for kind in KINDS:
        names = _fitting(kind)
        for text in (*_READS, *_WRITES):
            yield Cell(kind, text.format(**names) if "{" in text else text)
    for kind in ("plain", "features", "changes"):
        for text in _FEATURES:
            yield Cell(kind, text)
    for kind in ("missing", "folder", "files", "partitioned_files"):
        for text in (*_READS, *_WRITES) if kind == "missing" else (*_READS[:3], *_WRITES[:5], *_WRITES[-5:]):
            yield Cell(kind, text.format(**_fitting("plain")) if "{" in text else text)


# --- data ---

_INPUTS = (
    "rows",
    "rows.to_batches()[0]",
    "rows.to_batches()",
    "rows.to_reader()",
    "pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches()))",
    "iter(rows.to_batches())",
    "rows.to_pandas()",
    "pl.from_arrow(rows)",
    "pl.from_arrow(rows).lazy()",
    "arro3.Table.from_arrow(rows)",
    "arro3.RecordBatchReader.from_arrow(rows)",
    "arro3.RecordBatch.from_arrow(rows.to_batches()[0])",
    "rows.to_pylist()",
    "rows.to_pydict()",
    "rows.schema",
    "pa.dataset.dataset(rows)",
    "pa.dataset.dataset(rows).scanner()",
    "table",
    "table.to_pyarrow_table()",
    "table.to_pyarrow_dataset()",
    "table.scan()",
    "rows.to_struct_array()",
    "pa.chunked_array([rows.to_struct_array().combine_chunks()])",
    "rows.slice(0, 0)",
    "[]",
    "[rows]",
    "[rows, rows]",
    "(rows.to_batches()[0],)",
    "rows['id']",
    "pa.array([1])",
    "None",
    "'text'",
)
_TARGETS = (
    "write_deltalake(uri + '2', {})",
    "write_deltalake(uri, {}, mode='append')",
    "write_deltalake(uri, {}, mode='overwrite')",
    "write_deltalake(uri, {}, mode='overwrite', schema_mode='overwrite')",
    "write_deltalake(uri, {}, mode='append', schema_mode='merge')",
    "write_deltalake(uri, {}, mode='ignore')",
    "table.merge({}, 'target.id = source.id', 'source', 'target').when_matched_update_all().when_not_matched_insert_all().execute()",
    "DeltaTable.create(uri + '2', {})",
    "Schema.from_arrow({})",
)


def _by_input(surface: Surface) -> Iterator[Cell]:
    for target, given in itertools.product(_TARGETS, _INPUTS):
        yield Cell("plain", target.format(given))


_COLUMNS = {
    "pa.int8()": "[1, None, 2]",
    "pa.int16()": "[1, None, 2]",
    "pa.int32()": "[1, None, 2]",
    "pa.int64()": "[1, None, 2]",
    "pa.uint8()": "[1, None, 2]",
    "pa.uint16()": "[1, None, 2]",
    "pa.uint32()": "[1, None, 2]",
    "pa.uint64()": "[1, None, 2]",
    "pa.float16()": "[1.0, None, 2.0]",
    "pa.float32()": "[1.0, None, 2.0]",
    "pa.float64()": "[1.0, None, 2.0]",
    "pa.bool_()": "[True, None, False]",
    "pa.string()": "['a', None, 'b']",
    "pa.large_string()": "['a', None, 'b']",
    "pa.string_view()": "['a', None, 'b']",
    "pa.binary()": "[b'a', None, b'b']",
    "pa.large_binary()": "[b'a', None, b'b']",
    "pa.binary_view()": "[b'a', None, b'b']",
    "pa.binary(1)": "[b'a', None, b'b']",
    "pa.date32()": "[dt.date(2024, 1, 2), None, dt.date(2024, 1, 3)]",
    "pa.date64()": "[dt.date(2024, 1, 2), None, dt.date(2024, 1, 3)]",
    "pa.timestamp('s')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('ms')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('us')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('ns')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('us', 'UTC')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('ns', 'UTC')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.timestamp('us', 'Europe/Oslo')": "[dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 3)]",
    "pa.time32('s')": "[dt.time(1), None, dt.time(2)]",
    "pa.time64('us')": "[dt.time(1), None, dt.time(2)]",
    "pa.duration('us')": "[dt.timedelta(1), None, dt.timedelta(2)]",
    "pa.decimal128(5, 2)": "[Decimal('1.25'), None, Decimal('2.50')]",
    "pa.decimal128(38, 0)": "[Decimal(1), None, Decimal(2)]",
    "pa.decimal256(50, 2)": "[Decimal('1.25'), None, Decimal('2.50')]",
    "pa.null()": "[None, None, None]",
    "pa.dictionary(pa.int32(), pa.string())": "['a', None, 'b']",
    "pa.list_(pa.int64())": "[[1], None, []]",
    "pa.large_list(pa.int64())": "[[1], None, []]",
    "pa.list_(pa.int64(), 1)": "[[1], None, [2]]",
    "pa.list_(pa.uint8())": "[[1], None, []]",
    "pa.struct({'a': pa.int64()})": "[{'a': 1}, None, {'a': None}]",
    "pa.struct({'a b': pa.int64()})": "[{'a b': 1}, None, {'a b': None}]",
    "pa.map_(pa.string(), pa.int64())": "[[('k', 1)], None, []]",
    "pa.list_(pa.struct({'a': pa.timestamp('ns')}))": "[[{'a': dt.datetime(2024, 1, 2)}], None, []]",
}


def _by_type(surface: Surface) -> Iterator[Cell]:
    for data_type, listed in _COLUMNS.items():
        made = f"data = pa.table({{'id': [1, 2, 3], 'x': pa.array({listed}, {data_type})}})"
        written = f"{made}\nwrite_deltalake(uri, data)"
        yield Cell("missing", written)
        for form in (
            "DeltaTable(uri).schema()",
            "DeltaTable(uri).to_pyarrow_table()",
            "DeltaTable(uri).to_pandas()",
            "DeltaTable(uri).scan()",
            "DeltaTable(uri).get_add_actions(flatten=True)",
            "DeltaTable(uri).protocol()",
            "DeltaTable(uri).to_pyarrow_dataset(as_large_types=True)",
            "write_deltalake(uri, data, mode='append')",
            "DeltaTable(uri).delete('x is null')",
            "DeltaTable(uri).update({'id': 'id + 1'}, predicate='x is not null')",
            "DeltaTable(uri).update({'x': 'null'})",
            "DeltaTable(uri).merge(data, 'target.id = source.id', 'source', 'target').when_matched_update_all().execute()",
            "DeltaTable(uri).optimize.compact()",
            "DeltaTable(uri).optimize.z_order(['x'])",
            "DeltaTable(uri).create_checkpoint()",
            "QueryBuilder().register('t', DeltaTable(uri)).execute('select x from t')",
            "pl.read_delta(uri).to_arrow()",
        ):
            yield Cell("missing", f"{written}\n{form}")
        yield Cell("missing", f"{made}\nwrite_deltalake(uri, data, partition_by='x')")
        yield Cell(
            "missing", f"{made}\nwrite_deltalake(uri, data, partition_by='x')\nDeltaTable(uri).to_pyarrow_table()"
        )
        yield Cell("missing", f"{made}\nwrite_deltalake(uri, data, partition_by='x')\nDeltaTable(uri).partitions()")
        yield Cell("missing", f"{made}\nDeltaTable.create(uri, data.schema)\nDeltaTable(uri).schema().to_arrow()")
        yield Cell("plain", f"{made}\nwrite_deltalake(uri, data.rename_columns(['id', 'amount']), mode='append')")
        yield Cell("plain", f"{made}\nwrite_deltalake(uri, data.rename_columns(['id', 'city']), mode='append')")
        yield Cell(
            "plain",
            f"{made}\nwrite_deltalake(uri, data.rename_columns(['key', 'id']), mode='append', schema_mode='merge')",
        )
        for owner in ("PrimitiveType", "ArrayType", "StructType", "MapType", "Schema", "Field"):
            if owner == "Schema":
                yield Cell("missing", f"Schema.from_arrow(pa.schema({{'x': {data_type}}}))")
            elif owner == "Field":
                yield Cell("missing", f"Field.from_arrow(pa.field('x', {data_type}))")
            else:
                yield Cell("missing", f"{owner}.from_arrow({data_type})")


# --- conditions ---

_OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "like", "is", "IN")
_FILTERED = {
    "partitioned": (
        ("city", "'Oslo'"),
        ("city", "None"),
        ("city", "5"),
        ("id", "2"),
        ("amount", "20.0"),
        ("nope", "1"),
    ),
    "two_partitions": (("year", "2020"), ("year", "'2020'"), ("city", "'Rome'"), ("id", "1")),
    "null_partitions": (("city", "'Oslo'"), ("city", "''"), ("city", "None")),
    "plain": (("id", "2"), ("city", "'Oslo'"), ("amount", "20.0")),
}


def _by_filter(surface: Surface) -> Iterator[Cell]:
    for kind, tried in _FILTERED.items():
        for (column, value), operator in itertools.product(tried, _OPERATORS):
            given = f"[{value}]" if operator.lower() in ("in", "not in") else value
            filters = f"[({column!r}, {operator!r}, {given})]"
            yield Cell(kind, f"table.to_pyarrow_table(filters={filters})")
            if kind != "plain":
                yield Cell(kind, f"table.file_uris(file_pruning_predicate={filters})")
                yield Cell(kind, f"table.partitions(file_pruning_predicate={filters})")
                yield Cell(kind, f"table.to_pyarrow_dataset(file_pruning_predicate={filters})")
            if operator in ("=", "in"):
                yield Cell(kind, f"table.to_pandas(filters={filters})")
                yield Cell(kind, f"table.to_pyarrow_table(partitions={filters})")
                yield Cell(kind, f"table.optimize.compact(partition_filters={filters})")
                yield Cell(kind, f"table.optimize.z_order(['id'], partition_filters={filters})")


_SQL = (
    "id = 2",
    "id <> 2",
    "id != 2",
    "not id = 2",
    "id between 1 and 2",
    "id in (1, 3)",
    "id not in (1, 3)",
    "id is not null",
    "id = 1 or id = 3",
    "id = 1 and city = 'Oslo'",
    "id % 2 = 0",
    "id + 1 = 3",
    "-id = -2",
    "id * 2 > 3",
    "id / 2 > 1",
    "id > 1.5",
    "id = '2'",
    "id = 2.0",
    "city = 'oslo'",
    "city like 'O%'",
    "city not like 'O%'",
    "city like '_slo'",
    "city ilike 'o%'",
    "city > 'P'",
    "upper(city) = 'OSLO'",
    "lower(city) = 'oslo'",
    "length(city) = 4",
    "char_length(city) = 4",
    "concat(city, 'x') = 'Oslox'",
    "city || 'x' = 'Oslox'",
    "substr(city, 1, 1) = 'O'",
    "substring(city, 1, 1) = 'O'",
    "trim(city) = 'Oslo'",
    "replace(city, 'O', 'o') = 'oslo'",
    "starts_with(city, 'O')",
    "contains(city, 'sl')",
    "coalesce(city, 'x') = 'Oslo'",
    "nullif(id, 2) is null",
    "case when id = 1 then true else false end",
    "cast(id as string) = '2'",
    "cast(amount as int) = 20",
    "id::string = '2'",
    "try_cast(city as int) is null",
    "abs(amount) > 15",
    "round(amount) > 15",
    "floor(amount) = 20",
    "ceil(amount) = 20",
    "power(id, 2) = 4",
    "sqrt(amount) > 4",
    "amount > 15 and amount < 25",
    "amount = 20",
    "amount = 2e1",
    "`id` = 2",
    '"id" = 2',
    "ID = 2",
    "Id = 2",
    '"ID" = 2',
    "city in ('Oslo')",
    'city = "Oslo"',
    "city is distinct from 'Oslo'",
    "city is not distinct from 'Oslo'",
    "id = null",
    "null",
    "true",
    "false",
    "1 = 1",
    "id",
    "city",
    "nope = 1",
    "nope",
    "id = ",
    "id == 2",
    "id = 2;",
    "select 1",
    "id = (select 1)",
    "sum(id) > 1",
    "random() < 2",
    "regexp_like(city, '^O')",
    "city ~ '^O'",
    "id & 1 = 1",
    "id | 1 = 1",
    "date '2024-01-01' > date '2023-01-01'",
    "cast('2024-01-01' as date) is not null",
    "timestamp '2024-01-01 00:00:00' is not null",
    "current_date() is not null",
    "now() is not null",
    "id > 1 -- comment",
    "(id > 1)",
    "((id > 1) and (city = 'Oslo'))",
    "id > 99999999999999999999",
    "city = 'it''s'",
    "greatest(id, 2) = 2",
    "least(id, 2) = 2",
    "if(id = 1, true, false)",
    "isnull(city)",
    "ifnull(city, 'x') = 'Oslo'",
    "array_contains(array(1, 2), id)",
    "nosuch(id) = 1",
)
_VALUES = (
    "id",
    "id + 1",
    "amount / 0",
    "id / 0",
    "id % 0",
    "1.5",
    "'7'",
    "'x'",
    "null",
    "cast(null as bigint)",
    "length(city)",
    "case when id > 1 then 1 else 0 end",
    "true",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775807 + id",
    "1e3",
    "nope",
    "city",
    "sum(id)",
)


def _by_sql(surface: Surface) -> Iterator[Cell]:
    for text in _SQL:
        yield Cell("plain", f"table.delete({text!r})")
        yield Cell("plain", f"table.scan(predicate={text!r})")
        yield Cell("partitioned", f"table.file_uris(file_pruning_predicate={text!r})")
        yield Cell("plain", f"table.update({{'city': \"'x'\"}}, predicate={text!r})")
        yield Cell("plain", f"table.alter.add_constraint({{'c': {text!r}}})")
        yield Cell(
            "plain",
            f"table.merge(rows, 'target.id = source.id', 'source', 'target').when_matched_delete({text.replace('id', 'target.id')!r}).execute()",
        )
    for text in _VALUES:
        for column in ("id", "city", "amount"):
            yield Cell("plain", f"table.update({{{column!r}: {text!r}}})")
            yield Cell("plain", f"table.update({{{column!r}: {text!r}}}, error_on_type_mismatch=False)")


# --- settings ---

_PROPERTIES = {
    "delta.appendOnly": ("true", "false", "TRUE", "1", ""),
    "delta.autoOptimize.autoCompact": ("true", "false"),
    "delta.autoOptimize.optimizeWrite": ("true", "x"),
    "delta.checkpoint.writeStatsAsJson": ("true", "false"),
    "delta.checkpoint.writeStatsAsStruct": ("true", "false"),
    "delta.checkpointInterval": ("5", "0", "-1", "x"),
    "delta.checkpointPolicy": ("classic", "v2", "x"),
    "delta.columnMapping.mode": ("none", "name", "id", "x"),
    "delta.compatibility.symlinkFormatManifest.enabled": ("true",),
    "delta.dataSkippingNumIndexedCols": ("2", "0", "-1", "x"),
    "delta.dataSkippingStatsColumns": ("id", "id,city", "nope", ""),
    "delta.deletedFileRetentionDuration": ("interval 1 days", "interval 1 week", "1 day", "x", "interval 0 hours"),
    "delta.enableChangeDataFeed": ("true", "false", "x"),
    "delta.enableDeletionVectors": ("true", "false", "x"),
    "delta.enableExpiredLogCleanup": ("true", "false"),
    "delta.enableRowTracking": ("true", "false"),
    "delta.enableTypeWidening": ("true",),
    "delta.enableInCommitTimestamps": ("true",),
    "delta.isolationLevel": ("Serializable", "WriteSerializable", "SnapshotIsolation", "x"),
    "delta.logRetentionDuration": ("interval 30 days", "x"),
    "delta.minReaderVersion": ("1", "2", "3", "x"),
    "delta.minWriterVersion": ("2", "4", "7", "x"),
    "delta.parquet.compression.codec": ("zstd", "snappy"),
    "delta.randomizeFilePrefixes": ("true",),
    "delta.randomPrefixLength": ("2",),
    "delta.sampling.enabled": ("true",),
    "delta.setTransactionRetentionDuration": ("interval 1 days", "x"),
    "delta.targetFileSize": ("1000", "104857600", "x", "100mb"),
    "delta.tuneFileSizesForRewrites": ("true",),
    "delta.feature.appendOnly": ("supported",),
    "delta.feature.deletionVectors": ("supported",),
    "delta.constraints.c": ("id > 0", "id > 1"),
    "delta.nope": ("1",),
    "nope": ("1", ""),
    "my.key with blank": ("1",),
}


def _by_setting(surface: Surface) -> Iterator[Cell]:
    for key, listed in _PROPERTIES.items():
        for value in listed:
            given = f"{{{key!r}: {value!r}}}"
            yield Cell("plain", f"table.alter.set_table_properties({given})")
            yield Cell("plain", f"table.alter.set_table_properties({given}, raise_if_not_exists=False)")
            yield Cell(
                "plain",
                f"DeltaTable.create(uri + '2', table.schema(), configuration={given})\nDeltaTable(uri + '2').protocol()",
            )
            yield Cell(
                "plain", f"write_deltalake(uri + '2', rows, configuration={given})\nDeltaTable(uri + '2').protocol()"
            )
            yield Cell(
                "plain",
                f"table.alter.set_table_properties({given})\nwrite_deltalake(uri, rows, mode='append')\nDeltaTable(uri).delete('id = 1')",
            )


# --- several calls ---

_STEPS = (
    "write_deltalake(uri, rows, mode='append')",
    "write_deltalake(uri, rows, mode='overwrite')",
    "table.delete('id = 1')",
    "table.update({'city': \"'x'\"}, predicate='id = 2')",
    "table.merge(rows, 'target.id = source.id', 'source', 'target').when_matched_update_all().when_not_matched_insert_all().execute()",
    "table.optimize.compact()",
    "table.alter.add_columns(Field('new', 'long'))",
    "table.alter.add_constraint({'c': 'id > 0'})",
    "table.alter.set_table_properties({'delta.enableChangeDataFeed': 'true'})",
    "table.alter.set_table_name('sales')",
    "table.restore(1)",
    "table.create_checkpoint()",
    "table.vacuum(0, dry_run=False, enforce_retention_duration=False)",
    "table.load_as_version(0)",
    "table.update_incremental()",
    "table.alter.add_feature(TableFeatures.DeletionVectors, True)",
)
_ENTRY = "{k: v for k, v in h.items() if k in ('operation', 'version', 'who', 'a', 'b')}"
_AFTER = (
    "[h['operation'] for h in DeltaTable(uri).history()]",
    "table.version()",
    "table.to_pyarrow_table()",
    "DeltaTable(uri).load_cdf(starting_version=2)",
)


def _in_sequence(surface: Surface) -> Iterator[Cell]:
    for first, second in itertools.product(_STEPS, _STEPS):
        yield Cell("plain", f"{first}\n{second}\n[h['operation'] for h in DeltaTable(uri).history()]")
    for first in _STEPS:
        for after in _AFTER:
            for kind in ("plain", "changes", "partitioned", "constrained", "protocol_1", "features"):
                if kind == "changes" or "load_cdf" not in after:
                    yield Cell(kind, f"{first}\n{after}")
        for commit in values.COMMITS:
            if (
                "(" in first
                and first.endswith(")")
                and "update_incremental" not in first
                and "load_as" not in first
                and "create_checkpoint" not in first
            ):
                call = first if "merge(" not in first else None
                if call is not None:
                    text = f"{call[:-1]}{'' if call.endswith('()') else ', '}commit_properties={commit})"
                    yield Cell("plain", f"{text}\nh = DeltaTable(uri).history(1)[0]\n{_ENTRY}")
                    yield Cell("plain", f"{text}\n{text}\nDeltaTable(uri).transaction_version('app')")


# --- types ---

_TYPES = (
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(10,2)",
    "decimal(38, 10)",
    "decimal(39,2)",
    "decimal",
    "variant",
    "int",
    "",
)


def _of_types(surface: Surface) -> Iterator[Cell]:
    for name in _TYPES:
        made = f"PrimitiveType({name!r})"
        for form in (
            "x",
            "x.type",
            "str(x)",
            "repr(x)",
            "x.to_json()",
            "x.to_arrow()",
            "PrimitiveType.from_json(x.to_json()) == x",
            "x == PrimitiveType('long')",
        )[: 1 if name in ("int", "") else None]:
            yield Cell("missing", f"x = {made}\n{form}")
        for outer in (
            f"Field('x', {name!r})",
            f"ArrayType({name!r})",
            f"MapType({name!r}, {name!r})",
            f"Schema([Field('x', {name!r})])",
        ):
            for form in ("x", "repr(x)", "x.to_json()", "x.to_arrow()")[: 1 if name in ("int", "") else None]:
                yield Cell("missing", f"x = {outer}\n{form}")
        yield Cell("missing", f"DeltaTable.create(uri, Schema([Field('x', {name!r})]))\nDeltaTable(uri).protocol()")
        yield Cell(
            "missing", f"DeltaTable.create(uri, Schema([Field('x', {name!r})]))\nDeltaTable(uri).to_pyarrow_table()"
        )
