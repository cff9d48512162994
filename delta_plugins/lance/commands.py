"""The commands of the command line that change a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from delta_core.api import InvalidArgumentError, UnsupportedOperationError

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


#: Each command, with the options that it takes.
_COMMANDS: Mapping[str, tuple[Callable[..., dict[str, Any]], frozenset[str]]] = {
    "delete": (_delete, frozenset({"where", "every", "dry_run"})),
    "update": (_update, frozenset({"updates", "where", "every", "dry_run"})),
    "restore": (_restore, frozenset({"to_version", "to_timestamp"})),
    "optimize": (_optimize, frozenset({"target_size"})),
    "repair": (_repair, frozenset({"deep", "dry_run", "yes"})),
    "vacuum": (_vacuum, frozenset({"retention_hours", "dry_run", "yes"})),
}
CHANGES = frozenset(_COMMANDS)


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
    for name in options:
        if name not in known:
            shown = ", ".join(f"--{n.replace('_', '-')}" for n in sorted(known - {"every", "updates"}))
            raise UnsupportedOperationError(
                f"On a Lance dataset {command} has no option --{name.replace('_', '-')}. Leave it out; there are "
                f"{shown}.",
                operation=command,
            )
    return run(dataset, options, confirm, progress)
