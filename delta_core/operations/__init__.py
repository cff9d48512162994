"""One module an operation. Names are resolved on first use, so that reading a table loads nothing of this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.kernel.commit.cleanup import clean_log
    from delta_core.kernel.commit.manifests import write_manifests
    from delta_core.kernel.log.checkpoint_writer import write_checkpoint
    from delta_core.operations.alter import (
        add_column,
        add_columns,
        change_column_metadata,
        drop_columns,
        drop_not_null,
        move_column,
        rename_column,
        set_not_null,
        set_properties,
        set_table_texts,
        unset_properties,
        widen_type,
    )
    from delta_core.operations.auto_compact import compact_after
    from delta_core.operations.backfill import BackfillOptions, backfill_statistics
    from delta_core.operations.changes import ChangeOptions
    from delta_core.operations.clone import CloneOptions, clone_table
    from delta_core.operations.compact_log import compact_log
    from delta_core.operations.convert import ConvertOptions, convert_folder
    from delta_core.operations.create import column_names, create_table
    from delta_core.operations.delete import count_selected, delete_rows
    from delta_core.operations.feature.add import add_features, list_features, protocol_with
    from delta_core.operations.feature.drop import DropFeatureOptions, drop_feature
    from delta_core.operations.follow import FollowOptions, StreamBatch, TableStream
    from delta_core.operations.merge.operation import MergeOptions, merge_rows
    from delta_core.operations.optimize import OptimizeOptions, optimize_table, plan_optimize
    from delta_core.operations.progress import OperationProgress, report_rows
    from delta_core.operations.register import register_files
    from delta_core.operations.replace import ReplaceOptions, write_replacing
    from delta_core.operations.restore import RestoreOptions, restore_table
    from delta_core.operations.update import UpdateOptions, update_rows
    from delta_core.operations.vacuum.operation import (
        VacuumOptions,
        VacuumPlan,
        VacuumProgress,
        plan_vacuum,
        run_vacuum,
    )
    from delta_core.operations.verify.operation import VerifyOptions, VerifyReport, verify_table
    from delta_core.operations.verify.repair import RepairOptions, repair_table
    from delta_core.operations.write import WriteOptions, write_table

__all__ = [
    "BackfillOptions",
    "ChangeOptions",
    "CloneOptions",
    "ConvertOptions",
    "DropFeatureOptions",
    "FollowOptions",
    "OptimizeOptions",
    "OperationProgress",
    "MergeOptions",
    "ReplaceOptions",
    "RepairOptions",
    "RestoreOptions",
    "StreamBatch",
    "TableStream",
    "UpdateOptions",
    "VacuumOptions",
    "VacuumPlan",
    "VacuumProgress",
    "VerifyOptions",
    "VerifyReport",
    "WriteOptions",
    "add_column",
    "add_columns",
    "add_features",
    "list_features",
    "change_column_metadata",
    "backfill_statistics",
    "clean_log",
    "clone_table",
    "column_names",
    "convert_folder",
    "compact_log",
    "compact_after",
    "create_table",
    "count_selected",
    "delete_rows",
    "drop_columns",
    "drop_feature",
    "drop_not_null",
    "move_column",
    "optimize_table",
    "plan_optimize",
    "plan_vacuum",
    "merge_rows",
    "protocol_with",
    "register_files",
    "report_rows",
    "rename_column",
    "repair_table",
    "restore_table",
    "run_vacuum",
    "set_not_null",
    "set_properties",
    "set_table_texts",
    "unset_properties",
    "update_rows",
    "verify_table",
    "widen_type",
    "write_checkpoint",
    "write_manifests",
    "write_replacing",
    "write_table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.kernel.log.checkpoint_writer": "write_checkpoint",
        "delta_core.operations.alter": (
            "add_column add_columns change_column_metadata drop_columns drop_not_null move_column rename_column "
            "set_not_null set_properties set_table_texts unset_properties widen_type"
        ),
        "delta_core.kernel.commit.cleanup": "clean_log",
        "delta_core.kernel.commit.manifests": "write_manifests",
        "delta_core.operations.backfill": "BackfillOptions backfill_statistics",
        "delta_core.operations.clone": "CloneOptions clone_table",
        "delta_core.operations.compact_log": "compact_log",
        "delta_core.operations.auto_compact": "compact_after",
        "delta_core.operations.convert": "ConvertOptions convert_folder",
        "delta_core.operations.create": "column_names create_table",
        "delta_core.operations.delete": "count_selected delete_rows",
        "delta_core.operations.feature.drop": "DropFeatureOptions drop_feature",
        "delta_core.operations.feature.add": "add_features list_features protocol_with",
        "delta_core.operations.follow": "FollowOptions StreamBatch TableStream",
        "delta_core.operations.optimize": "OptimizeOptions optimize_table plan_optimize",
        "delta_core.operations.merge.operation": "MergeOptions merge_rows",
        "delta_core.operations.progress": "OperationProgress report_rows",
        "delta_core.operations.register": "register_files",
        "delta_core.operations.replace": "ReplaceOptions write_replacing",
        "delta_core.operations.verify.repair": "RepairOptions repair_table",
        "delta_core.operations.restore": "RestoreOptions restore_table",
        "delta_core.operations.changes": "ChangeOptions",
        "delta_core.operations.update": "UpdateOptions update_rows",
        "delta_core.operations.vacuum.operation": "VacuumOptions VacuumPlan VacuumProgress plan_vacuum run_vacuum",
        "delta_core.operations.verify.operation": "VerifyOptions VerifyReport verify_table",
        "delta_core.operations.write": "WriteOptions write_table",
    },
)
