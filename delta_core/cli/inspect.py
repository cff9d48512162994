"""Commands that specify what a table is: info, schema, history, files, features, log."""

from __future__ import annotations

import json
import warnings
from typing import Any

import click
import pyarrow as pa
from msgspec.structs import replace

from delta_core.cli.options import KnownFeatures, Target, WholeNumber, as_json, table_command
from delta_core.cli.output import plain, print_facts, print_json, print_note, print_table, quantity, row_dicts, to_text
from delta_core.engines.interface import Storage
from delta_core.engines.records import ActionQuery
from delta_core.errors import CorruptTableError, TableNotFoundError, UnsupportedFeatureError, UnsupportedVersionError
from delta_core.formats import FormatTable
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.commit_chunks import BASE_COLUMNS
from delta_core.kernel.log.source import TableLog
from delta_core.kernel.log.timestamps import format_ms
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.plans import LogFile, LogSegment
from delta_core.kernel.plugins.registry import PluginRegistry, default_registry
from delta_core.kernel.protocol.actions import Protocol
from delta_core.kernel.snapshot import Snapshot, open_context
from delta_core.schema.types import StructType, spark_name
from delta_core.table import interop

__all__ = ["features", "files", "history", "info", "log", "schema"]


@click.command()
@table_command()
@as_json
def info(target: Target, json_output: bool) -> None:
    """Show what a table is: version, size, protocol, properties.

    \b
    Examples:
      delta-core info sales
      delta-core info s3://bucket/sales --storage-option anon=true
      delta-core info sales --timestamp 2024-05-01T00:00:00Z --json
    """
    snapshot, refused = target.described()
    if not isinstance(snapshot, Snapshot):
        _print_described(snapshot, json_output)
        return
    facts = _describe(snapshot, refused)
    if json_output:
        print_json(facts)
        return
    protocol = facts["protocol"]
    print_facts(
        {
            "Table": facts["uri"],
            "Version": f"{facts['version']} ({facts['timestamp'] or 'time unknown'})",
            "Name": facts["name"],
            "Description": facts["description"],
            "Id": facts["id"],
            "Created": facts["createdTime"],
            "Files": "unknown" if refused else f"{facts['numFiles']:,} ({quantity(facts['sizeInBytes'])})",
            "Rows": "unknown" if refused else _rows(facts),
            "Columns": f"{len(snapshot.schema)}",
            "Partitioned by": ", ".join(facts["partitionColumns"]) or None,
            "Clustered by": ", ".join(facts["clusteringColumns"]) or None,
            "Protocol": f"reader {protocol['minReaderVersion']}, writer {protocol['minWriterVersion']}",
            "Features": ", ".join(facts["features"]) or None,
            "Properties": facts["properties"],
        }
    )
    _note_unreadable(refused)


def _print_described(table: FormatTable, json_output: bool) -> None:
    facts = {"Table": shown_uri(table.uri), "Format": table.format_name, "Version": table.version, **table.describe()}
    if json_output:
        print_json(facts)
    else:
        print_facts(facts)


def _note_unreadable(reason: str | None) -> None:
    if reason is not None:
        print_note(f"The table can't be read: {reason}")


def _describe(snapshot: Snapshot, refused: str | None) -> dict[str, Any]:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    # which files count, and which of their rows, is for features to specify
    sizes = interop.Sizes(None, None, None, None) if refused else interop.sizes(snapshot)
    return {
        "uri": interop.root_uri(snapshot),
        "version": snapshot.version,
        "timestamp": format_ms(snapshot.timestamp_ms, snapshot.timezone),
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "createdTime": format_ms(metadata.created_time, snapshot.timezone),
        "numFiles": sizes.files,
        "sizeInBytes": sizes.size_bytes,
        "numRows": sizes.rows,
        "numDeletedRows": sizes.deleted_rows,
        "partitionColumns": list(snapshot.state.partition_columns),
        "clusteringColumns": list(snapshot.plugins.request_values("cluster_by", snapshot.state)),
        "protocol": protocol.to_json(),
        "features": sorted(snapshot.state.features),
        "properties": dict(sorted(metadata.configuration.items())),
        "refused": refused,
    }


def _rows(facts: dict[str, Any]) -> str:
    if facts["numRows"] is None:
        return "unknown (files without statistics)"
    deleted = facts["numDeletedRows"]
    return f"{facts['numRows']:,}" + (f" (and {deleted:,} deleted, still in the files)" if deleted else "")


