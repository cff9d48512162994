"""The names that plugins import: those of the core, each loaded when it is first requested.

A plugin imports this module and `delta_core.kernels` only, its tests `delta_core.testing` too. A name here keeps its
meaning while `API_VERSION` stays the same.
"""

from __future__ import annotations

from delta_core.runtime.lazy import lazy_imports as lazy_imports

with lazy_imports(__name__):
    from delta_core.catalogs import (
        CatalogTable as CatalogTable,
        NameCatalog as NameCatalog,
        check_encodable as check_encodable,
        open_catalog as open_catalog,
        split_name as split_name,
    )
    from delta_core.engines.conditions import (
        ColumnTest as ColumnTest,
        JoinedTest as JoinedTest,
        NullTest as NullTest,
        RowCondition as RowCondition,
        ValueRange as ValueRange,
        ValueSet as ValueSet,
        passes_null as passes_null,
    )
    from delta_core.engines.engine import Engine as Engine
    from delta_core.engines.interface import Compiled as Compiled, Evaluator as Evaluator, Storage as Storage
    from delta_core.engines.opening import make_engine as make_engine
    from delta_core.engines.records import FolderFiles as FolderFiles, Listing as Listing, RangeRequest as RangeRequest
    from delta_core.errors import (
        AppendOnlyError as AppendOnlyError,
        CatalogAuthenticationError as CatalogAuthenticationError,
        CatalogConflictError as CatalogConflictError,
        CatalogError as CatalogError,
        CatalogNameNotFoundError as CatalogNameNotFoundError,
        CatalogPermissionError as CatalogPermissionError,
        CatalogRequiredError as CatalogRequiredError,
        CatalogResponseError as CatalogResponseError,
        CatalogUnavailableError as CatalogUnavailableError,
        ColumnNotFoundError as ColumnNotFoundError,
        CommitConflictError as CommitConflictError,
        CommitError as CommitError,
        CommitStateUnknownError as CommitStateUnknownError,
        ConstraintViolationError as ConstraintViolationError,
        CorruptTableError as CorruptTableError,
        DataFileError as DataFileError,
        DataFileNotFoundError as DataFileNotFoundError,
        DeltaError as DeltaError,
        EngineError as EngineError,
        ExpressionError as ExpressionError,
        FeatureRequirementError as FeatureRequirementError,
        InternalError as InternalError,
        InvalidArgumentError as InvalidArgumentError,
        InvalidPlaceError as InvalidPlaceError,
        LogError as LogError,
        MetadataChangedError as MetadataChangedError,
        MissingDependencyError as MissingDependencyError,
        ProtocolError as ProtocolError,
        SchemaError as SchemaError,
        SchemaMismatchError as SchemaMismatchError,
        TableExistsError as TableExistsError,
        TableNotFoundError as TableNotFoundError,
        TypeChangeError as TypeChangeError,
        UnsupportedExpressionError as UnsupportedExpressionError,
        UnsupportedFeatureError as UnsupportedFeatureError,
        UnsupportedOperationError as UnsupportedOperationError,
        VersionNotFoundError as VersionNotFoundError,
    )
    from delta_core.expressions.ast import (
        Call as Call,
        Cast as Cast,
        Column as Column,
        Expression as Expression,
        FileConstant as FileConstant,
        FileStatistic as FileStatistic,
        Leaf as Leaf,
        Literal as Literal,
        PartitionValue as PartitionValue,
        PhysicalColumn as PhysicalColumn,
        RowPosition as RowPosition,
        TaskCount as TaskCount,
        TaskIndex as TaskIndex,
        TaskRow as TaskRow,
        all_of as all_of,
        any_of as any_of,
        column as column,
        conjuncts as conjuncts,
        leaves as leaves,
        literal as literal,
        negate as negate,
        transform as transform,
        uses as uses,
    )
    from delta_core.expressions.binding import bind as bind, bind_typed as bind_typed
    from delta_core.expressions.coercion import common_type as common_type, same_type as same_type
    from delta_core.expressions.filters import to_expression as to_expression
    from delta_core.expressions.plugin_functions import Function as Function
    from delta_core.expressions.printing import format_sql as format_sql
    from delta_core.expressions.raising import may_raise as may_raise, types_in as types_in
    from delta_core.expressions.row_functions import RowFunction as RowFunction, row_function as row_function
    from delta_core.expressions.skipping import plan_skipping as plan_skipping
    from delta_core.expressions.sql import parse_sql as parse_sql, portable_sql as portable_sql
    from delta_core.formats import (
        ChangedTable as ChangedTable,
        ExchangeFormat as ExchangeFormat,
        FormatTable as FormatTable,
        SplitTable as SplitTable,
        SpreadFormat as SpreadFormat,
        SpreadPart as SpreadPart,
        SpreadWrite as SpreadWrite,
        TableFormat as TableFormat,
        format_named as format_named,
        format_of as format_of,
    )
    from delta_core.handles.opening import Opening as Opening
    from delta_core.handles.preview import table_page as table_page
    from delta_core.kernel.commit.committer import holds_transaction as holds_transaction
    from delta_core.kernel.commit.conflict import IsolationLevel as IsolationLevel
    from delta_core.kernel.commit.intents import REMOVED_FILE as REMOVED_FILE, removed_files as removed_files
    from delta_core.kernel.commit.loop import commit_loop as commit_loop
    from delta_core.kernel.commit.options import CommitProperties as CommitProperties
    from delta_core.kernel.commit.publishing import (
        Rejected as Rejected,
        Unsettled as Unsettled,
        prove_exclusive as prove_exclusive,
        publish_file as publish_file,
    )
    from delta_core.kernel.commit.transaction import Transaction as Transaction
    from delta_core.kernel.log.commits import Commit as Commit
    from delta_core.kernel.log.files import FileSet as FileSet
    from delta_core.kernel.log.names import (
        LOG_DIRECTORY as LOG_DIRECTORY,
        STAGED_DIRECTORY as STAGED_DIRECTORY,
        commit_name as commit_name,
    )
    from delta_core.kernel.log.paths import are_excluded as are_excluded
    from delta_core.kernel.log.timestamps import parse_ms as parse_ms, parse_version as parse_version
    from delta_core.kernel.plugins.attempt import AttemptView as AttemptView
    from delta_core.kernel.plugins.catalog import CommitSource as CommitSource, StagedCommit as StagedCommit
    from delta_core.kernel.plugins.checkpoint_plan import (
        SIDECAR_ACTIONS as SIDECAR_ACTIONS,
        CheckpointPlan as CheckpointPlan,
    )
    from delta_core.kernel.plugins.checks import (
        CommitCheck as CommitCheck,
        FileCheck as FileCheck,
        Finding as Finding,
        TableCheck as TableCheck,
        UniqueCheck as UniqueCheck,
    )
    from delta_core.kernel.plugins.committer import (
        Committed as Committed,
        Committer as Committer,
        Conflict as Conflict,
        Outcome as Outcome,
        Proposal as Proposal,
    )
    from delta_core.kernel.plugins.encodings import why_stored_otherwise as why_stored_otherwise
    from delta_core.kernel.plugins.features import (
        API_VERSION as API_VERSION,
        TableFeature as TableFeature,
        supported_features as supported_features,
    )
    from delta_core.kernel.plugins.hookspecs import hookimpl as hookimpl
    from delta_core.kernel.plugins.plans import ReadRequest as ReadRequest
    from delta_core.kernel.plugins.rules import (
        VECTOR_LOCATION as VECTOR_LOCATION,
        ActionColumn as ActionColumn,
        ChangeCapture as ChangeCapture,
        ChecksumField as ChecksumField,
        ColumnEncoding as ColumnEncoding,
        CommitInfoField as CommitInfoField,
        CommitRule as CommitRule,
        CommitSummary as CommitSummary,
        CommitTimestamp as CommitTimestamp,
        EncodedRows as EncodedRows,
        ExtraAction as ExtraAction,
        FileReference as FileReference,
        FileRequirement as FileRequirement,
        FillColumn as FillColumn,
        HiddenColumn as HiddenColumn,
        MetadataColumn as MetadataColumn,
        ReadCheck as ReadCheck,
        ReadRule as ReadRule,
        RemainingFilesCheck as RemainingFilesCheck,
        RemoveRows as RemoveRows,
        RowCheck as RowCheck,
        RowFilter as RowFilter,
        RowSelector as RowSelector,
        VectorBytes as VectorBytes,
        WriteRule as WriteRule,
    )
    from delta_core.kernel.plugins.state import TableState as TableState
    from delta_core.kernel.plugins.steps import (
        AddTombstones as AddTombstones,
        ChangeSchema as ChangeSchema,
        FeatureStep as FeatureStep,
        FeatureUse as FeatureUse,
        ReAddFiles as ReAddFiles,
        RemoveDomains as RemoveDomains,
        RemoveProperties as RemoveProperties,
        RewriteFiles as RewriteFiles,
        SetProperties as SetProperties,
    )
    from delta_core.kernel.protocol.actions import (
        ADD as ADD,
        DELETION_VECTOR as DELETION_VECTOR,
        FILE_COLUMNS as FILE_COLUMNS,
        ActionField as ActionField,
        ActionKind as ActionKind,
        DomainMetadata as DomainMetadata,
        Metadata as Metadata,
        Protocol as Protocol,
    )
    from delta_core.kernel.protocol.properties import parse_columns as parse_columns, read_property as read_property
    from delta_core.kernel.protocol.schema_history import why_unreadable as why_unreadable
    from delta_core.kernel.scan.plan import ROW_INDEX as ROW_INDEX
    from delta_core.kernel.scan.scan import Scan as Scan
    from delta_core.kernel.scan.scan_files import ScanFiles as ScanFiles
    from delta_core.kernel.snapshot import (
        Snapshot as Snapshot,
        TableContext as TableContext,
        open_context as open_context,
        open_snapshot as open_snapshot,
    )
    from delta_core.kernel.write.convert import conversion as conversion
    from delta_core.kernel.write.layout import arrow_type as arrow_type
    from delta_core.kernel.write.source import open_source as open_source
    from delta_core.operations.bins import Group as Group
    from delta_core.operations.changes import (
        FILE_NUMBER as FILE_NUMBER,
        Changed as Changed,
        ChangeOptions as ChangeOptions,
        Dropped as Dropped,
    )
    from delta_core.operations.create import create_table as create_table
    from delta_core.operations.delete import delete_rows as delete_rows
    from delta_core.operations.merge.builder import MergeClause as MergeClause, TableMerger as TableMerger
    from delta_core.operations.merge.operation import MergeOptions as MergeOptions, merge_rows as merge_rows
    from delta_core.operations.optimize import (
        Optimized as Optimized,
        OptimizeOptions as OptimizeOptions,
        optimize_table as optimize_table,
        plan_optimize as plan_optimize,
    )
    from delta_core.operations.progress import (
        OperationProgress as OperationProgress,
        ProgressReport as ProgressReport,
        report_rows as report_rows,
    )
    from delta_core.operations.replace import ReplaceRowsOptions as ReplaceRowsOptions, replace_rows as replace_rows
    from delta_core.operations.report.facts import (
        Compaction as Compaction,
        VersionSize as VersionSize,
        histogram as histogram,
        table_checks as table_checks,
    )
    from delta_core.operations.report.table_report import TableReport as TableReport
    from delta_core.operations.rewrites import RowOrder as RowOrder, Units as Units
    from delta_core.operations.sweep.deletion import delete_swept as delete_swept
    from delta_core.operations.sweep.found_files import FoundFiles as FoundFiles
    from delta_core.operations.sweep.listing import garbage as garbage
    from delta_core.operations.sweep.paths import PathSet as PathSet
    from delta_core.operations.temporary import temporary_files as temporary_files
    from delta_core.operations.update import UpdateOptions as UpdateOptions, update_rows as update_rows
    from delta_core.operations.verify.operation import VerifyReport as VerifyReport
    from delta_core.operations.write import WriteOptions as WriteOptions, write_table as write_table
    from delta_core.parquet.pages import ValueTest as ValueTest, compiled_test as compiled_test
    from delta_core.runtime.arguments import check_number as check_number, path_text as path_text
    from delta_core.runtime.json_text import decode_json as decode_json
    from delta_core.runtime.ordered import run_ordered as run_ordered, run_quick as run_quick
    from delta_core.runtime.processes import PerProcess as PerProcess
    from delta_core.runtime.progress_bars import progress_bar as progress_bar
    from delta_core.runtime.threads import num_cores as num_cores
    from delta_core.scan.exchange import (
        ColumnChange as ColumnChange,
        Incoming as Incoming,
        Outgoing as Outgoing,
        TableFacet as TableFacet,
    )
    from delta_core.scan.interop import require as require
    from delta_core.scan.interop.dataset_of_scan import scan_dataset as scan_dataset
    from delta_core.scan.interop.polars_source import scan_polars as scan_polars
    from delta_core.scan.report import (
        FileStep as FileStep,
        PredicatePart as PredicatePart,
        RunReport as RunReport,
        ScanReport as ScanReport,
    )
    from delta_core.scan.rows import PlannedRows as PlannedRows, Scannable as Scannable, Texts as Texts
    from delta_core.scan.sources import PhysicalSource as PhysicalSource
    from delta_core.scan.value_ranges import joined_test as joined_test, part_test as part_test
    from delta_core.schema.fields import (
        FIELD_ID as FIELD_ID,
        NOT_IN_NAMES as NOT_IN_NAMES,
        ColumnMap as ColumnMap,
        Path as Path,
        Schema as Schema,
        find as find,
        format_path as format_path,
        leaf_fields as leaf_fields,
        walk as walk,
        without_metadata as without_metadata,
    )
    from delta_core.schema.logical import (
        logical_type as logical_type,
        open_type as open_type,
        schema_of_arrow as schema_of_arrow,
    )
    from delta_core.schema.type_text import parse_type_text as parse_type_text
    from delta_core.schema.types import (
        KNOWN_TYPES as KNOWN_TYPES,
        TIMESTAMP_NTZ as TIMESTAMP_NTZ,
        VARIANT as VARIANT,
        ArrayType as ArrayType,
        DataType as DataType,
        Field as Field,
        MapType as MapType,
        PrimitiveType as PrimitiveType,
        StructType as StructType,
        TypeDef as TypeDef,
        arrow_to_type as arrow_to_type,
        parse_decimal as parse_decimal,
        spark_name as spark_name,
    )
    from delta_core.storage.dynamodb import (
        DynamoAccess as DynamoAccess,
        DynamoTable as DynamoTable,
        EntryTakenError as EntryTakenError,
        TableMissingError as TableMissingError,
        is_dynamo_rejection as is_dynamo_rejection,
        known_dynamo_options as known_dynamo_options,
    )
    from delta_core.storage.places import scheme_of as scheme_of
    from delta_core.storage.stores import open_storage as open_storage
