"""The protobuf messages of Lance, as data: each line of a message is a field's number, name and kind.

Kinds are the scalars of `delta_plugins.lance.wire`, or the name of another message; ``*`` marks a repeated field, ``?``
an optional one (None = absent), and ``map<key,value>`` a map. The alternatives of a ``oneof`` are optional fields:
`delta_plugins.lance.wire.chosen` returns the one that is there.
"""

from __future__ import annotations

__all__ = ["ENCODINGS", "FILES", "ROW_IDS", "TABLES", "TRANSACTIONS"]

#: Data files: fields of the schema, and the metadata of versions 0.1 and 2.x.
FILES = """
Field
    1 type i32; 2 name string; 3 id i32; 4 parent_id i32; 5 logical_type string; 6 nullable bool; 7 encoding i32
    8 dictionary DictionaryPosition; 9 extension_name string; 10 metadata map<string,bytes>; 11 storage_class string
    12 unenforced_primary_key bool; 13 unenforced_primary_key_position u32; 14 unenforced_clustering_key bool
    15 unenforced_clustering_key_position u32
DictionaryPosition
    1 offset i64; 2 length i64
Schema
    1 fields Field*; 5 metadata map<string,bytes>
FileDescriptor
    1 schema Schema; 2 length u64
ColumnMetadata
    1 encoding Encoding; 2 pages Page*; 3 buffer_offsets u64*; 4 buffer_sizes u64*
Page
    1 buffer_offsets u64*; 2 buffer_sizes u64*; 3 length u64; 4 encoding Encoding; 5 priority u64
Encoding
    1 indirect DeferredEncoding; 2 direct DirectEncoding; 3 none Empty
DeferredEncoding
    1 buffer_location u64; 2 buffer_length u64
DirectEncoding
    1 encoding bytes
Any
    1 type_url string; 2 value bytes
Empty
Metadata
    1 manifest_position u64; 2 batch_offsets i32*; 3 page_table_position u64; 5 statistics StatisticsMetadata
StatisticsMetadata
    1 schema Field*; 2 fields i32*; 3 page_table_position u64
"""

#: Encodings of pages: those of version 2.0 in ArrayEncoding, those of 2.1 and 2.2 in PageLayout.
ENCODINGS = """
ColumnEncoding
    1 values Empty; 2 zone_index ZoneIndex; 3 blob BlobColumn
ZoneIndex
    1 rows_per_zone u32; 2 zone_map_buffer Buffer; 3 inner ColumnEncoding
BlobColumn
    1 inner ColumnEncoding
Buffer
    1 buffer_index u32; 2 buffer_type i32
ArrayEncoding
    1 flat ArrayFlat; 2 nullable Nullable; 3 fixed_size_list ArrayFixedSizeList; 4 list ArrayList; 5 struct Empty
    6 binary ArrayBinary; 7 dictionary ArrayDictionary; 8 fsst ArrayFsst; 9 packed_struct ArrayPackedStruct
    10 bitpacked Bitpacked; 11 fixed_size_binary FixedSizeBinary; 12 bitpacked_for_non_neg Bitpacked
    13 constant ArrayConstant
ArrayFlat
    1 bits_per_value u64; 2 buffer Buffer; 3 compression NamedCompression
NamedCompression
    1 scheme string; 2 level i32?
Nullable
    1 no_nulls NoNulls; 2 some_nulls SomeNulls; 3 all_nulls Empty
NoNulls
    1 values ArrayEncoding
SomeNulls
    1 validity ArrayEncoding; 2 values ArrayEncoding
ArrayFixedSizeList
    1 dimension u32; 2 items ArrayEncoding; 3 has_validity bool
ArrayList
    1 offsets ArrayEncoding; 2 null_offset_adjustment u64; 3 num_items u64
ArrayBinary
    1 indices ArrayEncoding; 2 bytes ArrayEncoding; 3 null_adjustment u64
ArrayDictionary
    1 indices ArrayEncoding; 2 items ArrayEncoding; 3 num_dictionary_items u32
ArrayFsst
    1 binary ArrayEncoding; 2 symbol_table bytes
ArrayPackedStruct
    1 inner ArrayEncoding*; 2 buffer Buffer
Bitpacked
    1 compressed_bits_per_value u64; 2 uncompressed_bits_per_value u64; 3 buffer Buffer; 4 signed bool
FixedSizeBinary
    1 bytes ArrayEncoding; 2 byte_width u32
ArrayConstant
    1 value bytes
PageLayout
    1 mini_block MiniBlockLayout; 2 constant ConstantLayout; 3 full_zip FullZipLayout; 4 blob BlobLayout
MiniBlockLayout
    1 rep_compression CompressiveEncoding; 2 def_compression CompressiveEncoding
    3 value_compression CompressiveEncoding; 4 dictionary CompressiveEncoding; 5 num_dictionary_items u64
    6 layers i32*; 7 num_buffers u64; 8 repetition_index_depth u32; 9 num_items u64; 10 has_large_chunk bool
ConstantLayout
    5 layers i32*; 6 inline_value bytes?; 7 rep_compression CompressiveEncoding
    8 def_compression CompressiveEncoding; 9 num_rep_values u64; 10 num_def_values u64
FullZipLayout
    1 bits_rep u32; 2 bits_def u32; 3 bits_per_value u32?; 4 bits_per_offset u32?; 5 num_items u32
    6 num_visible_items u32; 7 value_compression CompressiveEncoding; 8 layers i32*
BlobLayout
    1 inner_layout PageLayout; 2 layers i32*
CompressiveEncoding
    1 flat Flat; 2 variable Variable; 3 constant Constant; 4 out_of_line_bitpacking OutOfLineBitpacking
    5 inline_bitpacking InlineBitpacking; 6 fsst Fsst; 7 dictionary Dictionary; 8 rle Rle
    9 byte_stream_split ByteStreamSplit; 10 general General; 11 fixed_size_list FixedSizeList
    12 packed_struct PackedStruct; 13 variable_packed_struct VariablePackedStruct
BufferCompression
    1 scheme i32; 2 level i32?
Flat
    1 bits_per_value u64; 2 data BufferCompression
Variable
    1 offsets CompressiveEncoding; 2 values BufferCompression
Constant
    1 value bytes?
OutOfLineBitpacking
    1 uncompressed_bits_per_value u64; 3 values CompressiveEncoding
InlineBitpacking
    1 uncompressed_bits_per_value u64; 2 values BufferCompression
Fsst
    1 symbol_table bytes; 2 values CompressiveEncoding
Dictionary
    1 indices CompressiveEncoding; 2 items CompressiveEncoding; 3 num_dictionary_items u32
Rle
    1 values CompressiveEncoding; 2 run_lengths CompressiveEncoding
ByteStreamSplit
    1 values CompressiveEncoding
General
    1 compression BufferCompression; 3 values CompressiveEncoding
FixedSizeList
    1 items_per_value u64; 2 values CompressiveEncoding; 3 has_validity bool
PackedStruct
    1 bits_per_value u64*; 2 values CompressiveEncoding
VariablePackedStruct
    1 fields PackedField*
PackedField
    1 value CompressiveEncoding; 2 bits_per_value u64?; 3 bits_per_length u64?
"""