@click.command()
@table_command()
@as_json
def schema(target: Target, json_output: bool) -> None:
    """Show the columns. With --json, the schema as the protocol writes it.

    \b
    Examples:
      delta-core schema sales
      delta-core schema sales --json --version 3
    """
    table, refused = target.described()
    if json_output:
        print_json(json.loads(table.schema.to_json()))
        return
    partitioned = set(table.state.partition_columns) if isinstance(table, Snapshot) else set()
    rows = list(_columns(table.schema, partitioned))
    print_table(["column", "type", "nullable", "notes"], rows)
    _note_unreadable(refused)


def _columns(struct: StructType, partitioned: set[str], depth: int = 0) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for f in struct.members:
        notes = ["partition column"] if not depth and f.name in partitioned else []
        notes += [f"{key} = {plain(value)}" for key, value in f.metadata.items()]
        kind = "STRUCT" if isinstance(f.type, StructType) else spark_name(f.type)
        rows.append(("  " * depth + f.name, kind, "yes" if f.nullable else "no", "; ".join(notes)))
        if isinstance(f.type, StructType):
            rows += _columns(f.type, partitioned, depth + 1)
    return rows


@click.command()
@table_command()
@click.option("--limit", "-n", type=WholeNumber(min=0), default=20, show_default=True, help="How many commits.")
@click.option("--all", "everything", is_flag=True, help="Every commit that the log still holds.")
@as_json
def history(target: Target, limit: int, everything: bool, json_output: bool) -> None:
    """Show the commits, newest first.

    \b
    Examples:
      delta-core history sales -n 5
      delta-core history sales --all --json
    """
    table, refused = target.described()
    commits = table.history(None if everything else limit)
    if json_output:
        print_json(commits)
        return
    rows = [
        (
            c["version"],
            format_ms(c.get("timestamp"), target.timezone),
            c.get("operation"),
            _parameters(c.get("operationParameters")),
            c.get("userName") or c.get("engineInfo"),
        )
        for c in commits
    ]
    print_table(
        ["version", "time", "operation", "parameters", "by"], rows, ["version"], whole=["version", "time", "operation"]
    )
    _note_unreadable(refused)


