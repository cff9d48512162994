"""One module an operation. Names are resolved on first use, so that reading a table loads nothing of this."""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports

with lazy_imports(__name__):
    from delta_core.kernel.commit.cleanup import clean_log as clean_log
    from delta_core.kernel.commit.manifests import write_manifests as write_manifests
    from delta_core.kernel.log.checkpoint_writer import write_checkpoint as write_checkpoint
    from delta_core.operations.alter import (
        add_column as add_column,
        add_columns as add_columns,
        change_column_metadata as change_column_metadata,
        drop_columns as drop_columns,
        drop_not_null as drop_not_null,
        move_column as move_column,
        rename_column as rename_column,
        set_not_null as set_not_null,
        set_properties as set_properties,
        set_table_texts as set_table_texts,
        unset_properties as unset_properties,
        widen_type as widen_type,
    )
    from delta_core.operations.auto_compact import compact_after as compact_after
    from delta_core.operations.backfill import (
        BackfillOptions as BackfillOptions,
        backfill_statistics as backfill_statistics,
    )
    from delta_core.operations.changes import ChangeOptions as ChangeOptions
    from delta_core.operations.clone import CloneOptions as CloneOptions, clone_table as clone_table
    from delta_core.operations.compact_log import compact_log as compact_log
    from delta_core.operations.convert import ConvertOptions as ConvertOptions, convert_folder as convert_folder
    from delta_core.operations.convert_format import (
        Conversion as Conversion,
        ConversionOptions as ConversionOptions,
        convert_table as convert_table,
        folder_snapshot as folder_snapshot,
    )
    from delta_core.operations.create import column_names as column_names, create_table as create_table
    from delta_core.operations.delete import count_selected as count_selected, delete_rows as delete_rows
    from delta_core.operations.feature.add import (
        add_features as add_features,
        list_features as list_features,
        protocol_with as protocol_with,
    )
    from delta_core.operations.feature.drop import (
        DropFeatureOptions as DropFeatureOptions,
        drop_feature as drop_feature,
        end_features as end_features,
    )
    from delta_core.operations.follow import (
        FollowOptions as FollowOptions,
        StreamBatch as StreamBatch,
        TableStream as TableStream,
    )
    from delta_core.operations.merge.operation import MergeOptions as MergeOptions, merge_rows as merge_rows
    from delta_core.operations.optimize import (
        OptimizeOptions as OptimizeOptions,
        optimize_table as optimize_table,
        plan_optimize as plan_optimize,
    )
    from delta_core.operations.progress import (
        OperationProgress as OperationProgress,
        VacuumProgress as VacuumProgress,
        report_rows as report_rows,
    )
    from delta_core.operations.register import register_files as register_files
    from delta_core.operations.replace import ReplaceOptions as ReplaceOptions, write_replacing as write_replacing
    from delta_core.operations.restore import RestoreOptions as RestoreOptions, restore_table as restore_table
    from delta_core.operations.update import UpdateOptions as UpdateOptions, update_rows as update_rows
    from delta_core.operations.vacuum.operation import (
        VacuumOptions as VacuumOptions,
        VacuumPlan as VacuumPlan,
        plan_vacuum as plan_vacuum,
        run_vacuum as run_vacuum,
    )
    from delta_core.operations.verify.operation import (
        VerifyOptions as VerifyOptions,
        VerifyReport as VerifyReport,
        verify_table as verify_table,
    )
    from delta_core.operations.verify.repair import RepairOptions as RepairOptions, repair_table as repair_table
    from delta_core.operations.write import WriteOptions as WriteOptions, write_table as write_table
    from delta_core.runtime.progress_bars import progress_bar as progress_bar