#: Manifests and what they refer to.
TABLES = """
Manifest
    1 fields Field*; 2 fragments DataFragment*; 3 version u64; 4 version_aux_data u64
    5 schema_metadata map<string,bytes>; 6 index_section u64?; 7 timestamp Timestamp; 8 tag string
    9 reader_feature_flags u64; 10 writer_feature_flags u64; 11 max_fragment_id u32?; 12 transaction_file string
    13 writer_version WriterVersion; 14 next_row_id u64; 15 data_format DataStorageFormat; 16 config map<string,string>
    17 blob_dataset_version u64; 18 base_paths BasePath*; 19 table_metadata map<string,string>; 20 branch string?
    21 earlier_transaction_section u64?; 22 fragment_tree bytes?; 23 transaction_section u64?
    24 max_allocated_field_id i32?; 25 clustering Clustering*; 26 max_clustering_id u32
Timestamp
    1 seconds i64; 2 nanos i32
WriterVersion
    1 library string; 2 version string; 3 prerelease string?; 4 build_metadata string?
DataStorageFormat
    1 file_format string; 2 version string
BasePath
    1 id u32; 2 name string?; 3 is_dataset_root bool; 4 path string
Clustering
    1 id u32; 2 columns i32*; 3 provider string; 4 version u64
DataFragment
    1 id u64; 2 files DataFile*; 3 deletion_file DeletionFile; 4 physical_rows u64; 5 inline_row_ids bytes?
    6 external_row_ids ExternalFile; 7 inline_last_updated_at_versions bytes?
    8 external_last_updated_at_versions ExternalFile; 9 inline_created_at_versions bytes?
    10 external_created_at_versions ExternalFile; 11 overlays bytes*; 12 column_row_ids Empty
    13 column_last_updated_at_versions Empty; 14 column_created_at_versions Empty; 15 clustering_id u32?
    16 metadata map<string,string>
DataFile
    1 path string; 2 fields i32*; 3 column_indices i32*; 4 file_major_version u32; 5 file_minor_version u32
    6 file_size_bytes u64; 7 base_id u32?
DeletionFile
    1 file_type i32; 2 read_version u64; 3 id u64; 4 num_deleted_rows u64; 7 base_id u32?
ExternalFile
    1 path string; 2 offset u64; 3 size u64
IndexSection
    1 indices IndexMetadata*
IndexEntries
    1 indices bytes*
IndexMetadata
    1 uuid Uuid; 2 fields i32*; 3 name string; 4 dataset_version u64; 5 fragment_bitmap bytes; 6 index_details Any
    7 index_version i32?; 8 created_at u64?; 9 base_id u32?; 10 files IndexFile*; 11 covering_fields i32*
    12 clustering_id u32?; 13 metadata map<string,string>
Uuid
    1 uuid bytes
IndexFile
    1 path string; 2 size_bytes u64
"""