def _parameters(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return ", ".join(f"{k}={v}" for k, v in value.items() if v not in (None, "", "[]", "{}"))


@click.command()
@table_command()
@click.option("--where", metavar="SQL", help="Only files that may hold rows for which a predicate is true.")
@click.option("--limit", "-n", type=WholeNumber(min=0), help="How many files.")
@click.option("--stats", "statistics", is_flag=True, help="Show each column's least and greatest value, and its nulls.")
@as_json
def files(target: Target, where: str | None, limit: int | None, statistics: bool, json_output: bool) -> None:
    """Show the data files of a version, and which of them a predicate leaves.

    \b
    Examples:
      delta-core files sales
      delta-core files sales --where "day >= '2024-05-01' AND amount > 100"
      delta-core files sales --stats --json
    """
    snapshot = target.readable()
    if not isinstance(snapshot, Snapshot):
        if statistics:
            raise click.UsageError(f"--stats works on Delta tables; {snapshot.format_name} has no such statistics.")
        _print_files(snapshot.file_table(where), limit, json_output)
        return
    listed = interop.file_table(snapshot, where, statistics)
    shown = listed if limit is None else listed.slice(0, limit)
    records = row_dicts(shown)
    for record in records if statistics else ():
        record["statistics"] = _by_column(record)
    if json_output:
        print_json(records)
        return
    partitioned = snapshot.state.partition_columns
    rows = [
        (
            r["path"],
            quantity(r["size"]),
            r["numRecords"],
            r["numDeleted"],
            *(r["partition"].get(p) for p in partitioned),
            *([_statistics_text(r["statistics"])] if statistics else []),
        )
        for r in records
    ]
    named = ["path", "size", "rows", "deleted", *partitioned, *(["statistics"] if statistics else [])]
    print_table(named, rows, ["size", "rows", "deleted"], null="-")
    rest = listed.num_rows - shown.num_rows
    total = snapshot.files.count
    print_note(f"{listed.num_rows:,} of {total:,} files" + (f", {rest:,} not shown" if rest else ""))


def _print_files(listed: pa.Table, limit: int | None, json_output: bool) -> None:
    """Print the files of a table of another format, one row each."""
    shown = listed if limit is None else listed.slice(0, limit)
    if json_output:
        print_json(row_dicts(shown))
        return
    names = shown.column_names
    numbers = [f.name for f in shown.schema if pa.types.is_integer(f.type)]
    print_table(names, [tuple(r[n] for n in names) for r in row_dicts(shown)], numbers, null="-")
    rest = listed.num_rows - shown.num_rows
    print_note(f"{listed.num_rows:,} files" + (f", {rest:,} not shown" if rest else ""))


def _by_column(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take a file's statistics out of its record, and return them by column."""
    found: dict[str, dict[str, Any]] = {}
    for name, kind in (("min", "min"), ("max", "max"), ("null_count", "nullCount")):
        for column in [c for c in record if c.startswith(f"{name}.")]:
            value = record.pop(column)
            if value is not None:
                found.setdefault(column.removeprefix(f"{name}."), {})[kind] = value
    return found


def _statistics_text(statistics: dict[str, dict[str, Any]]) -> str | None:
    def text(name: str, found: dict[str, Any]) -> str:
        bounds = f" {to_text(found.get('min'))} to {to_text(found.get('max'))}" if {"min", "max"} & found.keys() else ""
        nulls = f", {found['nullCount']} null" if found.get("nullCount") else ""
        return f"{name}{bounds}{nulls}"

    return "; ".join(text(name, found) for name, found in statistics.items()) or None


@click.command()
@table_command(required=False)
@as_json
def features(target: Target | None, json_output: bool) -> None:
    """Show the table's features and the plugins that serve them; without TABLE, all that are installed.

    A table that can't be read shows what it needs, too.

    \b
    Examples:
      delta-core features
      delta-core features sales
    """
    registry = default_registry()
    if target is None:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # unusable plugins have a row here
            usable = registry.everything.features.values()
        found = [_installed(f, registry.source(f.name)) for f in usable]
        found += [_unusable(n, registry.source(n), str(e)) for n, e in registry.unusable.items()]
        found.sort(key=lambda r: str(r["name"]))
        if json_output:
            print_json(found)
            return
        print_table(
            ["feature", "kind", "plugin", "what it does"],
            [(r["name"], r["kind"] or "unusable", r["plugin"], r.get("error", r["summary"])) for r in found],
            whole=["feature", "kind", "plugin"],
        )
        return
    refused = None
    try:
        table = target.snapshot()
        p, rows = (
            table.protocol,
            [_supported(table, name, registry.source(name)) for name in sorted(table.state.features)],
        )
    except (UnsupportedFeatureError, UnsupportedVersionError) as e:
        if target.timestamp is not None:  # a point in time takes the features' word for when a version was committed
            raise
        refused = str(e)
        p, rows = _needed(target, registry)
    if json_output:
        print_json({"protocol": p.to_json(), "features": rows, "refused": refused})
        return
    click.echo(f"Protocol: reader {p.min_reader_version}, writer {p.min_writer_version}")
    if rows:
        print_table(
            ["feature", "needed by", "active", "plugin", "what it does"],
            [
                (
                    r["name"],
                    "readers and writers" if r["reader"] else "writers",
                    _ACTIVE[r["active"]],
                    r["plugin"] or _MISSING[r["reader"]],
                    r["summary"],
                )
                for r in rows
            ],
            whole=["feature", "needed by"],
        )
    _note_unreadable(refused)


_ACTIVE = {True: "yes", False: "no", None: "-"}
_MISSING = {True: "none: reading needs it", False: "none: reading ignores it"}


def _needed(target: Target, registry: PluginRegistry) -> tuple[Protocol, list[dict[str, Any]]]:
    """Return a version's protocol and its features; whether these are active is unknown."""
    context = open_context(target.uri, target.storage_options or None, allow_external=target.allow_external)
    protocol = context.log.read(target.version).protocol
    supported = KnownFeatures().supported(protocol)
    known = registry.everything.features
    canonical = {alias: f for f in known.values() for alias in (f.name, *f.aliases)}
    rows = []
    for name in sorted(supported.all):
        feature = canonical.get(name)
        rows.append(
            {
                "name": name,
                "reader": name in supported.reader,
                "active": None,
                "plugin": registry.source(name),
                "summary": feature.summary if feature else "",
                "operations": sorted(feature.operations) if feature else [],
            }
        )
    return protocol, rows


def _installed(feature: TableFeature, source: str | None) -> dict[str, Any]:
    return {
        "name": feature.name,
        "kind": feature.kind,
        "plugin": source,
        "summary": feature.summary,
        "aliases": list(feature.aliases),
        "requires": list(feature.requires),
        "properties": dict(feature.properties),
        "operations": sorted(feature.operations),
    }


def _unusable(name: str, source: str | None, error: str) -> dict[str, Any]:
    """Return the row of a feature whose plugin can't be used."""
    feature = TableFeature(name, "writer")
    return {**_installed(feature, source), "kind": None, "error": error}


def _supported(table: Snapshot, name: str, source: str | None) -> dict[str, Any]:
    feature = table.plugins.features.get(name)
    return {
        "name": name,
        "reader": name in table.state.reader_features,
        "active": table.state.is_active(name),
        "plugin": source,
        "summary": feature.summary if feature else "",
        "operations": sorted(feature.operations) if feature else [],
    }


@click.command()
@table_command()
@as_json
def log(target: Target, json_output: bool) -> None:
    """Show which log files a version is built from, and why these.

    Log files that can't be read are shown, too, each with what is wrong.

    \b
    Examples:
      delta-core log sales
      delta-core log sales --version 12 --json
    """
    log = open_context(target.uri, target.storage_options or None, allow_external=target.allow_external).log
    try:
        version = target.version if target.timestamp is None else target.snapshot().version
        segment, problems = _checked(log, version)
    except TableNotFoundError as e:
        _print_files(target.instead_of_delta(e).version_files(), None, json_output)
        return
    segment = _measured(segment, log.engine.storage)
    if json_output:
        print_json(_segment(segment, problems))
        return
    checkpoint = segment.checkpoint
    print_facts(
        {
            "Version": segment.version,
            "Checkpoint": f"version {checkpoint.version}, {checkpoint.kind}" if checkpoint else "none",
            "Commits above it": len(segment.deltas),
            "Checksum": segment.checksum.name if segment.checksum else None,
            "Why": list(segment.notes),
        }
    )
    parts = checkpoint.files if checkpoint else ()
    click.echo()
    rows = [(f.name, f.kind, _span(f), None if f.size is None else quantity(f.size)) for f in (*parts, *segment.deltas)]
    print_table(["file", "kind", "versions", "size"], rows, ["size"], null="-")
    for problem in problems.values():
        print_note(f"Damaged: {problem}")


def _checked(log: TableLog, version: int | None) -> tuple[LogSegment, dict[str, str]]:
    """Return a version's log files, and what is wrong with those that can't be read, by name."""
    try:
        return log.read(version).segment, {}
    except CorruptTableError as e:
        problems: dict[str, str] = {}
        segment = log.segment(version)
        for file in segment.deltas:
            try:
                log.engine.logs.read_commits([file], ActionQuery(BASE_COLUMNS))
            except CorruptTableError as why:
                problems[file.name] = str(why)
        # what is wrong with a checkpoint, or with all of them together, is determined by the whole
        return segment, problems or {"": str(e)}


def _measured(segment: LogSegment, storage: Storage) -> LogSegment:
    """Return the segment with sizes and times if the listing did not report them."""
    files = [*(segment.checkpoint.files if segment.checkpoint else ()), *segment.deltas]
    unknown = [f for f in files if f.size is None and f.data is None]
    stats = storage.stat([f"_delta_log/{f.name}" for f in unknown])
    known = {f: replace(f, size=size, modified_ms=ms) for f, (size, ms) in zip(unknown, stats, strict=True)}
    checkpoint = segment.checkpoint
    if checkpoint is not None:
        checkpoint = replace(checkpoint, files=tuple(known.get(f, f) for f in checkpoint.files))
    return replace(segment, checkpoint=checkpoint, deltas=tuple(known.get(f, f) for f in segment.deltas))


def _span(file: LogFile) -> str:
    return str(file.version) if file.version == file.end_version else f"{file.version}-{file.end_version}"


def _segment(segment: LogSegment, problems: dict[str, str]) -> dict[str, Any]:
    checkpoint = segment.checkpoint
    return {
        "version": segment.version,
        "checkpoint": None
        if checkpoint is None
        else {
            "version": checkpoint.version,
            "kind": checkpoint.kind,
            "files": [_log_file(f) for f in checkpoint.files],
        },
        "deltas": [_log_file(f) for f in segment.deltas],
        "checksum": segment.checksum and segment.checksum.name,
        "notes": list(segment.notes),
        "problems": [{"name": name or None, "problem": text} for name, text in problems.items()],
    }


def _log_file(file: LogFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "kind": file.kind,
        "version": file.version,
        "endVersion": file.end_version,
        "size": file.size,
        "modified": format_ms(file.modified_ms),
    }
