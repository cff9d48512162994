"""Upkeep of a table: its files written again, its log shortened, old files deleted, damage found and repaired."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from delta_core import operations
from delta_core.errors import InvalidArgumentError
from delta_core.kernel import log as delta_log
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.runtime.arguments import path_text, properties_by_position
from delta_core.table import parts as table_parts
from delta_core.table.opened_table import OpenedTable

if TYPE_CHECKING:
    from delta_core.expressions.filters import PredicateLike
    from delta_core.operations.verify.operation import VerifyReport
    from delta_core.table.parts import CommitProperties, PostCommitHookProperties, TableOptimizer, TableReport

__all__ = ["UpkeepMethods"]


class UpkeepMethods(OpenedTable):
    """Upkeep: no method changes the rows of the latest version."""

    @property
    def optimize(self) -> TableOptimizer:
        """Calls that write files again without changing rows, such as ``table.optimize.compact()``.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        """
        return table_parts.TableOptimizer(self)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that is loaded.

        Examples
        --------
        >>> table.create_checkpoint()
        >>> DeltaTable("table").snapshot().segment.checkpoint.version
        1
        """
        operations.write_checkpoint(self._snapshot)

    def compute_statistics(
        self,
        predicate: PredicateLike | None = None,
        *,
        every: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[operations.OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Add statistics to files that lack them, from their footers; no rows are read or written.

        Parameters
        ----------
        predicate : str, filters, Expression or pyarrow.compute.Expression, optional
            On partition columns: other files are left alone.
        every : bool
            Whether files that have statistics get them again, such as after ``delta.dataSkippingStatsColumns`` changed.
        dry_run : bool
            Whether files are only counted.
        commit_properties : CommitProperties, optional
            Custom metadata of the commits, and how often each is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.
        progress : function(OperationProgress), optional
            Called while footers are read (step ``find``).

        Returns
        -------
        dict
            ``num_files``: files that got other statistics; with ``dry_run`` those that would be looked at.

        Raises
        ------
        InvalidArgumentError
            The predicate names other columns than those that partition the table.
        DataFileNotFoundError, DataFileError
            A file is gone, or is no Parquet file. Files of earlier commits have their statistics.
        CommitConflictError
            Other writers changed the same files at each attempt. Call it again: it goes on with what is left.

        Examples
        --------
        >>> table.compute_statistics(every=True, dry_run=True)
        {'num_files': 2}
        """
        options = operations.BackfillOptions(
            predicate,
            every,
            dry_run,
            table_parts.commit_arguments(commit_properties, post_commithook_properties),
            progress,
        )
        done = operations.backfill_statistics(self._snapshot, options)
        if not dry_run:
            self.adopt(done.snapshot)
        return {"num_files": done.num_files}

    def generate(self, mode: Literal["symlink_format_manifest"] = "symlink_format_manifest") -> None:
        """Write symlink manifests: the files of the latest version by partition, for engines that can't read the log.

        Parameters
        ----------
        mode : str
            ``symlink_format_manifest``, the only one.

        Raises
        ------
        InvalidArgumentError
            For another mode.
        UnsupportedOperationError
            Files have deleted rows, or columns under other names than the table: engines would read wrong rows.

        Notes
        -----
        With the table property ``delta.compatibility.symlinkFormatManifest.enabled``, each commit writes the manifests
        of the partitions that it touches.

        Examples
        --------
        >>> from pathlib import Path
        >>> by_city.generate()
        >>> sorted(place.name for place in Path("by_city/_symlink_format_manifest").iterdir())
        ['city=Oslo', 'city=Rome']
        """
        if mode != "symlink_format_manifest":
            raise InvalidArgumentError(f"Found mode {mode!r}, expected 'symlink_format_manifest'.")
        operations.write_manifests(self._snapshot)

    def cleanup_metadata(self) -> None:
        """Delete files of the log that are older than ``delta.logRetentionDuration`` and that no version since needs.

        Raises
        ------
        UnsupportedOperationError
            ``delta.enableExpiredLogCleanup`` is false, or a catalog does not allow it.
        EngineError
            Files can't be deleted; the table reads as before.

        Examples
        --------
        >>> table.cleanup_metadata()  # no file of the log is as old as delta.logRetentionDuration
        >>> table.history()[-1]["version"]
        0
        """
        operations.clean_log(self._snapshot)

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write the actions of a range of commits into one file of the log, which may be read instead of these.

        Parameters
        ----------
        starting_version, ending_version : int
            The first and the last version.

        Raises
        ------
        InvalidArgumentError
            The range has not at least two versions.
        VersionNotFoundError
            A commit of the range is not in the log.
        UnsupportedOperationError
            A catalog does not allow it.

        Examples
        --------
        >>> from pathlib import Path
        >>> table.compact_logs(0, 1)
        >>> [file.name for file in Path("table/_delta_log").glob("*.compacted.json")]
        ['00000000000000000000.00000000000000000001.compacted.json']
        """
        start, end = (
            delta_log.parse_version(starting_version, "starting_version"),
            delta_log.parse_version(ending_version, "ending_version"),
        )
        with operations.progress_bar() as progress:
            operations.compact_log(self._snapshot.update(), start, end, progress=progress)

    def plan_vacuum(
        self,
        retention_hours: float | None = None,
        enforce_retention_duration: bool = True,
        *,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        keep_for: Sequence[str | os.PathLike[str]] = (),
        inventory: Any = None,
    ) -> operations.VacuumPlan:
        """Find the files that a vacuum would delete, to look at them, save them or delete them later; changes nothing.

        Parameters as of `vacuum`, which runs the plan (``plan=``).

        Parameters
        ----------
        retention_hours, enforce_retention_duration, full, keep_versions, keep_for, inventory : optional
            As for `vacuum`.

        Raises
        ------
        InvalidArgumentError
            The retention is negative, or shorter than the table's and that is enforced; or the inventory lacks a
            column.
        UnsupportedOperationError
            A catalog does not allow it, or the log does not name all removed files, so that ``full=True`` is needed.
        VersionNotFoundError
            A version that is to be kept can't be built any more.

        Examples
        --------
        >>> table.delete()["num_deleted_rows"]
        3
        >>> table.plan_vacuum(retention_hours=0, enforce_retention_duration=False).num_files
        2
        """
        return operations.plan_vacuum(
            self._snapshot,
            operations.VacuumOptions(
                retention_hours,
                enforce_retention_duration,
                not full,
                tuple(delta_log.parse_version(v, "version in keep_versions") for v in keep_versions or ()),
                self._kept_for(keep_for),
                None if inventory is None else pa.table(inventory),
            ),
        )

    def _kept_for(self, uris: Sequence[str | os.PathLike[str]]) -> tuple[Snapshot, ...]:
        """Open other tables as this one was."""
        if isinstance(uris, (str, os.PathLike)):
            raise InvalidArgumentError(f"Found keep_for={uris!r}, expected a list of tables.")
        opening = self._snapshot.context.opening
        options = None if opening is None else opening.storage_options
        return tuple(
            open_snapshot(path_text(u), storage_options=options, plugins=self._snapshot.registry) for u in uris
        )

    @properties_by_position("post_commithook_properties", "commit_properties", "full", "keep_versions")
    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        keep_for: Sequence[str | os.PathLike[str]] = (),
        inventory: Any = None,
        plan: operations.VacuumPlan | str | os.PathLike[str] | None = None,
        progress: Callable[[operations.VacuumProgress], None] | None = None,
    ) -> list[str]:
        """Delete files below the table's root that no version within the retention needs.

        Parameters
        ----------
        retention_hours : float, optional
            Files that were removed or written since stay; the table's ``delta.deletedFileRetentionDuration`` (a week by
            default) unless given. 0 is unsafe while others write: their files that no commit names yet are deleted too.
        dry_run : bool
            Whether the files are only listed.
        enforce_retention_duration : bool
            Whether a shorter retention than the table's is rejected.
        commit_properties : CommitProperties, optional
            Custom metadata of the two commits that record the vacuum, and how often they are tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows these commits.
        full : bool
            Whether all files below the root are looked at; otherwise those that the log names as removed since the last
            vacuum.
        keep_versions : sequence of int, optional
            Versions whose files stay, whatever their age.
        keep_for : sequence of str or path
            Other tables whose files stay, such as shallow clones: a table has no list of its clones.
        inventory : pyarrow.Table, optional
            The files of the root, instead of a listing: ``path``, ``size`` and ``modification_time``; any object with
            Arrow's stream interface.
        plan : VacuumPlan or path, optional
            The result of `plan_vacuum`, or the file that it was saved to: these files are deleted, but for those that
            have become reachable. No other argument may specify files then.
        progress : function(VacuumProgress), optional
            Called from time to time while files are deleted.

        Returns
        -------
        list of str
            The files, from the table's root; empty folders, which are deleted too, end with a slash.

        Raises
        ------
        InvalidArgumentError
            As `plan_vacuum`; or both a plan and what specifies files were given.
        UnsupportedOperationError
            As `plan_vacuum`.
        MetadataChangedError
            The plan is one of another table.
        EngineError
            Files can't be deleted, or the clock of this machine is ahead of the store's.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False))
        2
        """
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        if plan is None:
            plan = self.plan_vacuum(
                retention_hours,
                enforce_retention_duration,
                full=full,
                keep_versions=keep_versions,
                keep_for=keep_for,
                inventory=inventory,
            )
        elif retention_hours is not None or full or keep_versions or keep_for or inventory is not None:
            raise InvalidArgumentError(
                "Found a plan beside retention_hours, full, keep_versions, keep_for or inventory; a plan specifies its "
                "files itself."
            )
        else:
            plan = plan if isinstance(plan, operations.VacuumPlan) else operations.VacuumPlan.load(plan)
        if not dry_run:
            others = self._kept_for(plan.facts.keep_for)
            options = operations.VacuumOptions(keep_for=others, commit=commit, progress=progress)
            self.adopt(operations.run_vacuum(self._snapshot, plan, options).snapshot)
        return plan.paths()

    # --- damage ---

    def verify(
        self,
        *,
        deep: bool | Literal["rows"] = False,
        data: bool = True,
        versions: Sequence[int] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> VerifyReport:
        """Check the log, the definition and the files of the table against the rules of the protocol; changes nothing.

        Parameters
        ----------
        deep : bool or "rows"
            True compares the statistics with the footers of the data files, "rows" with their rows, which it reads all.
        data : bool
            Whether to look for the data files and read deletion vectors; False reads the log only.
        versions : sequence of int, optional
            The versions whose files are checked; the one that is loaded unless given.
        progress : function(str, int, int), optional
            Called with the name of a step, how much of it is done and how much there is; on any thread.

        Returns
        -------
        VerifyReport
            ``ok``, ``findings`` (an Arrow table), ``to_text()``, ``to_json()``.

        Raises
        ------
        InvalidArgumentError
            For another value of ``deep``, or deep without data.
        EngineError
            If the store fails.

        Examples
        --------
        >>> table.verify().ok
        True
        """
        options = operations.VerifyOptions(deep, data, versions, progress)
        return operations.verify_table(self._snapshot.context, self._snapshot, options)

    def report(self, *, store: bool = True) -> TableReport:
        """Return how the table is: sizes, versions, order, statistics, upkeep and findings; no data file is read.

        ``print(table.report())`` shows its health in ten lines, ``table.report().save("report.html")`` writes a page.

        Parameters
        ----------
        store : bool
            Whether to list the store, for files that are missing and for those that a vacuum would delete.

        Raises
        ------
        EngineError
            If the store fails.

        Examples
        --------
        >>> table.report().rows
        3
        """
        return table_parts.report_of(self._snapshot, store=store)

    @properties_by_position("post_commithook_properties", "commit_properties")
    def repair(
        self,
        dry_run: bool = False,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        deep: bool = False,
        confirm: Callable[[dict[str, Any]], bool] | None = None,
    ) -> dict[str, Any]:
        """Remove the entries of data files that are not there, and mend what of the log can be mended with certainty.

        Where files of the log differ, the commits are believed if nothing is wrong with them, another witness (a
        checkpoint, a checksum, a compacted file, the data files that exist) confirms them and none contradicts them.
        Otherwise nothing is changed, and a step ``none`` reports it. Replaced and deleted files stay in a folder
        below ``_delta_log/_replaced``, which the step names.

        Parameters
        ----------
        dry_run : bool
            Whether nothing is changed, and only the steps are returned.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        deep : bool
            Whether the footers of the data files are read, and statistics that contradict them are replaced.
        confirm : function(dict) -> bool, optional
            Called with each step that changes something, before it is done. One for which it returns False is left out.

        Returns
        -------
        dict
            ``dry_run``; ``files_removed``, the paths whose entries were removed; and ``steps``, each with ``step``,
            ``reason``, ``file`` and ``kept``, the folder with what was replaced. The step ``none`` names what can't be
            mended, or where it is not certain what is right.

        Raises
        ------
        UnsupportedOperationError
            The table is append-only and files are missing.
        CommitConflictError
            Another writer removed the same files meanwhile.
        EngineError
            If the store fails.

        Examples
        --------
        >>> table.repair(dry_run=True)
        {'dry_run': True, 'files_removed': [], 'steps': []}
        """
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        asked = None if confirm is None else lambda step: confirm(step.to_dict())
        done = operations.repair_table(self._snapshot, operations.RepairOptions(dry_run, deep, commit, asked))
        if not dry_run:
            self.adopt(done.snapshot)
        steps = [s.to_dict() for s in done.steps]
        return {"dry_run": dry_run, "files_removed": done.files_removed, "steps": steps}