#: Sequences of row ids, and of the versions that rows were created and last updated in.
ROW_IDS = """
RowIdSequence
    1 segments U64Segment*
U64Segment
    1 range Range; 2 range_with_holes RangeWithHoles; 3 range_with_bitmap RangeWithBitmap
    4 sorted_array EncodedU64Array; 5 array EncodedU64Array
Range
    1 start u64; 2 end u64
RangeWithHoles
    1 start u64; 2 end u64; 3 holes EncodedU64Array
RangeWithBitmap
    1 start u64; 2 end u64; 3 bitmap bytes
EncodedU64Array
    1 u16_array OffsetArray; 2 u32_array OffsetArray; 3 u64_array U64Array
OffsetArray
    1 base u64; 2 offsets bytes
U64Array
    2 values bytes
RowDatasetVersionSequence
    1 runs RowDatasetVersionRun*
RowDatasetVersionRun
    1 span U64Segment; 2 version u64
"""

#: Transactions, one message for each operation.
TRANSACTIONS = """
Transaction
    1 read_version u64; 2 uuid string; 3 tag string; 4 transaction_properties map<string,string>; 100 append Append
    101 delete Delete; 102 overwrite Overwrite; 103 create_index CreateIndex; 104 rewrite Rewrite; 105 merge Merge
    106 restore Restore; 107 reserve_fragments ReserveFragments; 108 update Update; 109 project Project
    110 update_config UpdateConfig; 111 data_replacement DataReplacement; 112 update_mem_wal_state UpdateMemWalState
    113 clone Clone; 114 update_bases UpdateBases; 115 data_overlay DataOverlay
Append
    1 fragments DataFragment*
Delete
    1 updated_fragments DataFragment*; 2 deleted_fragment_ids u64*; 3 predicate string
Overwrite
    1 fragments DataFragment*; 2 schema Field*; 3 schema_metadata map<string,bytes>
    4 config_upsert_values map<string,string>; 5 initial_bases BasePath*
CreateIndex
    1 new_indices IndexMetadata*; 2 removed_indices IndexMetadata*
Rewrite
    1 old_fragments DataFragment*; 2 new_fragments DataFragment*; 3 groups RewriteGroup*
    4 rewritten_indices RewrittenIndex*
RewriteGroup
    1 old_fragments DataFragment*; 2 new_fragments DataFragment*
RewrittenIndex
    1 old_id Uuid; 2 new_id Uuid; 3 new_index_details Any; 4 new_index_version u32; 5 new_index_files IndexFile*
Merge
    1 fragments DataFragment*; 2 schema Field*; 3 schema_metadata map<string,bytes>; 4 preserves_nullability bool
Restore
    1 version u64
ReserveFragments
    1 num_fragments u32
Update
    1 removed_fragment_ids u64*; 2 updated_fragments DataFragment*; 3 new_fragments DataFragment*
    4 fields_modified u32*; 5 compacted_sstables bytes*; 6 fields_for_preserving_frag_bitmap u32*; 7 update_mode i32
    8 inserted_rows KeyExistenceFilter; 9 updated_fragment_offsets map<u64,U32List>
    10 updated_fragment_offset_bitmaps map<u64,bytes>
U32List
    1 values u32*
KeyExistenceFilter
    1 field_ids i32*; 2 exact ExactKeySetFilter; 3 bloom KeyBloomFilter
ExactKeySetFilter
    1 key_hashes u64*
KeyBloomFilter
    1 bitmap bytes; 2 num_bits u32; 3 number_of_items u64; 4 probability double
Project
    1 schema Field*; 2 preserves_nullability bool
UpdateConfig
    1 upsert_values map<string,string>; 2 delete_keys string*; 3 schema_metadata map<string,string>
    4 field_metadata map<u32,FieldMetadataUpdate>; 6 config_updates UpdateMap; 7 table_metadata_updates UpdateMap
    8 schema_metadata_updates UpdateMap; 9 field_metadata_updates map<i32,UpdateMap>
FieldMetadataUpdate
    5 metadata map<string,string>
UpdateMap
    1 update_entries UpdateMapEntry*; 2 replace bool
UpdateMapEntry
    1 key string; 2 value string?
DataReplacement
    1 replacements DataReplacementGroup*
DataReplacementGroup
    1 fragment_id u64; 2 new_file DataFile
UpdateMemWalState
    1 compacted_sstables bytes*
Clone
    1 is_shallow bool; 2 ref_name string?; 3 ref_version u64; 4 ref_path string; 5 branch_name string?
UpdateBases
    1 new_bases BasePath*
DataOverlay
    1 groups bytes*
"""
