-- table_changes
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1, 1), (2, 2); UPDATE {n} SET p = 7 WHERE id = 1;
SELECT id, p, _change_type, _commit_version FROM table_changes('{n}', 1)
-- table_changes_to_a_version
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1); INSERT INTO {n} VALUES (2);
SELECT id, _change_type, _commit_version FROM table_changes('{n}', 0, 1) AS c WHERE c.id > 0
-- table_changes_of_a_schema
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1);
SELECT count(*) FROM table_changes('default.{n}', 0)
-- table_changes_of_a_time
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1);
SELECT count(*) FROM table_changes('{n}', '2000-01-01 00:00:00')
-- table_changes_without_a_feed
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1);
SELECT count(*) FROM table_changes('{n}', 0)
-- table_changes_of_a_missing_table
SELECT count(*) FROM table_changes('nothing_here', 0)
-- table_changes_without_a_version
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
SELECT count(*) FROM table_changes('{n}')
-- table_changes_by_path
CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {t} VALUES (1);
SELECT id, _change_type, _commit_version FROM table_changes_by_path('{p}', 0)
-- table_changes_of_a_path_as_name
CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {t} VALUES (1);
SELECT id, _change_type, _commit_version FROM table_changes('delta.`{p}`', 0)
-- table_changes_in_a_join
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO {n} VALUES (1), (2);
SELECT count(*) FROM {n} AS t JOIN table_changes('{n}', 1) AS c ON t.id = c.id
-- default_in_insert
CREATE TABLE {n} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (DEFAULT, 1), (2, DEFAULT); SELECT * FROM {n}
-- default_in_insert_of_a_path
CREATE TABLE {t} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {t} VALUES (DEFAULT, 1); SELECT * FROM {t}
-- default_in_insert_with_columns
CREATE TABLE {n} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} (b, a) VALUES (1, DEFAULT), (DEFAULT, 3); SELECT * FROM {n}
-- default_in_insert_of_fewer_columns
CREATE TABLE {n} (a INT, b INT DEFAULT 5) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (1); SELECT * FROM {n}
-- default_in_insert_select
CREATE TABLE {n} (a INT, b INT DEFAULT 5) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} SELECT 1, DEFAULT; SELECT * FROM {n}
-- default_in_an_expression
CREATE TABLE {n} (a INT, b INT DEFAULT 5) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (1, DEFAULT + 1); SELECT * FROM {n}
-- default_in_insert_overwrite
CREATE TABLE {n} (a INT, b INT DEFAULT 5) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (1, 2); INSERT OVERWRITE {n} VALUES (3, DEFAULT); SELECT * FROM {n}
-- default_in_update
CREATE TABLE {n} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (1, 1), (2, 2); UPDATE {n} SET a = DEFAULT WHERE b = 1; SELECT * FROM {n}
-- default_in_update_of_a_path
CREATE TABLE {t} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {t} VALUES (1, 1), (2, 2); UPDATE {t} SET a = DEFAULT, b = DEFAULT WHERE b = 1; SELECT * FROM {t}
-- default_in_merge
CREATE TABLE {n} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {n} VALUES (1, 1);
MERGE INTO {n} t USING (SELECT explode(array(1, 2)) AS x) s ON t.b = s.x WHEN MATCHED THEN UPDATE SET a = DEFAULT
WHEN NOT MATCHED THEN INSERT (a, b) VALUES (DEFAULT, s.x); SELECT * FROM {n}
-- default_in_merge_not_matched_by_source
CREATE TABLE {t} (a INT DEFAULT 5, b INT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO {t} VALUES (1, 1);
MERGE INTO {t} t USING (SELECT 2 AS x) s ON t.b = s.x WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = DEFAULT
WHEN NOT MATCHED THEN INSERT (a, b) VALUES (DEFAULT, s.x); SELECT * FROM {t}
-- view_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n}; DELETE FROM {v} WHERE id = 1; SELECT * FROM {n}
-- view_update
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n}; UPDATE {v} SET p = 9 WHERE id = 1; SELECT * FROM {n}
-- view_merge
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n};
MERGE INTO {v} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = 9; SELECT * FROM {n}
-- view_insert
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta;
CREATE TEMP VIEW {v} AS SELECT * FROM {n}; INSERT INTO {v} VALUES (1, 1); SELECT * FROM {n}
-- view_of_a_path_delete
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta; INSERT INTO {t} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {t}; DELETE FROM {v} WHERE id = 1; SELECT * FROM {t}
-- view_of_some_columns_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT id FROM {n}; DELETE FROM {v} WHERE id = 1; SELECT * FROM {n}
-- view_of_renamed_columns_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT id AS k, p FROM {n}; DELETE FROM {v} WHERE k = 1; SELECT * FROM {n}
-- view_of_columns_in_another_order_update
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 3);
CREATE TEMP VIEW {v} AS SELECT p, id FROM {n}; UPDATE {v} SET p = 9 WHERE id = 1; SELECT * FROM {n}
-- view_of_swapped_columns_update
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 2), (2, 3);
CREATE TEMP VIEW {v} AS SELECT p AS id, id AS p FROM {n}; UPDATE {v} SET p = 9 WHERE id = 2; SELECT * FROM {n}
-- view_with_a_filter_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n} WHERE p = 1; DELETE FROM {v} WHERE id < 5; SELECT * FROM {n}
-- view_with_a_join_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT a.* FROM {n} a JOIN {n} b ON a.id = b.id; DELETE FROM {v} WHERE id < 5; SELECT * FROM {n}
-- view_with_an_expression_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT id + 1 AS id, p FROM {n}; DELETE FROM {v} WHERE id = 2; SELECT * FROM {n}
-- view_with_a_further_column_update
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT *, id * 2 AS x FROM {n}; UPDATE {v} SET p = 9 WHERE x = 2; SELECT * FROM {n}
-- view_of_a_view_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n}; CREATE TEMP VIEW {m} AS SELECT * FROM {v};
DELETE FROM {m} WHERE id = 1; SELECT * FROM {n}
-- view_of_a_version_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} AS SELECT * FROM {n} VERSION AS OF 1; DELETE FROM {v} WHERE id = 1; SELECT * FROM {n}
-- view_permanent_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE VIEW {v} AS SELECT * FROM {n}; DELETE FROM {v} WHERE id = 1; SELECT * FROM {n}
-- view_global_delete
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; INSERT INTO {n} VALUES (1, 1), (2, 2);
CREATE GLOBAL TEMP VIEW {v} AS SELECT * FROM {n}; DELETE FROM global_temp.{v} WHERE id = 1; SELECT * FROM {n}
-- view_of_a_constant_delete
CREATE TEMP VIEW {v} AS SELECT 1 AS id; DELETE FROM {v} WHERE id = 1
-- view_temporary_using_delta_delete
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta; INSERT INTO {t} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} USING delta OPTIONS (path '{p}'); DELETE FROM {v} WHERE id = 1; SELECT * FROM {t}
-- view_temporary_using_delta_select
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta; INSERT INTO {t} VALUES (1, 1), (2, 2);
CREATE TEMP VIEW {v} USING delta OPTIONS (path '{p}'); SELECT * FROM {v}
-- view_temporary_using_delta_insert
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta;
CREATE TEMP VIEW {v} USING delta OPTIONS (path '{p}'); INSERT INTO {v} VALUES (1, 1); SELECT * FROM {t}
-- view_history
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT * FROM {n};
DESCRIBE HISTORY {v}
-- view_detail
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT * FROM {n};
DESCRIBE DETAIL {v}
-- view_optimize
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT * FROM {n};
OPTIMIZE {v}
-- view_vacuum
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT * FROM {n};
VACUUM {v}
-- view_alter
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT * FROM {n};
ALTER TABLE {v} ADD COLUMNS (x INT)
-- path_version
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES (1); INSERT INTO {t} VALUES (2);
SELECT * FROM delta.`{p}@v1`
-- path_version_missing
CREATE TABLE {t} (id BIGINT) USING delta; SELECT * FROM delta.`{p}@v5`
-- path_version_and_version
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES (1); SELECT * FROM delta.`{p}@v1` VERSION AS OF 0
-- path_time
CREATE TABLE {t} (id BIGINT) USING delta; SELECT * FROM delta.`{p}@20000101000000000`
-- path_version_insert
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO delta.`{p}@v0` VALUES (1)
-- path_version_delete
CREATE TABLE {t} (id BIGINT) USING delta; DELETE FROM delta.`{p}@v0`
-- path_version_history
CREATE TABLE {t} (id BIGINT) USING delta; DESCRIBE HISTORY delta.`{p}@v0`
-- path_version_source_of_merge
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES (1); DELETE FROM {t};
MERGE INTO {t} t USING delta.`{p}@v1` s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *; SELECT * FROM {t}
-- name_version
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); SELECT * FROM `{n}@v0`
-- path_partition
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p); INSERT INTO {t} VALUES (1, 1), (2, 2);
SELECT * FROM delta.`{p}/p=1`
-- path_partition_delete
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p); INSERT INTO {t} VALUES (1, 1), (2, 2);
DELETE FROM delta.`{p}/p=1`
-- show_partitions
CREATE TABLE {n} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1), (2, 2);
SHOW PARTITIONS {n}
-- show_partitions_of_two_columns
CREATE TABLE {n} (id BIGINT, p BIGINT, q STRING) USING delta PARTITIONED BY (p, q); INSERT INTO {n} VALUES (1, 1, 'a b');
SHOW PARTITIONS {n} PARTITION (p = 1)
-- show_partitions_without_partitions
CREATE TABLE {n} (id BIGINT) USING delta; SHOW PARTITIONS {n}
-- show_partitions_of_a_path
CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p); INSERT INTO {t} VALUES (1, 1); SHOW PARTITIONS {t}
-- create_like
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', p BIGINT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.appendOnly' = 'true', 'a' = 'b');
INSERT INTO {n} VALUES (1, 1); CREATE TABLE {m} LIKE {n}; DESCRIBE {m}
-- create_like_rows
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); CREATE TABLE {m} LIKE {n}; INSERT INTO {m} VALUES (5); SELECT * FROM {m}
-- create_like_schema
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', p VARCHAR(3)) USING delta PARTITIONED BY (p); CREATE TABLE {m} LIKE {n}; SCHEMA SELECT * FROM {m}
-- create_like_properties
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true', 'a' = 'b'); CREATE TABLE {m} LIKE {n}; SHOW TBLPROPERTIES {m}
-- create_like_own_properties
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true'); CREATE TABLE {m} LIKE {n} TBLPROPERTIES ('c' = 'd'); SHOW TBLPROPERTIES {m}
-- create_like_twice
CREATE TABLE {n} (id BIGINT) USING delta; CREATE TABLE {m} LIKE {n}; CREATE TABLE {m} LIKE {n}
-- create_like_if_not_exists
CREATE TABLE {n} (id BIGINT) USING delta; CREATE TABLE {m} LIKE {n}; CREATE TABLE IF NOT EXISTS {m} LIKE {n}; SELECT * FROM {m}
-- create_like_location
CREATE TABLE {n} (id BIGINT) USING delta; CREATE TABLE {m} LIKE {n} LOCATION '{q}'; SELECT * FROM delta.`{q}`
-- create_like_using_parquet
CREATE TABLE {n} (id BIGINT) USING delta; CREATE TABLE {m} LIKE {n} USING parquet; SELECT * FROM {m}
-- create_like_of_parquet
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); CREATE TABLE {m} LIKE {n} USING delta; DESCRIBE {m}
-- create_like_of_a_path
CREATE TABLE {t} (id BIGINT) USING delta; CREATE TABLE {m} LIKE {t}; DESCRIBE {m}
-- create_like_of_a_view
CREATE TABLE {n} (id BIGINT) USING delta; CREATE TEMP VIEW {v} AS SELECT id, 1 AS x FROM {n}; CREATE TABLE {m} LIKE {v} USING delta; DESCRIBE {m}
-- create_like_identity
CREATE TABLE {n} (id BIGINT GENERATED ALWAYS AS IDENTITY, g BIGINT GENERATED ALWAYS AS (p + 1), p BIGINT) USING delta; CREATE TABLE {m} LIKE {n}; INSERT INTO {m} (p) VALUES (1); SELECT * FROM {m}
-- create_like_clustered
CREATE TABLE {n} (id BIGINT, p INT) USING delta CLUSTER BY (p); CREATE TABLE {m} LIKE {n}; SHOW COLUMNS IN {m}
-- create_options
CREATE TABLE {n} (id BIGINT) USING delta OPTIONS ('a' = 'b', 'delta.appendOnly' = 'true'); SHOW TBLPROPERTIES {n}
-- create_options_path
CREATE TABLE {n} (id BIGINT) USING delta OPTIONS (path '{p}'); INSERT INTO {n} VALUES (1); SELECT * FROM {t}
-- create_options_path_of_a_table
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES (1); CREATE TABLE {n} USING delta OPTIONS (path '{p}'); SELECT * FROM {n}
-- create_options_and_properties
CREATE TABLE {n} (id BIGINT) USING delta OPTIONS ('a' = 'b') TBLPROPERTIES ('a' = 'c'); SHOW TBLPROPERTIES {n}
-- create_options_as_select
CREATE TABLE {n} USING delta OPTIONS ('a' = 'b', 'delta.appendOnly' = 'true') AS SELECT 1 AS id; SHOW TBLPROPERTIES {n}
-- create_options_of_writers
CREATE TABLE {n} USING delta OPTIONS ('compression' = 'gzip', 'mergeSchema' = 'true') AS SELECT 1 AS id; SHOW TBLPROPERTIES {n}
-- convert_name
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1), (2, 2); CONVERT TO DELTA {n}; SELECT * FROM {n}
-- convert_name_result
CREATE TABLE {n} (id BIGINT) USING parquet; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}
-- convert_name_written
CREATE TABLE {n} (id BIGINT) USING parquet; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}; INSERT INTO {n} VALUES (2); DELETE FROM {n} WHERE id = 1; SELECT * FROM {n}
-- convert_name_partitioned_by
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1); CONVERT TO DELTA {n} PARTITIONED BY (p INT); SELECT * FROM {n}
-- convert_name_partitioned_by_others
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1); CONVERT TO DELTA {n} PARTITIONED BY (id INT); SELECT * FROM {n}
-- convert_name_of_a_location
CREATE TABLE {n} (id BIGINT) USING parquet LOCATION '{p}'; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}; SELECT * FROM {t}
-- convert_name_properties
CREATE TABLE {n} (id BIGINT COMMENT 'x') USING parquet COMMENT 'words' TBLPROPERTIES ('a' = 'b'); INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}; SHOW TBLPROPERTIES {n}
-- convert_name_of_delta
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}; SELECT * FROM {n}
-- convert_name_of_csv
CREATE TABLE {n} (id BIGINT) USING csv; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n}
-- convert_name_missing
CONVERT TO DELTA nothing_here
-- convert_name_empty
CREATE TABLE {n} (id BIGINT) USING parquet; CONVERT TO DELTA {n}; SELECT * FROM {n}
-- convert_name_no_statistics
CREATE TABLE {n} (id BIGINT) USING parquet; INSERT INTO {n} VALUES (1); CONVERT TO DELTA {n} NO STATISTICS; SELECT * FROM {n}
-- convert_path_in_capitals
INSERT OVERWRITE DIRECTORY '{p}' USING parquet SELECT 1 AS id; CONVERT TO DELTA PARQUET.`{p}`; SELECT * FROM {t}
-- clone_of_parquet
INSERT OVERWRITE DIRECTORY '{p}' USING parquet SELECT 1 AS id; CREATE TABLE {n} SHALLOW CLONE parquet.`{p}`; SELECT * FROM {n}
-- clone_of_parquet_result
INSERT OVERWRITE DIRECTORY '{p}' USING parquet SELECT 1 AS id; CREATE TABLE delta.`{q}` SHALLOW CLONE parquet.`{p}`
-- clone_of_parquet_name
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1); CREATE TABLE {m} SHALLOW CLONE {n}; SELECT * FROM {m}
-- clone_of_parquet_changed
CREATE TABLE {n} (id BIGINT, p INT) USING parquet PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 1), (2, 2); CREATE TABLE {m} SHALLOW CLONE {n}; DELETE FROM {m} WHERE id = 1; SELECT * FROM {m}
-- clone_of_parquet_replaced
CREATE TABLE {n} (id BIGINT) USING parquet; INSERT INTO {n} VALUES (1); CREATE TABLE {m} SHALLOW CLONE {n}; INSERT INTO {n} VALUES (2); CREATE OR REPLACE TABLE {m} SHALLOW CLONE {n}; SELECT * FROM {m}
-- clone_of_csv
CREATE TABLE {n} (id BIGINT) USING csv; CREATE TABLE {m} SHALLOW CLONE {n}; SELECT * FROM {m}
-- clone_deep
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); CREATE TABLE {m} DEEP CLONE {n}; SELECT * FROM {m}
-- clone_without_a_kind
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); CREATE TABLE {m} CLONE {n}; SELECT * FROM {m}
-- change_column_comment
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} CHANGE COLUMN id id BIGINT COMMENT 'x'; DESCRIBE {n}
-- change_column_without_the_word
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} CHANGE id id BIGINT COMMENT 'x' AFTER p; DESCRIBE {n}
-- change_column_first
CREATE TABLE {n} (id BIGINT, p INT) USING delta; INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} CHANGE COLUMN p p INT FIRST; SELECT * FROM {n}
-- change_column_type
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); ALTER TABLE {n} CHANGE COLUMN id id BIGINT; DESCRIBE {n}
-- change_column_type_without_widening
CREATE TABLE {n} (id INT) USING delta; ALTER TABLE {n} CHANGE COLUMN id id BIGINT
-- change_column_to_a_narrower_type
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} CHANGE COLUMN id id INT
-- change_column_name
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); ALTER TABLE {n} CHANGE COLUMN id k INT; DESCRIBE {n}
-- change_column_missing
CREATE TABLE {n} (id INT) USING delta; ALTER TABLE {n} CHANGE COLUMN x x INT COMMENT 'a'
-- change_column_of_a_struct
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; ALTER TABLE {n} CHANGE COLUMN s.b b INT FIRST; DESCRIBE {n}
-- change_column_of_a_struct_after
CREATE TABLE {n} (s STRUCT<a: INT, b: INT, c: INT>) USING delta; ALTER TABLE {n} CHANGE COLUMN s.a a INT COMMENT 'q' AFTER b; DESCRIBE {n}
-- change_column_of_a_map
CREATE TABLE {n} (m MAP<INT, INT>) USING delta; ALTER TABLE {n} CHANGE COLUMN m.value value INT COMMENT 'q'; DESCRIBE {n}
-- change_column_struct_whole
CREATE TABLE {n} (s STRUCT<a: INT>) USING delta; ALTER TABLE {n} CHANGE COLUMN s s STRUCT<a: INT, b: INT>; DESCRIBE {n}
-- change_column_alter_type_and_more
CREATE TABLE {n} (id INT, p INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); ALTER TABLE {n} ALTER COLUMN id TYPE BIGINT, p COMMENT 'x'; DESCRIBE {n}
-- change_column_alter_two_comments
CREATE TABLE {n} (id INT, p INT) USING delta; ALTER TABLE {n} ALTER COLUMN id COMMENT 'a', p COMMENT 'b'; DESCRIBE {n}
-- change_column_in_a_path
CREATE TABLE {t} (id BIGINT, p INT) USING delta; ALTER TABLE {t} CHANGE COLUMN id id BIGINT COMMENT 'x' AFTER p; DESCRIBE {t}
-- change_column_nested_rename
CREATE TABLE {n} (s STRUCT<a: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); ALTER TABLE {n} RENAME COLUMN s.a TO b; DESCRIBE {n}
-- change_column_varchar
CREATE TABLE {n} (v VARCHAR(3)) USING delta; ALTER TABLE {n} CHANGE COLUMN v v VARCHAR(5); SCHEMA SELECT * FROM {n}
-- change_column_varchar_to_string
CREATE TABLE {n} (v VARCHAR(3)) USING delta; ALTER TABLE {n} CHANGE COLUMN v v STRING; INSERT INTO {n} VALUES ('abcdef'); SELECT * FROM {n}
-- change_column_not_null
CREATE TABLE {n} (id BIGINT NOT NULL) USING delta; ALTER TABLE {n} CHANGE COLUMN id DROP NOT NULL; SCHEMA SELECT * FROM {n}
-- change_column_set_not_null
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} CHANGE COLUMN id SET NOT NULL; SCHEMA SELECT * FROM {n}
-- replace_columns
CREATE TABLE {n} (id BIGINT, p INT) USING delta; INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} REPLACE COLUMNS (p INT COMMENT 'x', id BIGINT); SELECT * FROM {n}
-- replace_columns_comment
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} REPLACE COLUMNS (p INT COMMENT 'x', id BIGINT); DESCRIBE {n}
-- replace_columns_more
CREATE TABLE {n} (id BIGINT, p INT) USING delta; INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} REPLACE COLUMNS (id BIGINT, x STRING, p INT); SELECT * FROM {n}
-- replace_columns_fewer
CREATE TABLE {n} (id BIGINT, p INT) USING delta; INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} REPLACE COLUMNS (id BIGINT); SELECT * FROM {n}
-- replace_columns_fewer_with_mapping
CREATE TABLE {n} (id BIGINT, p INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} REPLACE COLUMNS (id BIGINT); SELECT * FROM {n}
-- replace_columns_type
CREATE TABLE {n} (id INT) USING delta; ALTER TABLE {n} REPLACE COLUMNS (id BIGINT)
-- replace_columns_type_widening
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); INSERT INTO {n} VALUES (1); ALTER TABLE {n} REPLACE COLUMNS (id BIGINT); SCHEMA SELECT * FROM {n}
-- replace_columns_struct
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; INSERT INTO {n} SELECT struct(1, 2); ALTER TABLE {n} REPLACE COLUMNS (s STRUCT<b: INT, c: INT, a: INT>); SELECT s.a, s.b, s.c FROM {n}
-- replace_columns_case
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); ALTER TABLE {n} REPLACE COLUMNS (ID BIGINT); SELECT * FROM {n}
-- replace_columns_not_null
CREATE TABLE {n} (id BIGINT NOT NULL, p INT) USING delta; ALTER TABLE {n} REPLACE COLUMNS (p INT, id BIGINT); SCHEMA SELECT * FROM {n}
-- replace_columns_partition
CREATE TABLE {n} (id BIGINT, p INT) USING delta PARTITIONED BY (p); ALTER TABLE {n} REPLACE COLUMNS (id BIGINT); SELECT * FROM {n}
-- replace_columns_partition_kept
CREATE TABLE {n} (id BIGINT, p INT) USING delta PARTITIONED BY (p); INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} REPLACE COLUMNS (p INT, id BIGINT, x INT); SELECT * FROM {n}
-- replace_columns_other
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} REPLACE COLUMNS (x BIGINT); SELECT * FROM {n}
-- replace_columns_of_a_path
CREATE TABLE {t} (id BIGINT, p INT) USING delta; ALTER TABLE {t} REPLACE COLUMNS (p INT, id BIGINT); SELECT * FROM {t}
-- add_columns_first_and_after
CREATE TABLE {n} (id BIGINT, p INT) USING delta; INSERT INTO {n} VALUES (1, 2); ALTER TABLE {n} ADD COLUMNS (a INT FIRST, b INT AFTER id); SELECT * FROM {n}
-- add_columns_after_a_new_one
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} ADD COLUMNS (a INT FIRST, b INT AFTER a, c INT); SELECT * FROM {n}
-- add_columns_first_twice
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} ADD COLUMNS (a INT FIRST, b INT FIRST); SELECT * FROM {n}
-- add_columns_nested
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; ALTER TABLE {n} ADD COLUMNS (s.c INT FIRST, s.d INT AFTER a); DESCRIBE {n}
-- add_columns_nested_and_top
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; ALTER TABLE {n} ADD COLUMNS (s.c INT AFTER a, x STRUCT<q: INT> FIRST, s.d INT COMMENT 'w'); DESCRIBE {n}
-- add_columns_in_an_array
CREATE TABLE {n} (s ARRAY<STRUCT<a: INT, b: INT>>) USING delta; ALTER TABLE {n} ADD COLUMNS (s.element.c INT AFTER a); DESCRIBE {n}
-- add_columns_in_a_map
CREATE TABLE {n} (s MAP<INT, STRUCT<a: INT, b: INT>>) USING delta; ALTER TABLE {n} ADD COLUMNS (s.value.c INT FIRST); DESCRIBE {n}
-- add_columns_after_a_missing_one
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} ADD COLUMNS (a INT AFTER x)
-- add_columns_that_are_there
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} ADD COLUMNS (ID INT)
-- add_columns_not_null
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} ADD COLUMNS (a INT NOT NULL)
-- add_columns_default
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported'); ALTER TABLE {n} ADD COLUMNS (a INT DEFAULT 3)
-- add_column_word
CREATE TABLE {n} (id BIGINT) USING delta; ALTER TABLE {n} ADD COLUMN a INT FIRST; SELECT * FROM {n}
-- insert_text_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES ('12'); SELECT * FROM {n}
-- insert_text_into_bigint_of_a_path
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES ('12'); SELECT * FROM {t}
-- insert_text_that_is_no_number
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES ('x')
-- insert_decimal_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (12.7); SELECT * FROM {n}
-- insert_decimal_into_bigint_of_a_path
CREATE TABLE {t} (id BIGINT) USING delta; INSERT INTO {t} VALUES (12.7); SELECT * FROM {t}
-- insert_double_into_int
CREATE TABLE {n} (id INT) USING delta; INSERT INTO {n} VALUES (12.7D); SELECT * FROM {n}
-- insert_bigint_into_int
CREATE TABLE {n} (id INT) USING delta; INSERT INTO {n} VALUES (12L); SELECT * FROM {n}
-- insert_bigint_that_is_too_large
CREATE TABLE {n} (id INT) USING delta; INSERT INTO {n} VALUES (3000000000L)
-- insert_number_into_string
CREATE TABLE {n} (id STRING) USING delta; INSERT INTO {n} VALUES (12); SELECT * FROM {n}
-- insert_text_into_date
CREATE TABLE {n} (d DATE) USING delta; INSERT INTO {n} VALUES ('2024-01-02'); SELECT * FROM {n}
-- insert_text_into_timestamp
CREATE TABLE {n} (d TIMESTAMP) USING delta; INSERT INTO {n} VALUES ('2024-01-02 03:04:05'); SELECT * FROM {n}
-- insert_boolean_into_int
CREATE TABLE {n} (id INT) USING delta; INSERT INTO {n} VALUES (true); SELECT * FROM {n}
-- insert_number_into_boolean
CREATE TABLE {n} (id BOOLEAN) USING delta; INSERT INTO {n} VALUES (1); SELECT * FROM {n}
-- insert_date_into_timestamp
CREATE TABLE {n} (d TIMESTAMP) USING delta; INSERT INTO {n} VALUES (DATE'2024-01-02'); SELECT * FROM {n}
-- insert_timestamp_into_date
CREATE TABLE {n} (d DATE) USING delta; INSERT INTO {n} VALUES (TIMESTAMP'2024-01-02 03:04:05'); SELECT * FROM {n}
-- insert_date_into_int
CREATE TABLE {n} (d INT) USING delta; INSERT INTO {n} VALUES (DATE'2024-01-02'); SELECT * FROM {n}
-- insert_int_into_date
CREATE TABLE {n} (d DATE) USING delta; INSERT INTO {n} VALUES (1); SELECT * FROM {n}
-- insert_text_into_decimal
CREATE TABLE {n} (d DECIMAL(5, 1)) USING delta; INSERT INTO {n} VALUES ('1.26'); SELECT * FROM {n}
-- insert_decimal_of_more_digits
CREATE TABLE {n} (d DECIMAL(5, 1)) USING delta; INSERT INTO {n} VALUES (1.26); SELECT * FROM {n}
-- insert_text_into_binary
CREATE TABLE {n} (d BINARY) USING delta; INSERT INTO {n} VALUES ('ab'); SELECT hex(d) FROM {n}
-- insert_array_of_texts
CREATE TABLE {n} (a ARRAY<INT>) USING delta; INSERT INTO {n} VALUES (array('1', '2')); SELECT * FROM {n}
-- insert_struct_of_texts
CREATE TABLE {n} (s STRUCT<a: INT, b: DATE>) USING delta; INSERT INTO {n} VALUES (named_struct('a', '1', 'b', '2024-01-02')); SELECT * FROM {n}
-- insert_struct_of_other_names
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; INSERT INTO {n} VALUES (named_struct('x', 1, 'y', 2)); SELECT * FROM {n}
-- insert_struct_in_another_order
CREATE TABLE {n} (s STRUCT<a: INT, b: INT>) USING delta; INSERT INTO {n} VALUES (named_struct('b', 1, 'a', 2)); SELECT * FROM {n}
-- insert_map_of_texts
CREATE TABLE {n} (m MAP<STRING, INT>) USING delta; INSERT INTO {n} VALUES (map(1, '2')); SELECT * FROM {n}
-- insert_select_of_text
CREATE TABLE {n} (id BIGINT, d DATE) USING delta; INSERT INTO {n} SELECT '7', '2024-01-02'; SELECT * FROM {n}
-- insert_by_name_of_text
CREATE TABLE {n} (id BIGINT, d DATE) USING delta; INSERT INTO {n} BY NAME SELECT '2024-01-02' AS d, '7' AS id; SELECT * FROM {n}
-- insert_columns_of_text
CREATE TABLE {n} (id BIGINT, d DATE) USING delta; INSERT INTO {n} (d, id) VALUES ('2024-01-02', '7'); SELECT * FROM {n}
-- insert_overwrite_of_text
CREATE TABLE {n} (id BIGINT) USING delta; INSERT OVERWRITE {n} VALUES ('12'); SELECT * FROM {n}
-- insert_replace_where_of_text
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} REPLACE WHERE id = 12 VALUES ('12'); SELECT * FROM {n}
-- insert_in_a_partition_of_text
CREATE TABLE {n} (id BIGINT, p INT) USING delta PARTITIONED BY (p); INSERT INTO {n} PARTITION (p = '3') VALUES ('12'); SELECT * FROM {n}
-- update_text_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); UPDATE {n} SET id = '12'; SELECT * FROM {n}
-- update_decimal_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); UPDATE {n} SET id = 12.7; SELECT * FROM {n}
-- merge_text_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; MERGE INTO {n} t USING (SELECT '12' AS id, 3.7 AS x) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id); SELECT * FROM {n}
-- merge_all_text_into_bigint
CREATE TABLE {n} (id BIGINT) USING delta; MERGE INTO {n} t USING (SELECT '12' AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *; SELECT * FROM {n}
-- generate_in_capitals
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE {n}
-- generate
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); GENERATE symlink_format_manifest FOR TABLE {n}
-- generate_unknown
CREATE TABLE {n} (id BIGINT) USING delta; GENERATE something FOR TABLE {n}
-- schema_of_a_name
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', s STRUCT<a: INT NOT NULL COMMENT 'x'>, v VARCHAR(3), c CHAR(2)) USING delta; SCHEMA SELECT * FROM {n}
-- schema_of_a_path
CREATE TABLE {t} (id BIGINT NOT NULL COMMENT 'key', s STRUCT<a: INT NOT NULL COMMENT 'x'>) USING delta; SCHEMA SELECT * FROM {t}
-- schema_of_generated_columns
CREATE TABLE {n} (id BIGINT GENERATED ALWAYS AS IDENTITY, d INT DEFAULT 3, g INT GENERATED ALWAYS AS (d + 1)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported'); SCHEMA SELECT * FROM {n}
-- schema_with_column_mapping
CREATE TABLE {n} (id BIGINT COMMENT 'x', s STRUCT<a: INT>) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); SCHEMA SELECT * FROM {n}
-- schema_after_widening
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true'); ALTER TABLE {n} ALTER COLUMN id TYPE BIGINT; SCHEMA SELECT * FROM {n}
-- schema_of_a_version
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key') USING delta; SCHEMA SELECT * FROM {n} VERSION AS OF 0
-- schema_of_table_as_select
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', v VARCHAR(3)) USING delta; CREATE TABLE {m} USING delta AS SELECT * FROM {n}; SCHEMA SELECT * FROM {m}
-- schema_of_generated_as_select
CREATE TABLE {n} (id BIGINT GENERATED ALWAYS AS IDENTITY, d INT DEFAULT 3, g INT GENERATED ALWAYS AS (d + 1)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported'); CREATE TABLE {m} USING delta AS SELECT * FROM {n}; SCHEMA SELECT * FROM {m}
-- schema_not_null_count_of_nulls
CREATE TABLE {n} (id BIGINT NOT NULL) USING delta; INSERT INTO {n} VALUES (1); SELECT count(*) FROM {n} WHERE id IS NULL
-- describe_columns
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', p STRING, v VARCHAR(3)) USING delta PARTITIONED BY (p); DESCRIBE {n}
-- describe_one_column
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key') USING delta; DESCRIBE {n} id
-- show_create_table
CREATE TABLE {n} (id BIGINT NOT NULL COMMENT 'key', p STRING, v VARCHAR(3), c CHAR(2)) USING delta PARTITIONED BY (p) COMMENT 'words' TBLPROPERTIES ('a' = 'b', 'delta.appendOnly' = 'true'); SHOW CREATE TABLE {n}
-- show_create_table_of_generated_columns
CREATE TABLE {n} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), k BIGINT GENERATED BY DEFAULT AS IDENTITY, d INT DEFAULT 3, g INT GENERATED ALWAYS AS (d + 1)) USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported'); SHOW CREATE TABLE {n}
-- show_create_table_of_clustering
CREATE TABLE {n} (id BIGINT, p INT) USING delta CLUSTER BY (p, id); SHOW CREATE TABLE {n}
-- show_create_table_of_a_location
CREATE TABLE {n} (id BIGINT, p INT) USING delta LOCATION '{p}'; SHOW CREATE TABLE {n}
-- show_create_table_of_a_path
CREATE TABLE {t} (id BIGINT, p INT) USING delta; SHOW CREATE TABLE {t}
-- show_create_table_of_a_constraint
CREATE TABLE {n} (id BIGINT, p INT) USING delta; ALTER TABLE {n} ADD CONSTRAINT positive CHECK (id > 0); SHOW CREATE TABLE {n}
-- show_create_table_of_nested_columns
CREATE TABLE {n} (s STRUCT<a: INT NOT NULL COMMENT 'it''s', `b c`: ARRAY<STRING>>) USING delta; SHOW CREATE TABLE {n}
-- show_create_table_of_column_mapping
CREATE TABLE {n} (`a b` INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name'); SHOW CREATE TABLE {n}
-- show_create_table_as_serde
CREATE TABLE {n} (id INT) USING delta; SHOW CREATE TABLE {n} AS SERDE
-- row_id_of_a_name
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true'); INSERT INTO {n} VALUES (1); SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {n}
-- with_change_feed_options
CREATE TABLE {n} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'); INSERT INTO {n} VALUES (1); SELECT id, _change_type FROM {n} WITH ('readChangeFeed' = 'true', 'startingVersion' = '0')
-- version_with_identifier_of_a_name
CREATE TABLE {n} (id BIGINT) USING delta; INSERT INTO {n} VALUES (1); SELECT count(*) FROM {n} VERSION AS OF 0

-- column_mapping_set_to_none
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
INSERT INTO {n} VALUES (1);
ALTER TABLE {n} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none');
SELECT * FROM {n};

-- column_mapping_unset
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
INSERT INTO {n} VALUES (1);
ALTER TABLE {n} UNSET TBLPROPERTIES ('delta.columnMapping.mode');
SELECT * FROM {n};

-- column_mapping_unset_without_removal
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
SET spark.databricks.delta.columnMapping.allowRemoval = false;
ALTER TABLE {n} UNSET TBLPROPERTIES ('delta.columnMapping.mode');
SELECT * FROM {n};

-- column_mapping_dropped_without_removal
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
SET spark.databricks.delta.columnMapping.allowRemoval = false;
ALTER TABLE {n} DROP FEATURE columnMapping;
SELECT * FROM {n};

-- column_mapping_replaced_without_removal
CREATE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
SET spark.databricks.delta.columnMapping.allowRemoval = false;
CREATE OR REPLACE TABLE {n} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'none');
INSERT INTO {n} VALUES (2);
SELECT * FROM {n};

-- identity_columns_inserted_where_none_are_made
CREATE TABLE {n} (a BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING delta;
SET spark.databricks.delta.identityColumn.enabled = false;
INSERT INTO {n} (b) VALUES (1);
SELECT * FROM {n};

-- identity_columns_cloned_where_none_are_made
CREATE TABLE {n} (a BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING delta;
SET spark.databricks.delta.identityColumn.enabled = false;
CREATE TABLE {m} SHALLOW CLONE {n};
SELECT * FROM {m};

-- identity_columns_altered_where_none_are_made
CREATE TABLE {n} (a BIGINT GENERATED ALWAYS AS IDENTITY, b INT) USING delta;
SET spark.databricks.delta.identityColumn.enabled = false;
ALTER TABLE {n} ADD COLUMN c INT;
SELECT * FROM {n};
