-- allowArbitraryProperties.enabled
CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.own' = '1');
SELECT * FROM {t};

-- alterTable.bypassCharVarcharToStringFix
CREATE TABLE {n} (id INT, s VARCHAR(3)) USING delta;
ALTER TABLE {n} ALTER COLUMN s TYPE STRING;
INSERT INTO {n} VALUES (1, 'abc');
SELECT * FROM {n};

-- alterTable.changeColumn.checkExpressions
CREATE TABLE {n} (id INT, s INT) USING delta;
ALTER TABLE {n} ADD CONSTRAINT c CHECK (s > 0);
ALTER TABLE {n} ALTER COLUMN s COMMENT 'x';
INSERT INTO {n} VALUES (1, 1);
SELECT * FROM {n};

-- alterTable.dropColumn.enabled
CREATE TABLE {n} (id INT, s INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE {n} DROP COLUMN s;
SELECT * FROM {n};

-- changeColumn.checkDependentExpressionsUseV2
CREATE TABLE {n} (id INT, s INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE {n} ADD CONSTRAINT c CHECK (s > 0);
ALTER TABLE {n} RENAME COLUMN s TO r;

-- changeColumn.renameColumnEscapeName
CREATE TABLE {n} (id INT, `a.b` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE {n} RENAME COLUMN id TO i;
INSERT INTO {n} VALUES (1, 2);
SELECT * FROM {n};

-- changeDataFeed.allowTimeTravelOptionsForSchema
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1);
SELECT id, _change_type FROM table_changes('{n}', 0);

-- changeDataFeed.defaultSchemaModeForColumnMappingTable
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name');
INSERT INTO {n} VALUES (1);
ALTER TABLE {n} ADD COLUMN b INT;
SELECT * EXCEPT (_commit_timestamp) FROM table_changes('{n}', 0, 1);

-- changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled
CREATE TABLE {n} (id INT, b INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name');
INSERT INTO {n} VALUES (1, 2);
ALTER TABLE {n} RENAME COLUMN b TO c;
SELECT * EXCEPT (_commit_timestamp) FROM table_changes('{n}', 0);

-- changeDataFeed.timestampOutOfRange.enabled
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1);
SELECT id, _change_type FROM table_changes('{n}', '2100-01-01');

-- clone.replaceEnabled
CREATE TABLE {n} USING delta AS SELECT 1 AS id;
CREATE TABLE {m} USING delta AS SELECT 2 AS id;
CREATE OR REPLACE TABLE {m} SHALLOW CLONE {n};
SELECT * FROM {m};

-- clusteredTable.numClusteringColumnsLimit
CREATE TABLE {t} (a INT, b INT) USING delta CLUSTER BY (a, b);
SELECT * FROM {t};

-- columnMapping.allowRemoval
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE {n} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none');
SELECT * FROM {n};

-- columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists
CREATE TABLE {n} USING delta AS SELECT 1 AS id;
ALTER TABLE {n} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
SELECT * FROM {n};

-- columnMapping.reuseColumnMetadataDuringOverwrite
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT 1 AS id;
INSERT OVERWRITE {t} SELECT 2;
SELECT * FROM {t};

-- columnMapping.reuseColumnMetadataDuringReplace
CREATE TABLE {n} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT 1 AS id;
CREATE OR REPLACE TABLE {n} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT 2 AS id;
SELECT * FROM {n};

-- commitInfo.userMetadata
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
DESCRIBE HISTORY {t} -> userMetadata;

-- constraints.allowUnenforcedNotNull.enabled
CREATE TABLE {t} (a ARRAY<STRUCT<b: INT NOT NULL>>) USING delta;
SELECT * FROM {t};

-- constraints.assumesDropIfExists.enabled
CREATE TABLE {t} (a INT) USING delta;
ALTER TABLE {t} DROP CONSTRAINT c;
SELECT * FROM {t};

-- convert.partitionValues.ignoreCastFailure
CREATE TABLE {m} USING parquet PARTITIONED BY (p) LOCATION '{q}' AS SELECT 1 AS id, 'x' AS p;
CONVERT TO DELTA parquet.`{q}` PARTITIONED BY (p INT);
SELECT * FROM delta.`{q}`;

-- convertEmptyToNullForStringPartitionCol
CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, '' AS p;
SELECT id, p IS NULL FROM {t};

-- createEmptySchemaTable.enabled
CREATE TABLE {n} USING delta;
DESCRIBE TABLE {n};

-- delete.allowExistsSubquery
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
DELETE FROM {t} WHERE EXISTS (SELECT 1);
SELECT * FROM {t};

-- delete.deletionVectors.persistent
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT id FROM range(9);
DELETE FROM {t} WHERE id = 1;
DESCRIBE HISTORY {t} LIMIT 1 -> operationMetrics['numDeletionVectorsAdded'];

-- update.deletionVectors.persistent
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT id FROM range(9);
UPDATE {t} SET id = 9 WHERE id = 1;
DESCRIBE HISTORY {t} LIMIT 1 -> operationMetrics['numDeletionVectorsAdded'];

-- merge.deletionVectors.persistent
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS SELECT id FROM range(9);
MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;
DESCRIBE HISTORY {t} LIMIT 1 -> operationMetrics['numTargetDeletionVectorsAdded'];

-- dynamicPartitionOverwrite.enabled
CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT id, id AS p FROM range(3);
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE {t} SELECT 9L, 1L;
SET spark.sql.sources.partitionOverwriteMode = static;
SELECT * FROM {t};

-- dynamicPartitionOverwrite.parsePartitionValues
CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT id, id AS p FROM range(3);
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE {t} SELECT 9L, 1L;
SET spark.sql.sources.partitionOverwriteMode = static;
SELECT * FROM {t};

-- generatedColumn.allowNullableIngest.enabled
CREATE TABLE {n} (a INT, b INT NOT NULL GENERATED ALWAYS AS (a + 1)) USING delta;
INSERT INTO {n} (a) VALUES (1);
SELECT * FROM {n};

-- identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled
CREATE TABLE {n} (a BIGINT GENERATED BY DEFAULT AS IDENTITY, b INT) USING delta;
INSERT INTO {n} (b) VALUES (1);
ALTER TABLE {n} ALTER COLUMN a SYNC IDENTITY;
SELECT b FROM {n};

-- identityColumn.enabled
CREATE TABLE {n} (a BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING delta;
SELECT * FROM {n};

-- insert.byName.schemaEvolution.enabled
CREATE TABLE {n} (a INT) USING delta;
SET spark.databricks.delta.schema.autoMerge.enabled = true;
INSERT INTO {n} BY NAME SELECT 1 AS a, 2 AS b;
SELECT * FROM {n};

-- insert.preserveNullSourceStructs
CREATE TABLE {n} (id INT, s STRUCT<a: INT, b: INT>) USING delta;
INSERT INTO {n} SELECT 1, CAST(NULL AS STRUCT<a: BIGINT, b: BIGINT>);
SELECT id, s IS NULL FROM {n};

-- merge.preserveNullSourceStructs
CREATE TABLE {n} (id INT, s STRUCT<a: INT, b: INT>) USING delta;
MERGE INTO {n} t USING (SELECT 1 AS id, CAST(NULL AS STRUCT<b: INT, a: INT>) AS s) u ON t.id = u.id WHEN NOT MATCHED THEN INSERT *;
SELECT id, s IS NULL FROM {n};

-- legacy.allowAmbiguousPathsInCreateTable
CREATE TABLE delta.`{p}` (id INT) USING delta LOCATION '{q}';

-- legacy.storeOptionsAsProperties
CREATE TABLE {n} (id INT) USING delta OPTIONS (own = 'x');
DESCRIBE DETAIL {n} -> properties['own'], properties['option.own'];

-- liquid.alterColumnAfter.statsSchemaCheck
CREATE TABLE {n} (id INT, b INT) USING delta CLUSTER BY (b);
ALTER TABLE {n} ALTER COLUMN id AFTER b;
INSERT INTO {n} VALUES (1, 2);
SELECT * FROM {n};

-- merge.insert.fixCaseSensitiveDuplicateColumns
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
MERGE INTO {t} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
SELECT * FROM {t};

-- optimize.minFileSize
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
INSERT INTO {t} VALUES (2);
OPTIMIZE {t} -> metrics.numFilesRemoved;

-- partitionColumnValidity.enabled
CREATE TABLE {t} (id INT, p INT) USING delta PARTITIONED BY (x);
SELECT * FROM {t};

-- properties.defaults.minReaderVersion
CREATE TABLE {t} (id INT) USING delta;
DESCRIBE DETAIL {t} -> minReaderVersion;

-- properties.defaults.minWriterVersion
CREATE TABLE {t} (id INT) USING delta;
DESCRIBE DETAIL {t} -> minWriterVersion;

-- replace.protocolDowngradeAllowed
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
CREATE OR REPLACE TABLE {n} (id INT) USING delta;
DESCRIBE DETAIL {n} -> minReaderVersion;

-- restore.protocolDowngradeAllowed
CREATE TABLE {n} (id INT) USING delta;
ALTER TABLE {n} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
RESTORE TABLE {n} TO VERSION AS OF 0;
DESCRIBE DETAIL {n} -> minReaderVersion;

-- resolveMergeUpdateStructsByName.enabled
CREATE TABLE {n} (id INT, s STRUCT<a: INT, b: INT>) USING delta;
INSERT INTO {n} VALUES (1, struct(1, 2));
MERGE INTO {n} t USING (SELECT 1 AS id, named_struct('b', 3, 'a', 4) AS s) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = u.s;
SELECT s.a, s.b FROM {n};

-- retentionDurationCheck.enabled
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
DELETE FROM {t};
VACUUM {t} RETAIN 0 HOURS;
SELECT * FROM {t};

-- rowTracking.backfill.enabled
CREATE TABLE {n} USING delta AS SELECT 1 AS id;
ALTER TABLE {n} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true');
SELECT id, _metadata.row_id FROM {n};

-- schema.autoMerge.enabled
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
MERGE INTO {t} t USING (SELECT 2 AS id, 3 AS b) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM {t};

-- skipRecordingEmptyCommits
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
DELETE FROM {t} WHERE id = 7;
DESCRIBE HISTORY {t} -> version;

-- tableFeatures.fastDropFeature.enabled
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
ALTER TABLE {n} DROP FEATURE deletionVectors;
SELECT * FROM {n};

-- tableFeatures.fastDropFeature.generateDVTombstones.enabled
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
ALTER TABLE {n} DROP FEATURE deletionVectors;
SELECT * FROM {n};

-- timeTravel.resolveOnIdentifier.enabled
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
SELECT * FROM delta.`{p}@v0`;

-- typeWidening.allowAutomaticWidening
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true') AS SELECT 1 AS id;
SET spark.databricks.delta.schema.autoMerge.enabled = true;
INSERT INTO {t} SELECT 5000000000L;
SELECT * FROM {t};

-- typeWidening.allowIntegralDecimalCoercion
CREATE TABLE {t} USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true') AS SELECT 1 AS id;
SET spark.databricks.delta.schema.autoMerge.enabled = true;
INSERT INTO {t} SELECT 1.5BD;
SELECT *, typeof(id) FROM {t};

-- typeWidening.bypassUnsupportedTypeChangeCheck
CREATE TABLE {n} USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true') AS SELECT 1 AS id;
ALTER TABLE {n} ALTER COLUMN id TYPE BIGINT;
SELECT * FROM {n};

-- updateAndMergeCastingFollowsAnsiEnabledFlag
CREATE TABLE {t} USING delta AS SELECT 1Y AS id;
SET spark.sql.ansi.enabled = false;
UPDATE {t} SET id = 1000;
SELECT * FROM {t};

-- vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
INSERT INTO {t} VALUES (2);
SELECT * FROM {t} VERSION AS OF 0;

-- vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility
CREATE TABLE {n} (id INT) USING delta;
ALTER TABLE {n} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 60 days');
SELECT * FROM {n};

-- vacuum.retentionWindowIgnore.enabled
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
SET spark.databricks.delta.retentionDurationCheck.enabled = false;
VACUUM {t} RETAIN 0 HOURS;
SELECT * FROM {t};

-- vacuum.lite.enabled
CREATE TABLE {t} USING delta AS SELECT 1 AS id;
VACUUM {t} LITE;
SELECT * FROM {t};

-- write.utcTimestampPartitionValues
CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, TIMESTAMP'2024-01-02 03:04:05' AS p;
SELECT * FROM {t};
