"""The commands of the command line that change a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

import pyarrow as pa

from delta_core import api
from delta_core.api import InvalidArgumentError, TableExistsError, UnsupportedOperationError

__all__ = ["CHANGES", "run_command"]

Options = Mapping[str, Any]
Confirm = Callable[[str], None]
Progress = Callable[[Any], None] | None


def _delete(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    where = options.get("where")
    if options.get("dry_run"):
        return {"version": dataset.version, "rows": dataset.count(where)}
    return _reported(dataset, "DELETE", lambda: dataset.delete(where, progress=progress))


def _update(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    where = options.get("where")
    if options.get("dry_run"):
        return {"version": dataset.version, "rows": dataset.count(where)}
    return _reported(dataset, "UPDATE", lambda: dataset.update(options["updates"], predicate=where, progress=progress))


def _restore(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    target = options.get("to_version", options.get("to_timestamp"))
    return _reported(dataset, "RESTORE", lambda: dataset.restore(target))


def _optimize(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    sizes = {"max_bytes": options["target_size"]} if "target_size" in options else {}
    return _reported(dataset, "OPTIMIZE", lambda: dataset.compact(**sizes, progress=progress))


def _vacuum(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    hours = options.get("retention_hours")
    if hours is not None and not 0 <= hours < 1e6:
        raise InvalidArgumentError(f"Found a retention of {hours} hours, expected a number from 0 on.")
    age = {} if hours is None else {"older_than": timedelta(hours=hours)}
    planned: dict[str, Any] = dataset.cleanup(**age, dry_run=True)
    if options.get("dry_run"):
        return {"version": dataset.version, **planned}
    if planned["num_files"] and not options.get("yes"):
        versions = len(planned["removed_versions"])
        confirm(f"Remove {versions:,} versions and {planned['num_files']:,} files? This can't be undone.")
    return {"version": dataset.version, **dataset.cleanup(**age)}


def _repair(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    deep = bool(options.get("deep"))
    planned: dict[str, Any] = dataset.repair(dry_run=True, deep=deep)
    lost = planned["removed_fragments"]
    if options.get("dry_run") or not lost:
        return planned
    if not options.get("yes"):
        confirm(f"Remove {len(lost):,} fragments with {sum(f['rows'] for f in lost):,} rows that can't be read?")
    done: dict[str, Any] = dataset.repair(deep=deep)
    return done


def _write(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    mode = options.get("mode", "append")
    if mode == "error":
        raise TableExistsError(
            f"There is a Lance dataset at {dataset.uri} already, and --mode is error. Append to it, or overwrite it.",
            path=dataset.uri,
        )
    rows, chosen = options["rows"], {"replace_where", "replace_using", "replace_on"} & options.keys()
    if chosen and mode != "overwrite":
        raise InvalidArgumentError(f"--{min(chosen).replace('_', '-')} replaces rows. Pass --mode overwrite too.")
    if mode == "ignore":
        return {"version": dataset.version, "operation": None, "metrics": {}}
    if chosen:
        columns = [n.strip() for n in (options.get("replace_using") or "").split(",") if n.strip()]
        given = {"replace_using": columns, "replace_on": options.get("replace_on")}
        return _reported(dataset, "WRITE", lambda: dataset.overwrite(rows, options.get("replace_where"), **given))
    branch = {} if dataset.branch is None else {"branch": dataset.branch}
    # the format is looked up, as its module needs the dataset's, which needs this one
    spread = cast(api.SpreadFormat, api.format_named("lance"))
    write = spread.begin_spread_write(dataset.engine, dataset.uri, rows.schema, mode, branch)
    version = write.commit([write.part.write(dataset.engine, rows.schema, rows)])
    return {"version": version, "operation": "WRITE", "metrics": {}}


def _merge(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    is_dry = bool(options.get("dry_run"))
    merger = dataset.merge(options["rows"], options["on"], dry_run=is_dry, progress=progress)
    if "matched_delete" in options:
        merger.when_matched_delete(options["matched_delete"])
    if options.get("matched_update"):
        merger.when_matched_update(options["matched_update"])
    if options.get("matched_update_all"):
        merger.when_matched_update_all()
    if options.get("not_matched_insert"):
        merger.when_not_matched_insert(options["not_matched_insert"])
    if options.get("not_matched_insert_all"):
        merger.when_not_matched_insert_all()
    if "not_matched_by_source_delete" in options:
        merger.when_not_matched_by_source_delete(options["not_matched_by_source_delete"])
    if options.get("not_matched_by_source_update"):
        merger.when_not_matched_by_source_update(options["not_matched_by_source_update"])
    if is_dry:
        return {"version": dataset.version, **merger.execute()}
    return _reported(dataset, "MERGE", merger.execute)


def _alter(dataset: Any, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    change = options["change"]
    if change not in _ALTERATIONS:
        raise UnsupportedOperationError(
            f"On a Lance dataset alter has no {change}. There are {', '.join(sorted(_ALTERATIONS))}.", operation="alter"
        )
    run, known = _ALTERATIONS[change]
    _check_options(f"alter {change}", options, known | {"change"})
    return _reported(dataset, "ALTER", lambda: run(dataset, options))


def _add_column(dataset: Any, options: Options) -> Any:
    comment = options.get("comment")
    metadata = None if comment is None else {"comment": comment}
    if "." in options["column"]:
        raise UnsupportedOperationError(
            f"Column {options['column']!r} would be a field of a struct, which is not added to datasets.",
            operation="alter",
        )
    return dataset.add_columns(pa.field(options["column"], _type_of(options), metadata=metadata))


def _type_of(options: Options) -> pa.DataType:
    return api.parse_type_text(options["data_type"]).to_arrow()


#: Each change of `alter`, with its arguments.
_ALTERATIONS: Mapping[str, tuple[Callable[[Any, Options], Any], frozenset[str]]] = {
    "add-column": (_add_column, frozenset({"column", "data_type", "comment"})),
    "drop-column": (lambda d, o: d.drop_columns(list(o["columns"])), frozenset({"columns"})),
    "rename-column": (lambda d, o: d.rename_column(o["column"], o["name"]), frozenset({"column", "name"})),
    "widen-type": (lambda d, o: d.cast_column(o["column"], _type_of(o)), frozenset({"column", "data_type"})),
    "set-property": (lambda d, o: d.set_config(o["properties"]), frozenset({"properties"})),
    "unset-property": (lambda d, o: d.set_config(dict.fromkeys(o["names"])), frozenset({"names"})),
}
_CLAUSES = frozenset(
    f"{rows}_{action}"
    for rows in ("matched", "not_matched", "not_matched_by_source")
    for action in ("delete", "update", "update_all", "insert", "insert_all")
)
#: Each command, with the options that it takes.
_COMMANDS: Mapping[str, tuple[Callable[..., dict[str, Any]], frozenset[str]]] = {
    "alter": (_alter, frozenset()),
    "merge": (_merge, frozenset({"rows", "on", "dry_run"}) | _CLAUSES),
    "write": (_write, frozenset({"rows", "mode", "replace_where", "replace_using", "replace_on"})),
    "delete": (_delete, frozenset({"where", "every", "dry_run"})),
    "update": (_update, frozenset({"updates", "where", "every", "dry_run"})),
    "restore": (_restore, frozenset({"to_version", "to_timestamp"})),
    "optimize": (_optimize, frozenset({"target_size"})),
    "repair": (_repair, frozenset({"deep", "dry_run", "yes"})),
    "vacuum": (_vacuum, frozenset({"retention_hours", "dry_run", "yes"})),
}
CHANGES = frozenset(_COMMANDS)
#: Options that no user spells so.
_UNSHOWN = frozenset({"every", "updates", "rows", "change"})


def _reported(dataset: Any, operation: str, change: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    before = dataset.version
    metrics = {k: v for k, v in change().items() if k != "version"}
    if dataset.version == before:
        return {"version": before, "operation": None, "metrics": {}}
    return {"version": dataset.version, "operation": operation, "metrics": metrics}


def run_command(dataset: Any, command: str, options: Options, confirm: Confirm, progress: Progress) -> dict[str, Any]:
    """Run a command (`delta_core.formats.FormatTable.run_command`).

    Raises
    ------
    UnsupportedOperationError
        For an option that the command does not have on datasets.
    """
    run, known = _COMMANDS[command]
    if command != "alter":
        _check_options(command, options, known)
    return run(dataset, options, confirm, progress)


def _check_options(command: str, options: Options, known: frozenset[str]) -> None:
    for name in options:
        if name not in known:
            shown = ", ".join(f"--{n.replace('_', '-')}" for n in sorted(known - _UNSHOWN))
            raise UnsupportedOperationError(
                f"On a Lance dataset {command} has no option --{name.replace('_', '-')}. Leave it out; there are "
                f"{shown}.",
                operation=command,
            )
